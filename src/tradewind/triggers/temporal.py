"""Triggers that wait for a point in time. They never run: the scheduler waits in their place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tradewind.execution.task_instance import micros_of
from tradewind.execution.xcom_codec import encode_xcom
from tradewind.model.errors import DefinitionError
from tradewind.model.moments import from_micros
from tradewind.model.waits import MomentWait, Wait
from tradewind.sdk.trigger import BaseTrigger, TaskSuccessEvent, TriggerEvent


class DateTimeTrigger(BaseTrigger):
    """Fires at a point in time.

    Args:
        moment: a timezone-aware datetime.
        end_from_trigger: end the task with success, without another attempt.
    """

    def __init__(self, moment: datetime, *, end_from_trigger: bool = False) -> None:
        super().__init__()
        if not isinstance(moment, datetime):
            raise DefinitionError(f"{type(self).__name__}: moment is {moment!r}; it must be a datetime")
        if moment.tzinfo is None:
            raise DefinitionError(f"{type(self).__name__}: moment is {moment.isoformat()}, without a time zone; add one")
        self.moment = from_micros(micros_of(moment))
        self.end_from_trigger = end_from_trigger

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kwargs = {"moment": self.moment, "end_from_trigger": self.end_from_trigger}
        return "tradewind.triggers.temporal.DateTimeTrigger", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while (left := (self.moment - datetime.now(UTC)).total_seconds()) > 0:
            await asyncio.sleep(min(left, 60))
        yield TaskSuccessEvent() if self.end_from_trigger else TriggerEvent(self.moment)

    def as_wait(self) -> Wait | None:
        if type(self).run is not DateTimeTrigger.run or self.end_from_trigger:
            return None
        return MomentWait(micros_of(self.moment), encode_xcom(self.moment))


class TimeDeltaTrigger(DateTimeTrigger):
    """Fires after a duration.

    Args:
        delta: the duration from now, a timedelta.
    """

    def __init__(self, delta: timedelta, *, end_from_trigger: bool = False) -> None:
        super().__init__(datetime.now(UTC) + delta, end_from_trigger=end_from_trigger)
