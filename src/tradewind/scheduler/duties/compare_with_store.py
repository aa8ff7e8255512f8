"""Safety net: compare what the scheduler remembers with what the store says, and read anew what differs.

Every command tells the scheduler what it changed; this finds what such a word was lost for.
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
            log.warning("changes were found that nobody had told of", count=found)
        return False
