"""Runs by day, in a time zone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo

from tradewind.api.ui_shapes import CalendarDay
from tradewind.model.moments import from_micros
from tradewind.model.states import RUN_STATES, RunState

_WORST_FIRST = (RunState.FAILED, RunState.RUNNING, RunState.QUEUED, RunState.SUCCESS)


def days_of(counted: Iterable[tuple[int, int, int]], planned: Sequence[int], zone: tzinfo) -> list[CalendarDay]:
    """The days that have runs, in ascending order.

    Args:
        counted: (moment, state code, how many runs), microseconds.
        planned: moments of future runs.
    """
    days: dict[str, dict[RunState, int]] = {}
    coming: dict[str, int] = {}
    for moment, state, number in counted:
        day = days.setdefault(_date(moment, zone), {})
        day[RUN_STATES[state]] = day.get(RUN_STATES[state], 0) + number
    for moment in planned:
        coming[_date(moment, zone)] = coming.get(_date(moment, zone), 0) + 1
    found = []
    for date in sorted(days.keys() | coming.keys()):
        counts = days.get(date, {})
        worst = next((state.value for state in _WORST_FIRST if counts.get(state)), None)
        found.append(
            CalendarDay(
                date,
                worst,
                counts.get(RunState.QUEUED, 0),
                counts.get(RunState.RUNNING, 0),
                counts.get(RunState.SUCCESS, 0),
                counts.get(RunState.FAILED, 0),
                coming.get(date, 0),
            )
        )
    return found


def _date(moment: int, zone: tzinfo) -> str:
    return from_micros(moment).astimezone(zone).date().isoformat()
