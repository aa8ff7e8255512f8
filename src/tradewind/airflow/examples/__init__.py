"""What public DAG files import from `airflow.example_dags`: the helpers of Airflow's examples, written anew.

A folder `example_dags` on `sys.path` comes first. See `tradewind.airflow.finder`.
"""
