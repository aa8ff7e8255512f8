"""Reads the database of an Airflow, of the generations 1.10, 2 and 3, and decides what `tradewind import-airflow` imports."""
