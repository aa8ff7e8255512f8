"""Timetables as pure functions: which run comes after a date? No clock, no input or output (except files of the tz database).

- `next_run`, `manual_interval`, `upcoming`: used by the scheduler, the API and forecasts (`runs`).
- `parse_schedule`, `validate`, `delta_of`, `delta_from`: read and check the schedule of a DAG file (`schedule_argument`, `steps`).
- `describe`: a schedule as a sentence.

They are based on `cron` (expressions without a time zone), `zones` (when a time zone changes its offset) and `ticks` (both
together).
"""

from __future__ import annotations

from tradewind.timetables.cron import PRESETS
from tradewind.timetables.describe import describe
from tradewind.timetables.runs import Bounds, RunTimes, following, manual_interval, next_run, preceding, upcoming
from tradewind.timetables.schedule_argument import delta_from, parse_schedule, validate
from tradewind.timetables.steps import delta_of

__all__ = [
    "PRESETS",
    "Bounds",
    "RunTimes",
    "delta_from",
    "delta_of",
    "describe",
    "following",
    "manual_interval",
    "next_run",
    "parse_schedule",
    "preceding",
    "upcoming",
    "validate",
]
