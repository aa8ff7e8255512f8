"""Delete the logs of runs that were deleted.

The transaction that deletes a run leaves a row with its name. The row is deleted when no log of the run is left, so a crash
between the two leaves no log behind. Logs are never deleted only because the database does not know their run.
"""

from __future__ import annotations

from tradewind.model.errors import StoreError
from tradewind.observe.log import Log
from tradewind.scheduler.core import Scheduler
from tradewind.storage.port import LogStorage
from tradewind.wire.log_paths import run_folder

log = Log("retention")

FILES_AT_A_TIME = 500
RUNS_AT_A_TIME = 50


class RunLogs:
    """See the module. `interval` is microseconds."""

    name = "run_logs"

    def __init__(self, scheduler: Scheduler, interval: int, logs: LogStorage) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._logs = logs
        self._failed = False

    def run_once(self) -> bool:
        try:
            return self._step()
        except StoreError as error:
            log.warning("logs of deleted runs cannot be searched now", error=str(error))
        except OSError as error:
            if not self._failed:
                log.error(
                    "logs of deleted runs cannot be deleted; it is tried again", path=error.filename, error=error.strerror
                )
            self._failed = True
        return False

    def _step(self) -> bool:
        store, left = self._scheduler.store, FILES_AT_A_TIME
        retired = store.logs_to_delete(RUNS_AT_A_TIME)
        finished = []
        for one in retired:
            again = store.find_run(one.dag_id, one.run_id) is not None  # a new run has this name: its logs stay
            removed = self._logs.remove_run(run_folder(one.dag_id, one.run_id), one.at / 1e6 if again else None, left)
            left -= removed.files
            if removed.done:
                finished.append(one)
            if left <= 0:
                break
        if finished:
            store.delete_log_entries(finished)
            self._failed = False
        return left <= 0 or len(finished) == RUNS_AT_A_TIME
