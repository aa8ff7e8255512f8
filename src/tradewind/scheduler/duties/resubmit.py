"""Safety net: send attempts to the executor again that were dispatched a while ago and have not started.

A worker host that has the attempt already ignores it, and a start is accepted only once.
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
