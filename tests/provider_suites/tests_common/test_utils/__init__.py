"""Helpers of the tests, by Airflow's module names."""
