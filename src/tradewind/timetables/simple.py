"""Timetables without dates: never, once, and continuously."""

from __future__ import annotations

from tradewind.model.definition import ContinuousSchedule, NoSchedule, OnceSchedule, Schedule
from tradewind.timetables.builtin import BuiltInTimetable


class NullTimetable(BuiltInTimetable):
    """Runs only when triggered: `schedule=None`."""

    periodic = False
    can_be_scheduled = False

    @property
    def summary(self) -> str:
        return "None"

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return NoSchedule()


class PartitionedAtRuntime(NullTimetable):
    """Runs only when triggered, optionally with a partition key. Its tasks set the partition keys of their asset events."""

    partitioned_at_runtime = True

    @property
    def summary(self) -> str:
        return "PartitionedAtRuntime"

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return NoSchedule(partitioned_at_runtime=True)


class OnceTimetable(BuiltInTimetable):
    """One run, at the start date: `schedule="@once"`."""

    periodic = False

    @property
    def summary(self) -> str:
        return "@once"

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return OnceSchedule()


class ContinuousTimetable(BuiltInTimetable):
    """Starts the next run when the last run has ended: `schedule="@continuous"`. Such a DAG has one running run at a time."""

    active_runs_limit = 1

    @property
    def summary(self) -> str:
        return "@continuous"

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return ContinuousSchedule()
