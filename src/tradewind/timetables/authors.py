"""From what a DAG author writes as `schedule=` to a `Schedule`, and whether a schedule makes sense."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    CustomSchedule,
    Delta,
    DeltaSchedule,
    EventsSchedule,
    NoSchedule,
    OnceSchedule,
    Schedule,
)
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import duration_micros
from tradewind.timetables.base import Timetable
from tradewind.timetables.cron import compile_cron, preset
from tradewind.timetables.custom import custom_schedule
from tradewind.timetables.runs import Bounds
from tradewind.timetables.steps import always_positive, delta_of, describe_delta, shift
from tradewind.timetables.zones import zone

_RELATIVE = ("years", "months", "days", "hours", "minutes", "seconds", "microseconds", "leapdays")
_OURS = "tradewind.timetables."
_PLACES = ("year", "month", "day", "hour", "minute", "second", "microsecond")


def from_author(value: Any, *, timezone: str, defaults: Literal["trigger", "data"]) -> Schedule:
    """The schedule of a DAG.

    Args:
        value: None, a preset (`@daily`), a cron expression, a timedelta, a relativedelta, a `Timetable`, or a `Schedule` as it is.
        timezone: the zone of the DAG's start date; cron expressions are read on its wall clock.
        defaults: what a cron expression or timedelta means. "trigger": the run stands at its tick (Airflow 3).
            "data": it covers the interval that ends there (Airflow 1 and 2).

    Raises:
        ScheduleError: it cannot be read. The message names the part, its value, and what is valid.
    """
    schedule = _read(value, timezone, defaults)
    validate(schedule)
    return schedule


def _read(value: Any, timezone: str, defaults: str) -> Schedule:
    match value:
        case None:
            return NoSchedule()
        case str():
            return _read_text(value, timezone, defaults)
        case timedelta():
            return DeltaSchedule(Delta(micros=duration_micros(value)), interval_kind=defaults)
        case NoSchedule() | OnceSchedule() | ContinuousSchedule():
            return value
        case CronSchedule() | DeltaSchedule() | EventsSchedule() | CustomSchedule():
            return value
        case Timetable():
            return _read_timetable(value, timezone)
        case _ if type(value).__name__ == "relativedelta":
            return DeltaSchedule(delta_from(value), interval_kind=defaults)
    raise ScheduleError(
        f"schedule={value!r} is a {type(value).__name__}; a schedule is None, a preset such as '@daily', a cron "
        f"expression such as '0 6 * * *', a timedelta, a relativedelta, or a timetable"
    )


def _read_timetable(timetable: Timetable, timezone: str) -> Schedule:
    """A shipped one is what it stands for; any other stays code, and is asked in a child."""
    as_schedule = getattr(timetable, "as_schedule", None)
    if as_schedule is not None and type(timetable).__module__.startswith(_OURS):
        schedule: Schedule = as_schedule(timezone)
        return schedule
    return custom_schedule(timetable)


def _read_text(text: str, timezone: str, defaults: str) -> Schedule:
    word = text.strip().lower()
    if word == "@once":
        return OnceSchedule()
    if word == "@continuous":
        return ContinuousSchedule()
    if not word:
        raise ScheduleError("schedule='' is empty; write None for a DAG that runs only when it is triggered")
    return CronSchedule((preset(text),), timezone, interval_kind=defaults)


def delta_from(value: Any) -> Delta:
    """A timedelta, or a relativedelta (known by its attributes, so that dateutil need not be imported), as a `Delta`.

    Raises:
        ScheduleError: it says something that a step in time cannot say.
    """
    if isinstance(value, timedelta):
        return Delta(micros=duration_micros(value))
    if getattr(value, "weekday", None) is not None:
        raise ScheduleError(
            f"{value!r}: a weekday cannot be part of a step in time; write a cron expression such as '0 0 * * fri'"
        )
    parts: dict[str, float] = {name: count for name in _RELATIVE if (count := getattr(value, name, 0))}
    parts |= {name: place for name in _PLACES if (place := getattr(value, name, None)) is not None}
    return delta_of(**parts)


def validate(schedule: Schedule, bounds: Bounds | None = None) -> None:
    """Refuse a schedule that cannot work; with `bounds`, also one that cannot work for a DAG with these.

    Raises:
        ScheduleError: the sentence says what is wrong.
    """
    match schedule:
        case CronSchedule():
            zone(schedule.timezone)
            if not schedule.expressions:
                raise ScheduleError("a cron schedule needs at least one expression, such as '0 6 * * *'")
            for expression in schedule.expressions:
                compile_cron(expression)
            _validate_interval(schedule.interval, schedule.interval_kind)
        case DeltaSchedule():
            if not always_positive(schedule.delta):
                raise ScheduleError(
                    f"a schedule must step forward in time; {describe_delta(schedule.delta)} does not (at least not from "
                    f"every day of the year)"
                )
            _validate_interval(schedule.interval, schedule.interval_kind)
        case EventsSchedule():
            if list(schedule.dates) != sorted(schedule.dates):
                raise ScheduleError("the dates of an events schedule must be sorted")
    if bounds is None or isinstance(schedule, NoSchedule):
        return
    if bounds.catchup and bounds.earliest is None:
        raise ScheduleError("catchup=True needs a start_date: without one there is no first run to catch up from")


def _validate_interval(interval: Delta, kind: str) -> None:
    if kind not in ("trigger", "data"):
        raise ScheduleError(f"interval_kind={kind!r} is unknown; valid are 'trigger' and 'data'")
    if shift(0, interval) < 0:
        raise ScheduleError(f"a data interval cannot end before it starts; its length is {describe_delta(interval)}")
