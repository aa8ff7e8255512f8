"""New implementations of those helpers of `airflow.example_dags` that public DAG files import.

A folder `example_dags` on `sys.path` has priority. See `tradewind.airflow.finder`.
"""
