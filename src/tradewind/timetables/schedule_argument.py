"""The argument `schedule` of a DAG: conversion to a `Schedule`, and validation."""

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
from tradewind.timetables.custom import to_custom_schedule
from tradewind.timetables.runs import Bounds
from tradewind.timetables.steps import always_positive, delta_of, describe_delta, shift
from tradewind.timetables.zones import zone

_RELATIVE = ("years", "months", "days", "hours", "minutes", "seconds", "microseconds", "leapdays")
_BUILT_IN = "tradewind.timetables."
_ABSOLUTE = ("year", "month", "day", "hour", "minute", "second", "microsecond")


def parse_schedule(value: Any, *, timezone: str, defaults: Literal["trigger", "data"]) -> Schedule:
    """The schedule of a DAG.

    Args:
        value: None, a preset (`@daily`), a cron expression, a timedelta, a relativedelta, a `Timetable` or a `Schedule`.
        timezone: the time zone of the DAG, for cron expressions.
        defaults: the meaning of a cron expression or timedelta. `trigger`: a run is at the tick (Airflow 3). `data`: a run is for
            the data interval that ends at the tick (Airflow 1 and 2).

    Raises:
        ScheduleError: the value is invalid. The message names the part, its value, and the valid values.
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
        f"schedule={value!r} is a {type(value).__name__}; it must be None, a preset such as '@daily', a cron "
        f"expression such as '0 6 * * *', a timedelta, a relativedelta, or a timetable"
    )


def _read_timetable(timetable: Timetable, timezone: str) -> Schedule:
    """A built-in timetable is converted to its schedule. Any other timetable stays code, which runs in a child process."""
    as_schedule = getattr(timetable, "as_schedule", None)
    if as_schedule is not None and type(timetable).__module__.startswith(_BUILT_IN):
        schedule: Schedule = as_schedule(timezone)
        return schedule
    return to_custom_schedule(timetable)


def _read_text(text: str, timezone: str, defaults: str) -> Schedule:
    name = text.strip().lower()
    if name == "@once":
        return OnceSchedule()
    if name == "@continuous":
        return ContinuousSchedule()
    if not name:
        raise ScheduleError("schedule='' is empty; use schedule=None for a DAG that runs only when it is triggered")
    return CronSchedule((preset(text),), timezone, interval_kind=defaults)


def delta_from(value: Any) -> Delta:
    """A timedelta or relativedelta as a `Delta`. (A relativedelta is recognized by its attributes, to avoid importing dateutil.)

    Raises:
        ScheduleError: a part that is not supported in a schedule.
    """
    if isinstance(value, timedelta):
        return Delta(micros=duration_micros(value))
    if getattr(value, "weekday", None) is not None:
        raise ScheduleError(f"{value!r}: a weekday is not supported in a schedule; use a cron expression such as '0 0 * * fri'")
    parts: dict[str, float] = {name: count for name in _RELATIVE if (count := getattr(value, name, 0))}
    parts |= {name: number for name in _ABSOLUTE if (number := getattr(value, name, None)) is not None}
    return delta_of(**parts)


def validate(schedule: Schedule, bounds: Bounds | None = None) -> None:
    """Check that a schedule can work; with `bounds`, also that it can work for a DAG with these dates.

    Raises:
        ScheduleError: the schedule cannot work; the message says why.
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
                    f"a schedule must go forward in time; a step of {describe_delta(schedule.delta)} does not (at least not from "
                    f"every day of the year)"
                )
            _validate_interval(schedule.interval, schedule.interval_kind)
        case EventsSchedule():
            if list(schedule.dates) != sorted(schedule.dates):
                raise ScheduleError("the dates of an events schedule must be sorted")
    if bounds is None or isinstance(schedule, NoSchedule):
        return
    if bounds.catchup and bounds.earliest is None:
        raise ScheduleError("catchup=True needs a start_date, because otherwise there is no first run to catch up from")


def _validate_interval(interval: Delta, kind: str) -> None:
    if kind not in ("trigger", "data"):
        raise ScheduleError(f"interval_kind={kind!r} is unknown; it must be 'trigger' or 'data'")
    if shift(0, interval) < 0:
        raise ScheduleError(f"the length of a data interval must not be negative; it is {describe_delta(interval)}")
