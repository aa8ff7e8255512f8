"""Timetables whose runs are at points in time: the meaning of cron expressions and timedeltas in Airflow 3."""

from __future__ import annotations

from datetime import timedelta, tzinfo
from typing import Any

import msgspec

from tradewind.model.definition import CronSchedule, Delta, DeltaSchedule, Schedule
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import duration_micros
from tradewind.model.partitions import CronPartition
from tradewind.timetables.base import Timetable
from tradewind.timetables.builtin import BuiltInTimetable, CronTimetable, DeltaInput, decode_delta, encode_delta, timezone_name
from tradewind.timetables.cron import preset
from tradewind.timetables.schedule_argument import delta_from

_NOTHING = timedelta()


class CronTriggerTimetable(CronTimetable):
    """Runs at the times of a cron expression.

    Args:
        cron: a cron expression or a preset.
        timezone: the time zone of the cron expression.
        interval: length of the data interval, which ends when the run is due.
        run_immediately: for a DAG without start date and earlier run: also run for the last time that has passed? True: always.
            False or None: if it passed at most a tenth of the interval, or 5 minutes, ago. A timedelta: if it passed at most
            this long ago.
    """

    def __init__(
        self,
        cron: str,
        *,
        timezone: str | tzinfo,
        interval: DeltaInput = _NOTHING,
        run_immediately: bool | timedelta | None = False,
    ) -> None:
        self._expression = preset(cron)
        self._timezone = timezone_name(timezone)
        self._interval = interval
        self._run_immediately = run_immediately

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return CronSchedule(
            (self._expression,),
            self._timezone,
            interval=_delta(self._interval),
            run_immediately=_immediately(self._run_immediately),
        )

    def serialize(self) -> dict[str, Any]:
        return {
            "expression": self._expression,
            "timezone": self._timezone,
            "interval": encode_delta(self._interval),
            "run_immediately": _pack_immediately(self._run_immediately),
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(
            data["expression"],
            timezone=data["timezone"],
            interval=decode_delta(data["interval"]),
            run_immediately=_unpack_immediately(data["run_immediately"]),
        )


class CronPartitionTimetable(CronTriggerTimetable):
    """Runs at the times of a cron expression. Each has a partition key and date instead of a logical date and a data interval.

    Args:
        cron: a cron expression or a preset.
        timezone: the time zone of the cron expression and of the keys.
        run_offset: the partition is this many times of the expression after the run; negative: before it.
        run_immediately: see `CronTriggerTimetable`.
        key_format: format of `strftime` that makes the key from the partition date.
    """

    partitioned = True

    def __init__(
        self,
        cron: str,
        *,
        timezone: str | tzinfo,
        run_offset: int | None = None,
        run_immediately: bool | timedelta | None = False,
        key_format: str = CronPartition().key_format,
    ) -> None:
        super().__init__(cron, timezone=timezone, run_immediately=run_immediately)
        if run_offset is not None and (not isinstance(run_offset, int) or isinstance(run_offset, bool)):
            raise ScheduleError(f"run_offset is {run_offset!r}; it must be an integer, as in Airflow")
        self._run_offset = run_offset or 0
        self._key_format = key_format

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        plain = super().as_schedule(timezone)
        assert isinstance(plain, CronSchedule)
        return msgspec.structs.replace(plain, partition=CronPartition(self._key_format, self._run_offset))

    def serialize(self) -> dict[str, Any]:
        more = {"run_offset": self._run_offset, "key_format": self._key_format}
        return {name: value for name, value in super().serialize().items() if name != "interval"} | more

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(
            data["expression"],
            timezone=data["timezone"],
            run_offset=data["run_offset"],
            run_immediately=_unpack_immediately(data["run_immediately"]),
            key_format=data["key_format"],
        )


class MultipleCronTriggerTimetable(BuiltInTimetable):
    """Runs at the times of several cron expressions together. For the arguments see `CronTriggerTimetable`."""

    def __init__(
        self,
        *crons: str,
        timezone: str | tzinfo,
        interval: DeltaInput = _NOTHING,
        run_immediately: bool | timedelta | None = False,
    ) -> None:
        if not crons:
            raise ScheduleError("MultipleCronTriggerTimetable needs at least one cron expression, such as '0 6 * * *'")
        self._expressions = tuple(preset(cron) for cron in crons)
        self._timezone = timezone_name(timezone)
        self._interval = interval
        self._run_immediately = run_immediately

    @property
    def summary(self) -> str:
        return ", ".join(self._expressions)

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return CronSchedule(
            self._expressions,
            self._timezone,
            interval=_delta(self._interval),
            run_immediately=_immediately(self._run_immediately),
        )

    def serialize(self) -> dict[str, Any]:
        return {
            "expressions": list(self._expressions),
            "timezone": self._timezone,
            "interval": encode_delta(self._interval),
            "run_immediately": _pack_immediately(self._run_immediately),
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(
            *data["expressions"],
            timezone=data["timezone"],
            interval=decode_delta(data["interval"]),
            run_immediately=_unpack_immediately(data["run_immediately"]),
        )


class DeltaTriggerTimetable(BuiltInTimetable):
    """Runs once per `delta`, starting at the start date.

    Args:
        delta: a timedelta or relativedelta.
        interval: length of the data interval, which ends when the run is due.
    """

    def __init__(self, delta: DeltaInput, *, interval: DeltaInput = _NOTHING) -> None:
        self._delta = delta
        self._interval = interval

    @property
    def summary(self) -> str:
        return str(self._delta)

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        return DeltaSchedule(_delta(self._delta), interval=_delta(self._interval))

    def serialize(self) -> dict[str, Any]:
        return {"delta": encode_delta(self._delta), "interval": encode_delta(self._interval)}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(decode_delta(data["delta"]), interval=decode_delta(data["interval"]))


def _delta(value: DeltaInput) -> Delta:
    return value if isinstance(value, Delta) else delta_from(value)


def _immediately(value: bool | timedelta | None) -> bool | int | None:
    if value is not None and not isinstance(value, bool | timedelta):
        raise ScheduleError(f"run_immediately is {value!r}; it must be True, False, None or a timedelta")
    return duration_micros(value) if isinstance(value, timedelta) else value


def _pack_immediately(value: bool | timedelta | None) -> Any:
    return {"seconds": value.total_seconds()} if isinstance(value, timedelta) else value


def _unpack_immediately(data: Any) -> bool | timedelta | None:
    return timedelta(seconds=data["seconds"]) if isinstance(data, dict) else data
