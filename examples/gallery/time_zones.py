"""A schedule on a wall clock: every day at half past two in the night, in Paris, also on the days when clocks change.

On 29 March 2026 there is no half past two in Paris: that run comes an hour later by the clock, at half past three. On 25 October
half past two comes twice, and the run comes once. `tradewind dags next-execution time_zones -n 3` shows what comes.
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
