"""Delete files of large XComs that no row refers to: those of deleted runs, of values that were overwritten or cleared, and of
attempts that died before their report.

Files are named by their content, so a new attempt may need a file that is about to be deleted: `storage/spill.py` explains how
this is prevented. While no worker host is connected nothing is deleted, because a report that waits there may name a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tradewind.model.errors import StoreError
from tradewind.observe.log import Log
from tradewind.scheduler.core import Scheduler
from tradewind.storage.spill import SPILL_GRACE_SECONDS, remove_spill

log = Log("spills")

AT_A_TIME = 500


class Spills:
    """See the module. `interval` is microseconds between two passes over the folder."""

    name = "spills"

    def __init__(
        self, scheduler: Scheduler, interval: int, xcom_folder: str, grace_seconds: float = SPILL_GRACE_SECONDS
    ) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._folder = xcom_folder
        self._grace = grace_seconds
        self._walk: Iterator[tuple[str, float]] | None = None

    def run_once(self) -> bool:
        if not self._scheduler.executor.ready:
            return False
        older_than = self._scheduler.clock.wall() / 1e6 - self._grace
        if self._walk is None:
            self._walk = _files(self._folder)
        seen = list(islice(self._walk, AT_A_TIME))
        if len(seen) < AT_A_TIME:
            self._walk = None
        old = [name for name, changed in seen if changed < older_than]
        try:
            used = self._scheduler.store.used_spills(old) if old else set()
        except StoreError as error:
            log.warning("files of XComs that nothing refers to cannot be searched now", error=str(error))
            return False
        removed = sum(remove_spill(Path(self._folder) / name, older_than) for name in old if name not in used)
        if removed:
            log.info("files of XComs that nothing refers to were deleted", count=removed)
        return self._walk is not None


def _files(folder: str) -> Iterator[tuple[str, float]]:
    """(name, seconds since the epoch of its last change) of every file."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_file(follow_symlinks=False):
                        yield entry.name, entry.stat(follow_symlinks=False).st_mtime
                except OSError:
                    continue
    except OSError:
        return
