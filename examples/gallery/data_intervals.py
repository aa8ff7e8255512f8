"""Data intervals: each run processes a time span, here the hour that ends when the run starts.

Read the time span from the run, never from the clock. Then a run that is repeated next week processes the same hour again.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, task
from tradewind.timetables.interval import CronDataIntervalTimetable

with DAG(
    "data_intervals",
    schedule=CronDataIntervalTimetable("@hourly", "UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["example", "gallery"],
):

    @task
    def query(data_interval_start, data_interval_end) -> str:
        span = f"{data_interval_start:%Y-%m-%d %H:%M}' AND '{data_interval_end:%Y-%m-%d %H:%M}"
        return f"SELECT * FROM sales WHERE at BETWEEN '{span}'"

    query()
