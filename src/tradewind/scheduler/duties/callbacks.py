"""Safety net: send callback requests again whose result is overdue, and find requests that were not noticed."""

from __future__ import annotations

from tradewind.scheduler.core import Scheduler


class ResendCallbacks:
    """See the module."""

    name = "callbacks"

    def __init__(self, scheduler: Scheduler, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler

    def run_once(self) -> bool:
        self._scheduler.callbacks.compare_with_store(self._scheduler.clock.wall())
        return False
