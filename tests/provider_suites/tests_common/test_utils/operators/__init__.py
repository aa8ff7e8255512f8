"""Runs of operators, by Airflow's module names."""
