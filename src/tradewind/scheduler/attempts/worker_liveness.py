"""Whether processes of a worker that is not connected may still run."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tradewind.model.moments import SECOND
from tradewind.platform.clock import Clock
from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
from tradewind.wire.worker_names import home_of, is_remote, worker_at

LOST_AFTER = 40 * SECOND
"""A worker that was not connected for this time is lost, if none of its processes is alive and another worker is connected."""


class WorkerLiveness:
    """See the module.

    Args:
        home: names the home folder of this scheduler (`wire.worker_names.worker_at`); empty: there is one.
        connected: returns the names of the connected workers.
        holds_lock: whether a process of a worker of this home folder is alive.
    """

    def __init__(
        self,
        clock: Clock,
        home: str,
        remote_workers: RemoteWorkers,
        connected: Callable[[], Collection[str]],
        holds_lock: Callable[[str], bool],
    ) -> None:
        self._clock = clock
        self._home = home
        self._remote_workers = remote_workers
        self._connected = connected
        self._holds_lock = holds_lock
        self._loaded = clock.monotonic()

    def may_live(self, worker: str) -> bool:
        if is_remote(worker):
            return self._remote_workers.may_live(worker)
        if home_of(worker) not in ("", self._home):
            # on another machine, where a standby scheduler forwards its connection to this scheduler
            return self._clock.monotonic() < self._loaded + LOST_AFTER
        if self._home and worker_at(worker, self._home) in self._connected():
            return False  # the name is from before `db move`; the present process of this worker holds its lock
        return self._holds_lock(worker)
