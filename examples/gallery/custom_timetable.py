"""A custom timetable: a run on the last day of each month, for this month.

If no cron expression describes a schedule, write a class with two methods: one returns the next run, the other one the data
interval of
a manual run. The scheduler never calls it; a child process without credentials does.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from tradewind import DAG, task
from tradewind.timetables.base import DagRunInfo, DataInterval, Timetable


class LastDayOfMonth(Timetable):
    description = "On the last day of each month, at six in the evening"

    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        if last_automated_data_interval is not None:
            start = last_automated_data_interval.end
        elif restriction.earliest is not None:
            start = restriction.earliest.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        else:
            return None
        month = self.month_from(start)
        run_after = month.end - timedelta(hours=6)
        if restriction.latest is not None and run_after > restriction.latest:
            return None
        return DagRunInfo(run_after=run_after, data_interval=month)

    def infer_manual_data_interval(self, *, run_after):
        return self.month_from(run_after.replace(day=1, hour=0, minute=0, second=0, microsecond=0))

    @staticmethod
    def month_from(start) -> DataInterval:
        return DataInterval(start, (start + timedelta(days=32)).replace(day=1))


with DAG(
    "custom_timetable", schedule=LastDayOfMonth(), start_date=datetime(2026, 1, 1), catchup=True, tags=["example", "gallery"]
):

    @task
    def close_the_books(data_interval_start) -> str:
        return f"closed: {data_interval_start:%B %Y}"

    close_the_books()
