"""A schedule in local time: every day at 02:30 in Paris, also on the days when the clocks change.

On 29 March 2026, 02:30 does not exist in Paris: this run starts at 03:30 local time. On 25 October, 02:30 exists twice, but the run
starts only once. `tradewind dags next-execution time_zones -n 3` shows the next runs.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from tradewind import DAG, task

with DAG(
    "time_zones",
    schedule="30 2 * * *",
    start_date=datetime(2026, 3, 1, tzinfo=ZoneInfo("Europe/Paris")),
    catchup=False,
    tags=["example", "gallery"],
):

    @task
    def tell_the_time(logical_date) -> str:
        paris = logical_date.astimezone(ZoneInfo("Europe/Paris"))
        return f"{paris:%H:%M} in Paris, {logical_date:%H:%M} in UTC"

    tell_the_time()
