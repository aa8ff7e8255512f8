"""Safety net: hand over again what the worker host has not spoken of for too long, and posts whose bell was lost."""

from __future__ import annotations

from tradewind.scheduler.core import Scheduler


class ResendCallbacks:
    name = "callbacks"

    def __init__(self, scheduler: Scheduler, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler

    def run_once(self) -> bool:
        self._scheduler.callbacks.compare_with_store(self._scheduler.clock.wall())
        return False
