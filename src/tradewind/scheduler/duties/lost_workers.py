"""Give up the attempts of worker hosts that do not come back."""

from __future__ import annotations

from tradewind.scheduler.attempts.worker_liveness import LOST_AFTER
from tradewind.scheduler.core import Scheduler


class LostWorkers:
    """The duty; see `HostRegistry.look_for_lost_workers`."""

    name = "lost workers"

    def __init__(self, scheduler: Scheduler, interval: int, lost_after: int = LOST_AFTER) -> None:
        self._scheduler = scheduler
        self._lost_after = lost_after
        self.interval = interval

    def run_once(self) -> bool:
        if not self._scheduler.paused:
            self._scheduler.hosts.look_for_lost_workers(self._lost_after)
        return False
