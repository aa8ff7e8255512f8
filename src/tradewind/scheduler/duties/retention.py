"""Delete finished runs that are older than the configured age, a few at a time. Files that they spilled go with the next sweep
of `spills.py`, their logs with `run_logs.py`."""

from __future__ import annotations

from tradewind.model.errors import StoreError
from tradewind.observe.log import Log
from tradewind.scheduler.core import Scheduler

log = Log("retention")


class Retention:
    """`age` and `interval` are microseconds; the newest `keep` runs of each DAG stay whatever their age."""

    name = "retention"

    def __init__(self, scheduler: Scheduler, age: int, keep: int, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._age = age
        self._keep = keep

    def run_once(self) -> bool:
        if not self._age:
            return False
        now = self._scheduler.clock.wall()
        try:
            removed = self._scheduler.store.retire(now - self._age, self._keep, now)
        except StoreError as error:
            log.warning("old runs could not be deleted now", error=str(error))
            return False
        if removed.runs:
            log.info("old runs were deleted", count=removed.runs)
            self._scheduler.runs.deleted(removed.removed)
        return removed.runs > 0
