"""Safety net: examine all open waits again, and report once each wait that can never end.

The end of a wait is noticed after the commit that causes it; this duty finds ends that were missed.
"""

from __future__ import annotations

from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.waits.impossible_wait_reporter import ImpossibleWaitReporter


class CheckWaits:
    name = "look_at_waits"

    def __init__(self, scheduler: Scheduler, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._reporter = ImpossibleWaitReporter(scheduler.store, scheduler.waits, scheduler.notify)

    def run_once(self) -> bool:
        if self._scheduler.busy:
            return True
        self._scheduler.waits.notice_all()
        self._reporter.report(self._scheduler.active_runs_by_id, self._scheduler.clock.wall())
        return False
