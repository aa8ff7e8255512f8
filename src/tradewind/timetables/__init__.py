"""Pure calendars: after this moment, what comes next? No clock, no input or output (but for the tz database's files).

- `next_run`, `manual_interval`, `upcoming`: the questions the scheduler, the API and forecasts ask (`runs`).
- `from_author`, `validate`, `delta_of`, `delta_from`: what a DAG file says, read and checked (`authors`, `steps`).
- `describe`: a schedule as a sentence.

Underneath: `cron` (expressions on a wall clock), `zones` (when a zone changes its offset), `ticks` (both together).
"""

from __future__ import annotations

from tradewind.timetables.authors import delta_from, from_author, validate
from tradewind.timetables.cron import PRESETS
from tradewind.timetables.describe import describe
from tradewind.timetables.runs import Bounds, RunTimes, manual_interval, next_run, upcoming
from tradewind.timetables.steps import delta_of

__all__ = [
    "PRESETS",
    "Bounds",
    "RunTimes",
    "delta_from",
    "delta_of",
    "describe",
    "from_author",
    "manual_interval",
    "next_run",
    "upcoming",
    "validate",
]
