"""What the shipped timetables have in common: each stands for a `Schedule`, which says all that it does.

As the `schedule` of a DAG such an object becomes its `Schedule`, and the scheduler never sees the object. The questions are
answered here too, by the same functions, for subclasses that begin with `super().next_dagrun_info(...)`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from tradewind.model.definition import CronSchedule, Delta, Schedule
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import to_micros
from tradewind.model.zones import zone_name
from tradewind.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable, author_moment
from tradewind.timetables.describe import describe
from tradewind.timetables.runs import Bounds, RunTimes, manual_interval, next_run
from tradewind.timetables.steps import delta_of
from tradewind.timetables.ticks import Ticks, ticks


class BuiltInTimetable(Timetable):
    """A timetable that is a `Schedule`."""

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        """What it stands for. `timezone` is the DAG's, for dates written without one."""
        raise NotImplementedError

    @property
    def description(self) -> str:
        return describe(self.as_schedule())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.as_schedule() == other.as_schedule()

    def __hash__(self) -> int:
        return hash((type(self), self.as_schedule()))

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        at = to_micros(run_after)
        found = manual_interval(self.as_schedule(), at, _present()) or (at, at)
        return DataInterval(author_moment(found[0]), author_moment(found[1]))

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        last = None
        if last_automated_data_interval is not None:
            start, end = (to_micros(moment) for moment in last_automated_data_interval)
            last = RunTimes(start, start, end, end)
        earliest, latest = (None if moment is None else to_micros(moment) for moment in restriction[:2])
        found = next_run(self.as_schedule(), last, Bounds(earliest, latest, restriction.catchup), _present())
        if found is None:
            return None
        interval = None
        if found.start is not None and found.end is not None:
            interval = DataInterval(author_moment(found.start), author_moment(found.end))
        return DagRunInfo(author_moment(found.run_after), interval)


class CronTimetable(BuiltInTimetable):
    """A timetable made of one cron expression. Its helpers have the names that subclasses written for Airflow call."""

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
        """The tick after `current`."""
        return self._moment(self._clock().after(to_micros(current)))

    def _get_prev(self, current: datetime) -> datetime:
        """The tick before `current`."""
        return self._moment(self._clock().before(to_micros(current)))

    def _align_to_next(self, current: datetime) -> datetime:
        """The first tick not before `current`."""
        return self._moment(self._clock().at_or_after(to_micros(current)))

    def _align_to_prev(self, current: datetime) -> datetime:
        """The last tick not after `current`."""
        return self._moment(self._clock().at_or_before(to_micros(current)))

    def _moment(self, found: int | None) -> datetime:
        if found is None:
            raise ScheduleError(f"the expression {self._expression!r} does not fire within 50 years")
        moment: datetime = author_moment(found)
        return moment


def _present() -> int:
    """Now. Read here, in the author's process: the calendars themselves know no clock."""
    return to_micros(datetime.now(UTC))


def zone_of(timezone: str | tzinfo) -> str:
    """The name of a zone given by name or as an object."""
    if isinstance(timezone, str):
        return timezone
    name = zone_name(timezone)
    if name is None:
        raise ScheduleError("a timetable needs a timezone, such as 'UTC' or 'Europe/Paris'")
    return name


def packed(delta: Any) -> Any:
    """A timedelta or relativedelta as JSON values: seconds, or its words."""
    if isinstance(delta, timedelta):
        return delta.total_seconds()
    words = (*_COUNTS, *_PLACES)
    return {"relativedelta": {name: count for name in words if (count := getattr(delta, name, None)) not in (None, 0)}}


def unpacked(data: Any) -> Any:
    """What `packed` was given (a relativedelta comes back as `Delta`)."""
    return delta_of(**data["relativedelta"]) if isinstance(data, dict) else timedelta(seconds=data)


_COUNTS = ("years", "months", "days", "hours", "minutes", "seconds", "microseconds", "leapdays")
_PLACES = ("year", "month", "day", "hour", "minute", "second", "microsecond")

DeltaInput = Any
"""A timedelta, a relativedelta, or a `Delta`."""

NO_DELTA = Delta()
