"""A sensor that waits for a time of day."""

from __future__ import annotations

import datetime
from typing import Any

from tradewind.model.errors import DefinitionError
from tradewind.model.moments import SECOND
from tradewind.model.wait_plans import MomentPlan
from tradewind.model.zones import zone_name
from tradewind.sensors.moment import MomentSensor, wait_start


class TimeSensor(MomentSensor):
    """Waits until a time of day, on the day on which the try started, in the DAG's time zone. Does not wait if the time has passed.

    Args:
        target_time: a `datetime.time`. Its own time zone, if it has one, is used instead of the DAG's.
    """

    def __init__(self, *, target_time: datetime.time, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(target_time, datetime.time):
            raise DefinitionError(f"{self._name_in_errors()}: target_time is {target_time!r}; it must be a datetime.time")
        self.target_time = target_time

    def moment(self, context: Any) -> datetime.datetime:
        zone = self.target_time.tzinfo or self.dag.zone_in_use
        return datetime.datetime.combine(wait_start(context).astimezone(zone).date(), self.target_time, tzinfo=zone)

    def plan(self) -> MomentPlan | None:
        at = self.target_time
        micros = ((at.hour * 60 + at.minute) * 60 + at.second) * SECOND + at.microsecond
        return MomentPlan("midnight", micros, zone_name(at.tzinfo or self.dag.zone_in_use) or "")


class TimeSensorAsync(TimeSensor):
    """Airflow 2's name for a sensor that uses no slot while it waits. Here `TimeSensor` does the same."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"deferrable": True, **kwargs})
