"""Sensors that wait for a duration."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tradewind.model.errors import DefinitionError
from tradewind.model.moments import duration_micros, from_micros
from tradewind.model.wait_plans import MomentPlan
from tradewind.sensors.moment import MomentSensor, wait_start


class TimeDeltaSensor(MomentSensor):
    """Waits until a duration after the end of the run's data interval (after `run_after`, if the run has no data interval).

    Args:
        delta: the duration, a timedelta.
    """

    def __init__(self, *, delta: timedelta, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(delta, timedelta):
            raise DefinitionError(f"{self._name_in_errors()}: delta is {delta!r}; it must be a timedelta")
        self.delta = delta

    def moment(self, context: Any) -> datetime:
        workload = context["ti"].workload
        end = workload.interval_end if workload.interval_end is not None else workload.run_after
        return from_micros(end) + self.delta

    def plan(self) -> MomentPlan | None:
        return MomentPlan("interval_end", duration_micros(self.delta))


class TimeDeltaSensorAsync(TimeDeltaSensor):
    """Airflow 2's name for a sensor that uses no slot while it waits. Here `TimeDeltaSensor` does the same."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"deferrable": True, **kwargs})


class WaitSensor(MomentSensor):
    """Waits for a duration after the first start of the try.

    Args:
        time_to_wait: a timedelta, or a number of minutes.
    """

    _until: datetime | None = None

    def __init__(self, *, time_to_wait: timedelta | int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(time_to_wait, bool) or not isinstance(time_to_wait, timedelta | int):
            raise DefinitionError(
                f"{self._name_in_errors()}: time_to_wait is {time_to_wait!r}; it must be a timedelta or a number of minutes"
            )
        self.time_to_wait = time_to_wait if isinstance(time_to_wait, timedelta) else timedelta(minutes=time_to_wait)

    def moment(self, context: Any) -> datetime:
        if self._until is None:
            self._until = wait_start(context) + self.time_to_wait
        return self._until

    def plan(self) -> MomentPlan | None:
        return MomentPlan("start", duration_micros(self.time_to_wait))
