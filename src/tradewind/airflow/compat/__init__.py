"""What only Airflow has, one file per module of Airflow: real classes and functions with Airflow's names."""
