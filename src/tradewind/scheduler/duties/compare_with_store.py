"""Safety net: compare the scheduler's memory with the store, and reload differences.

Every command tells the scheduler what it changed; this duty finds changes whose message was lost.
"""

from __future__ import annotations

from tradewind.observe.log import Log
from tradewind.scheduler.core import Scheduler

log = Log("compare_with_store")


class CompareWithStore:
    name = "compare_with_store"

    def __init__(self, scheduler: Scheduler, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler

    def run_once(self) -> bool:
        if self._scheduler.busy:
            return True
        self._scheduler.prune_timers()
        found = self._scheduler.compare_with_store()
        if found:
            log.warning("changes were found that the scheduler had missed", count=found)
        return False
