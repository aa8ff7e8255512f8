"""Safety net: what was dispatched a while ago and has not started is handed to the executor again.

A host that has it already ignores it; a start is accepted once. So this can only help.
"""

from __future__ import annotations

from tradewind.scheduler.core import Scheduler


class Resubmit:
    name = "resubmit"

    def __init__(self, scheduler: Scheduler, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler

    def run_once(self) -> bool:
        if self._scheduler.executor.ready:
            self._scheduler.hosts.resubmit_old(self._scheduler.clock.wall() - self.interval)
        return False
