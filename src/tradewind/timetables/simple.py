"""Timetables without a calendar: never by itself, once, again and again."""

from __future__ import annotations

from tradewind.model.definition import ContinuousSchedule, NoSchedule, OnceSchedule, Schedule
from tradewind.timetables.builtin import BuiltInTimetable


class NullTimetable(BuiltInTimetable):
    """Runs only when somebody triggers it: `schedule=None`."""

    periodic = False
    can_be_scheduled = False

    @property
    def summary(self) -> str:
        return "None"

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return NoSchedule()


class OnceTimetable(BuiltInTimetable):
    """One run, at the start date: `schedule="@once"`."""

    periodic = False

    @property
    def summary(self) -> str:
        return "@once"

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return OnceSchedule()


class ContinuousTimetable(BuiltInTimetable):
    """The next run starts when the last one has ended: `schedule="@continuous"`. Such a DAG has one run at a time."""

    active_runs_limit = 1

    @property
    def summary(self) -> str:
        return "@continuous"

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return ContinuousSchedule()
