"""Base classes of the built-in timetables. Each of them is equivalent to a `Schedule`.

As the `schedule` of a DAG, such an object is converted to its `Schedule`, so the scheduler never sees the object. Its methods use
the same functions as the scheduler; subclasses can call them with `super().next_dagrun_info(...)`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from tradewind.model.definition import CronSchedule, Schedule
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import to_micros
from tradewind.model.zones import zone_name
from tradewind.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable, to_pendulum
from tradewind.timetables.describe import describe
from tradewind.timetables.runs import Bounds, RunTimes, manual_interval, next_run
from tradewind.timetables.steps import delta_of
from tradewind.timetables.ticks import Ticks, ticks


class _Described:
    """The description of the schedule, unless a subclass of users assigns another one."""

    def __get__(self, timetable: BuiltInTimetable | None, _owner: object) -> str:
        return "" if timetable is None else describe(timetable.as_schedule())


class BuiltInTimetable(Timetable):
    """A timetable that is equivalent to a `Schedule`."""

    description: str = _Described()  # type: ignore[assignment]  # it gives a string

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        """The equivalent schedule. `timezone` is the DAG's time zone, for dates without a time zone."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.as_schedule() == other.as_schedule()

    def __hash__(self) -> int:
        return hash((type(self), self.as_schedule()))

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        at = to_micros(run_after)
        found = manual_interval(self.as_schedule(), at, _now()) or (at, at)
        return DataInterval(to_pendulum(found[0]), to_pendulum(found[1]))

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        last = None
        if last_automated_data_interval is not None:
            start, end = (to_micros(moment) for moment in last_automated_data_interval)
            last = RunTimes(start, start, end, end)
        earliest, latest = (None if moment is None else to_micros(moment) for moment in restriction[:2])
        found = next_run(self.as_schedule(), last, Bounds(earliest, latest, restriction.catchup), _now())
        if found is None:
            return None
        interval = None
        if found.start is not None and found.end is not None:
            interval = DataInterval(to_pendulum(found.start), to_pendulum(found.end))
        return DagRunInfo(to_pendulum(found.run_after), interval)


class CronTimetable(BuiltInTimetable):
    """A timetable with one cron expression. Its helper methods have the names that subclasses written for Airflow call."""

    _expression: str
    _timezone: str

    @property
    def summary(self) -> str:
        return self._expression

    def _clock(self) -> Ticks:
        schedule = self.as_schedule()
        assert isinstance(schedule, CronSchedule)
        return ticks(schedule.expressions[0], schedule.timezone)

    def _get_next(self, current: datetime) -> datetime:
        """The first time of the expression after `current`."""
        return self._moment(self._clock().after(to_micros(current)))

    def _get_prev(self, current: datetime) -> datetime:
        """The last time of the expression before `current`."""
        return self._moment(self._clock().before(to_micros(current)))

    def _align_to_next(self, current: datetime) -> datetime:
        """The first time of the expression at or after `current`."""
        return self._moment(self._clock().at_or_after(to_micros(current)))

    def _align_to_prev(self, current: datetime) -> datetime:
        """The last time of the expression at or before `current`."""
        return self._moment(self._clock().at_or_before(to_micros(current)))

    def _moment(self, found: int | None) -> datetime:
        if found is None:
            raise ScheduleError(f"the cron expression {self._expression!r} has no matching time within 50 years")
        moment: datetime = to_pendulum(found)
        return moment


def _now() -> int:
    """The current time. The clock is read here, in the author's process, because the functions of `runs` read none."""
    return to_micros(datetime.now(UTC))


def timezone_name(timezone: str | tzinfo) -> str:
    """The name of a time zone that is given as name or object."""
    if isinstance(timezone, str):
        return timezone
    name = zone_name(timezone)
    if name is None:
        raise ScheduleError("a timetable needs a timezone, such as 'UTC' or 'Europe/Paris'")
    return name


def encode_delta(delta: Any) -> Any:
    """A timedelta or relativedelta as JSON values: seconds, or relativedelta's arguments."""
    if isinstance(delta, timedelta):
        return delta.total_seconds()
    names = (*_COUNTS, *_ABSOLUTE)
    return {"relativedelta": {name: count for name in names if (count := getattr(delta, name, None)) not in (None, 0)}}


def decode_delta(data: Any) -> Any:
    """The inverse of `encode_delta`. A relativedelta becomes a `Delta`."""
    return delta_of(**data["relativedelta"]) if isinstance(data, dict) else timedelta(seconds=data)


_COUNTS = ("years", "months", "days", "hours", "minutes", "seconds", "microseconds", "leapdays")
_ABSOLUTE = ("year", "month", "day", "hour", "minute", "second", "microsecond")

DeltaInput = Any
"""A timedelta, a relativedelta, or a `Delta`."""
