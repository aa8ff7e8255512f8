"""Timetables whose runs stand for the time between two ticks: the run of [start, end) fires at its end (Airflow 1 and 2)."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from tradewind.model.definition import CronSchedule, Delta, DeltaSchedule, Schedule
from tradewind.timetables.authors import delta_from
from tradewind.timetables.base import Timetable
from tradewind.timetables.builtin import BuiltInTimetable, CronTimetable, DeltaInput, packed, unpacked, zone_of
from tradewind.timetables.cron import preset


class CronDataIntervalTimetable(CronTimetable):
    """The time between two ticks of a cron expression.

    Args:
        cron: an expression or a preset.
        timezone: the zone on whose wall clock it is read.
    """

    def __init__(self, cron: str, timezone: str | tzinfo) -> None:
        self._expression = preset(cron)
        self._timezone = zone_of(timezone)

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return CronSchedule((self._expression,), self._timezone, interval_kind="data")

    def serialize(self) -> dict[str, Any]:
        return {"expression": self._expression, "timezone": self._timezone}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(data["expression"], data["timezone"])


class DeltaDataIntervalTimetable(BuiltInTimetable):
    """Intervals of one length, one after the other.

    Args:
        delta: a timedelta or relativedelta.
    """

    def __init__(self, delta: DeltaInput) -> None:
        self._delta = delta

    @property
    def summary(self) -> str:
        return str(self._delta)

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        delta = self._delta if isinstance(self._delta, Delta) else delta_from(self._delta)
        return DeltaSchedule(delta, interval_kind="data")

    def serialize(self) -> dict[str, Any]:
        return {"delta": packed(self._delta)}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(unpacked(data["delta"]))
