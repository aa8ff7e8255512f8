"""A sensor that waits for a date and time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from tradewind.execution.task_instance import micros_of
from tradewind.model.errors import DefinitionError
from tradewind.model.moments import from_micros, parse_moment
from tradewind.model.wait_plans import MomentPlan
from tradewind.sdk.exceptions import AirflowException
from tradewind.sensors.moment import MomentSensor, as_utc


class DateTimeSensor(MomentSensor):
    """Waits until a date and time.

    Args:
        target_time: a datetime, or a string in ISO 8601; a template. A value without a time zone is in UTC.
    """

    template_fields: Collection[str] = ("target_time",)

    def __init__(self, *, target_time: datetime | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(target_time, datetime | str):
            raise DefinitionError(
                f"{self._name_in_errors()}: target_time is {target_time!r}; it must be a datetime or a string"
            )
        self.target_time = target_time

    def moment(self, context: Any) -> datetime:
        target = self.target_time
        if isinstance(target, datetime):
            return as_utc(target)
        try:
            return from_micros(parse_moment(target))
        except ValueError as error:
            raise AirflowException(f"target_time of task {self.task_id!r}: {error}") from None

    def plan(self) -> MomentPlan | None:
        target = self.target_time
        if isinstance(target, datetime):
            return MomentPlan("epoch", micros_of(target))
        try:
            return MomentPlan("epoch", parse_moment(target))
        except ValueError:
            return None  # a template, or an invalid value, which the attempt will report as an error


class DateTimeSensorAsync(DateTimeSensor):
    """Airflow 2's name for a sensor that uses no slot while it waits. Here `DateTimeSensor` does the same."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"deferrable": True, **kwargs})
