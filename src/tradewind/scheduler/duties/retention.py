"""Delete expired values of the task state store, and finished runs that are older than the configured age, a few at a time.

`spills.py` deletes the files of their large XComs later, `run_logs.py` their logs.
"""

from __future__ import annotations

from tradewind.model.errors import StoreError
from tradewind.observe.log import Log
from tradewind.scheduler.core import Scheduler

log = Log("retention")

EXPIRED_AT_ONCE = 1_000
"""Maximum number of expired values that one step deletes."""


class Retention:
    """See the module.

    Args:
        age: microseconds.
        keep: number of newest runs of each DAG that are kept, regardless of their age.
        interval: microseconds.
    """

    name = "retention"

    def __init__(self, scheduler: Scheduler, age: int, keep: int, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._age = age
        self._keep = keep

    def run_once(self) -> bool:
        now = self._scheduler.clock.wall()
        try:
            expired = self._scheduler.store.delete_expired_task_state(now, EXPIRED_AT_ONCE)
            if not self._age:
                return expired == EXPIRED_AT_ONCE
            removed = self._scheduler.store.delete_old_runs(now - self._age, self._keep, now)
        except StoreError as error:
            log.warning("old runs could not be deleted now", error=str(error))
            return False
        if removed.runs:
            log.info("old runs were deleted", count=removed.runs)
            self._scheduler.runs.deleted(removed.removed)
        return removed.runs > 0 or expired == EXPIRED_AT_ONCE
