"""The timetable object of a DAG's `schedule` argument: `dag.timetable`, as Airflow has it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tradewind.timetables.simple import ContinuousTimetable, NullTimetable, OnceTimetable
from tradewind.timetables.trigger import CronTriggerTimetable, DeltaTriggerTimetable


def timetable_of(schedule: Any, timezone: str) -> Any:
    """The timetable with the same meaning. A timetable, or an invalid schedule, is returned unchanged.

    Args:
        schedule: None, a preset (`@daily`), a cron expression, a timedelta, a relativedelta, or a timetable.
        timezone: for cron expressions.

    Raises:
        ScheduleError: the cron expression is invalid.
    """
    if schedule is None:
        return NullTimetable()
    if isinstance(schedule, str):
        name = schedule.strip().lower()
        if name == "@once":
            return OnceTimetable()
        if name == "@continuous":
            return ContinuousTimetable()
        return CronTriggerTimetable(schedule, timezone=timezone)
    if isinstance(schedule, timedelta) or type(schedule).__name__ == "relativedelta":
        return DeltaTriggerTimetable(schedule)
    return schedule
