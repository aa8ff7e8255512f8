"""Base class of sensors that wait for a point in time, which they know in advance."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tradewind.execution.task_instance import micros_of
from tradewind.model.moments import from_micros
from tradewind.model.waits import MomentWait, Wait
from tradewind.sensors import base


class MomentSensor(base.BaseSensorOperator):
    """Base class of sensors that wait for a point in time. Subclasses define `moment(context)`.

    The scheduler continues the task at this time. If the sensor pokes itself, its last poke is at this time, not later.

    Args:
        deferrable, start_from_trigger, end_from_trigger: in Airflow, ways to use no slot; here no slot is used anyway.
    """

    _left = 0.0
    """Seconds until the point in time, as of the last poke."""

    def __init__(
        self, *, deferrable: bool = False, start_from_trigger: bool = False, end_from_trigger: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable
        self.start_from_trigger = start_from_trigger
        self.end_from_trigger = end_from_trigger

    def moment(self, context: Any) -> datetime:
        """The timezone-aware point in time at which the wait ends."""
        raise NotImplementedError(f"{type(self).__name__} does not define moment(context)")

    def poke(self, context: Any) -> bool:
        moment = self.moment(context)
        self._left = moment.timestamp() - base.now().timestamp()
        self.log.info("Waiting for %s", moment.isoformat())
        return self._left <= 0

    def as_wait(self, context: Any) -> Wait | None:
        return MomentWait(micros_of(self.moment(context)))

    def next_poke_interval(self, poke_count: int, seed: str) -> float:
        return max(0.0, min(super().next_poke_interval(poke_count, seed), self._left))


def wait_start(context: Any) -> datetime:
    """When this try started to wait: its first start, if it was rescheduled since, otherwise now."""
    first = context["ti"].workload.first_started
    return base.now() if first is None else from_micros(first)


def as_utc(moment: datetime) -> datetime:
    """A plain, timezone-aware datetime. A value without a time zone is in UTC."""
    return from_micros(micros_of(moment)).astimezone(UTC)
