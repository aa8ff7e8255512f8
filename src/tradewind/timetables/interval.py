"""Timetables whose runs are for the data interval between two times; a run is due at its end (Airflow 1 and 2)."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from tradewind.model.definition import CronSchedule, Delta, DeltaSchedule, Schedule
from tradewind.timetables.base import Timetable
from tradewind.timetables.builtin import BuiltInTimetable, CronTimetable, DeltaInput, decode_delta, encode_delta, timezone_name
from tradewind.timetables.cron import preset
from tradewind.timetables.schedule_argument import delta_from


class CronDataIntervalTimetable(CronTimetable):
    """Runs for the data intervals between the times of a cron expression.

    Args:
        cron: a cron expression or a preset.
        timezone: the time zone of the cron expression.
    """

    def __init__(self, cron: str, timezone: str | tzinfo) -> None:
        self._expression = preset(cron)
        self._timezone = timezone_name(timezone)

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return CronSchedule((self._expression,), self._timezone, interval_kind="data")

    def serialize(self) -> dict[str, Any]:
        return {"expression": self._expression, "timezone": self._timezone}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(data["expression"], data["timezone"])


class DeltaDataIntervalTimetable(BuiltInTimetable):
    """Runs for consecutive data intervals of the same length.

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
        return {"delta": encode_delta(self._delta)}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(decode_delta(data["delta"]))
