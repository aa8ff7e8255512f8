"""Classes and functions that exist only in Airflow, with Airflow's names: one file for each module of Airflow."""
