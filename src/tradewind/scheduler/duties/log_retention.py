"""Delete task logs that are older than `logging.retention_days`, and the oldest runs' logs beyond `logging.max_total_mb`.

One pass over the log folder takes many steps, each for a bounded number of files. Active runs keep their logs, whatever the size.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tradewind.observe.log import Log
from tradewind.scheduler.core import Scheduler
from tradewind.storage.port import LogEntry, LogStorage
from tradewind.wire.log_paths import run_folder

log = Log("retention")

FILES_AT_A_TIME = 500


class LogSweep:
    """See the module.

    Args:
        interval: microseconds between two passes.
        age: microseconds; 0: no limit.
        most: maximum number of bytes of all logs; 0: no limit.
    """

    name = "log_sweep"

    def __init__(self, scheduler: Scheduler, interval: int, logs: LogStorage, age: int, most: int) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._logs = logs
        self._age = age
        self._most = most
        self._walk: Iterator[LogEntry] | None = None
        self._runs: dict[str, tuple[float, int]] = {}
        """Folder of a run → (time of its last change, its bytes), of the part of the logs that this pass has read."""
        self._excess: list[str] = []
        """Folders of runs whose logs are to be deleted, the latest first."""
        self._removed = 0

    def run_once(self) -> bool:
        if not self._age and not self._most:
            return False
        try:
            more = self._remove_excess() if self._excess else self._continue_pass()
        except OSError as error:
            log.error("old logs cannot be deleted; it is tried again", path=error.filename, error=error.strerror)
            self._restart_pass()
            return False
        if not more and self._removed:
            log.info("old logs were deleted", files=self._removed)
            self._removed = 0
        return more

    def _restart_pass(self) -> None:
        self._walk = None
        self._runs.clear()
        self._excess.clear()

    def _continue_pass(self) -> bool:
        if self._walk is None:
            self._walk = self._logs.entries()
        found = list(islice(self._walk, FILES_AT_A_TIME))
        older_than = (self._scheduler.clock.wall() - self._age) / 1e6 if self._age else 0.0
        for one in found:
            if one.changed < older_than:
                self._logs.remove(one)
                self._removed += 1
            elif self._most:
                latest, size = self._runs.get(one.run, (0.0, 0))
                self._runs[one.run] = max(latest, one.changed), size + one.size
        if len(found) == FILES_AT_A_TIME:
            return True
        self._choose_excess()
        self._walk = None
        self._runs.clear()
        return bool(self._excess)

    def _choose_excess(self) -> None:
        """Choose the oldest runs whose logs are deleted, so that the others fit into the limit."""
        too_much = sum(size for _, size in self._runs.values()) - self._most if self._most else 0
        if too_much <= 0:
            return
        live = {
            run_folder(active_run.row.dag_id, active_run.row.run_id)
            for active_run in self._scheduler.active_runs_by_id.values()
        }
        chosen = []
        for run, (_, size) in sorted(self._runs.items(), key=lambda one: one[1][0]):
            if too_much <= 0:
                break
            if run not in live:
                chosen.append(run)
                too_much -= size
        if too_much > 0:
            log.warning("the logs of running runs alone are larger than logging.max_total_mb", bytes_too_many=too_much)
        self._excess = chosen[::-1]

    def _remove_excess(self) -> bool:
        left = FILES_AT_A_TIME
        while self._excess and left > 0:
            removed = self._logs.remove_run(self._excess[-1], None, left)
            left -= max(1, removed.files)
            self._removed += removed.files
            if removed.done:
                self._excess.pop()
        return bool(self._excess)
