"""The example DAGs of Airflow, and the states that genuine releases gave them."""
