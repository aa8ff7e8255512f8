"""Delete the logs of runs that were deleted.

The transaction that deletes a run leaves a row that says so. The row goes when no log of the run is left, so a crash between the
two costs nothing, and logs are never judged by what a database happens not to know.
"""

from __future__ import annotations

from tradewind.model.errors import StoreError
from tradewind.observe.log import Log
from tradewind.scheduler.core import Scheduler
from tradewind.storage.log_deletion import remove_run

log = Log("retention")

FILES_AT_A_TIME = 500
RUNS_AT_A_TIME = 50


class RunLogs:
    """`interval` is microseconds between two looks for deleted runs."""

    name = "run_logs"

    def __init__(self, scheduler: Scheduler, interval: int, log_folder: str) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._folder = log_folder
        self._failed = False

    def run_once(self) -> bool:
        try:
            return self._step()
        except StoreError as error:
            log.warning("logs of deleted runs cannot be looked for now", error=str(error))
        except OSError as error:
            if not self._failed:
                log.error(
                    "logs of deleted runs cannot be deleted; it is tried again", path=error.filename, error=error.strerror
                )
            self._failed = True
        return False

    def _step(self) -> bool:
        store, left = self._scheduler.store, FILES_AT_A_TIME
        retired = store.retired_logs(RUNS_AT_A_TIME)
        finished = []
        for one in retired:
            again = store.find_run(one.dag_id, one.run_id) is not None  # a run of that name was made since: its logs stay
            removed = remove_run(self._folder, one.dag_id, one.run_id, one.at / 1e6 if again else None, left)
            left -= removed.files
            if removed.done:
                finished.append(one)
            if left <= 0:
                break
        if finished:
            store.forget_retired_logs(finished)
            self._failed = False
        return left <= 0 or len(finished) == RUNS_AT_A_TIME
