"""A trigger of the kill test: it fires a moment after it began, in the triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from tradewind.triggers.base import BaseTrigger, TriggerEvent


class Soon(BaseTrigger):
    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "chaos_trigger.Soon", {"seconds": self.seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(self.seconds)
        yield TriggerEvent("soon")
