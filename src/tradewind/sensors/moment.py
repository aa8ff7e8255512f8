"""What sensors that wait for a moment share: they know when it comes, so they never look later than that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tradewind.execution.task_instance import micros_of
from tradewind.model.moments import from_micros
from tradewind.model.waits import MomentWait, Wait
from tradewind.sensors import base


class MomentSensor(base.BaseSensorOperator):
    """Base of sensors that wait for a moment: subclasses write `moment(context)`.

    The scheduler wakes the task at the moment itself. Where the sensor looks by itself, its last wait is cut short.

    Args:
        deferrable, start_from_trigger, end_from_trigger: Airflow's ways to hold no slot; here none is held anyway.
    """

    _left = 0.0
    """Seconds until the moment, at the last look."""

    def __init__(
        self, *, deferrable: bool = False, start_from_trigger: bool = False, end_from_trigger: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable
        self.start_from_trigger = start_from_trigger
        self.end_from_trigger = end_from_trigger

    def moment(self, context: Any) -> datetime:
        """When the wait is over; aware."""
        raise NotImplementedError(f"{type(self).__name__} does not define moment(context)")

    def poke(self, context: Any) -> bool:
        moment = self.moment(context)
        self._left = moment.timestamp() - base.now().timestamp()
        self.log.info("Waiting for %s", moment.isoformat())
        return self._left <= 0

    def as_wait(self, context: Any) -> Wait | None:
        return MomentWait(micros_of(self.moment(context)))

    def wait_before_next(self, looks: int, seed: str) -> float:
        return max(0.0, min(super().wait_before_next(looks, seed), self._left))


def first_look(context: Any) -> datetime:
    """When this try began to wait: its first start, where it was rescheduled since, else now."""
    first = context["ti"].workload.first_started
    return base.now() if first is None else from_micros(first)


def in_utc(moment: datetime) -> datetime:
    """A plain, aware datetime; without a zone, UTC was meant."""
    return from_micros(micros_of(moment)).astimezone(UTC)
