"""Safety net: look again at what deferred tasks wait for; and say once of each wait that can never end.

What ends a wait is noticed in the commit that writes it; this finds what was missed. Its interval is the re-check that a monitor of
waiting tasks would have.
"""

from __future__ import annotations

from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.waits.impossible_wait_reporter import ImpossibleWaitReporter


class CheckWaits:
    name = "look_at_waits"

    def __init__(self, scheduler: Scheduler, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._watch = ImpossibleWaitReporter(scheduler.store, scheduler.waits, scheduler.notify)

    def run_once(self) -> bool:
        if self._scheduler.busy:
            return True
        self._scheduler.waits.notice_all()
        self._watch.look(self._scheduler.active_runs_by_id, self._scheduler.clock.wall())
        return False
