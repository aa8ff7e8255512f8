"""Triggers for tests: one fires at once, one fails at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from tradewind.sdk.trigger import BaseTrigger, TriggerEvent


class SuccessTrigger(BaseTrigger):
    """Fires True."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "tradewind.triggers.testing.SuccessTrigger", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield TriggerEvent(True)


class FailureTrigger(BaseTrigger):
    """Raises ValueError."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "tradewind.triggers.testing.FailureTrigger", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        raise ValueError("Deferred trigger failed")
        yield TriggerEvent(None)
