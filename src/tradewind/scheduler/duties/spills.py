"""Delete files of large XComs that no row refers to: those of deleted runs, of values that were overwritten or cleared, and of
attempts that died before their report.

Files are named by their content, so a new attempt may need a file that is about to be deleted: `storage/local_spills.py` explains
how this is prevented. While no worker host is connected nothing is deleted, because a report that waits there may name a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tradewind.model.errors import StoreError
from tradewind.observe.log import Log
from tradewind.scheduler.core import Scheduler
from tradewind.storage.local_spills import SPILL_GRACE_SECONDS
from tradewind.storage.port import SpillStorage

log = Log("spills")

AT_A_TIME = 500


class Spills:
    """See the module. `interval` is microseconds between two passes over the folder."""

    name = "spills"

    def __init__(
        self, scheduler: Scheduler, interval: int, spills: SpillStorage, grace_seconds: float = SPILL_GRACE_SECONDS
    ) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._spills = spills
        self._grace = grace_seconds
        self._walk: Iterator[tuple[str, float]] | None = None

    def run_once(self) -> bool:
        if not self._scheduler.executor.ready:
            return False
        older_than = self._scheduler.clock.wall() / 1e6 - self._grace
        if self._walk is None:
            self._walk = self._spills.entries()
        seen = list(islice(self._walk, AT_A_TIME))
        if len(seen) < AT_A_TIME:
            self._walk = None
        old = [name for name, changed in seen if changed < older_than]
        try:
            used = self._scheduler.store.used_spills(old) if old else set()
        except StoreError as error:
            log.warning("files of XComs that nothing refers to cannot be searched now", error=str(error))
            return False
        removed = sum(self._spills.remove(name, older_than) for name in old if name not in used)
        if removed:
            log.info("files of XComs that nothing refers to were deleted", count=removed)
        return self._walk is not None
