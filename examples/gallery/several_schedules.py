"""More than one cron expression: the shop opens at nine on weekdays and at ten on Saturdays.

This schedule needs several cron expressions, so it uses a timetable. The logical date of a run shows for which time it runs.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from tradewind import DAG, task
from tradewind.timetables.trigger import MultipleCronTriggerTimetable

BERLIN = ZoneInfo("Europe/Berlin")

with DAG(
    "several_schedules",
    schedule=MultipleCronTriggerTimetable("0 9 * * mon-fri", "0 10 * * sat", timezone="Europe/Berlin"),
    start_date=datetime(2026, 1, 1, tzinfo=BERLIN),
    catchup=False,
    tags=["example", "gallery"],
):

    @task
    def open_the_shop(logical_date) -> str:
        return f"open since {logical_date.astimezone(BERLIN):%A, %H:%M}"

    open_the_shop()
