"""Reports each open wait that can never end, once: in the scheduler's log, and as a notice to listening clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tradewind.model.errors import StoreError
from tradewind.model.waits import tasks_waits
from tradewind.observe.log import Log
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.waits.impossible_waits import why_impossible
from tradewind.scheduler.waits.wait_index import WaitIndex
from tradewind.store.port import Store
from tradewind.wire.messages import AttemptKey, Notice

log = Log("scheduler")

AT_MOST = 50
"""Maximum number of waits that one call examines; with many open waits, a round takes several calls."""


class ImpossibleWaitReporter:
    """See the module."""

    def __init__(self, store: Store, waits: WaitIndex, notify: Callable[[Notice], None]) -> None:
        self._store = store
        self._waits = waits
        self._notify = notify
        self._examined: set[AttemptKey] = set()
        """Waits that were examined in this round."""
        self._reported: set[AttemptKey] = set()

    def report(self, active_runs_by_id: dict[int, ActiveRun], now: int) -> None:
        """Examine the next waits and report those that can never end."""
        open_keys = {one.key for one in self._waits.open.values()}
        self._reported &= open_keys
        keys = list(self._next_keys())
        if not keys:
            self._examined.clear()  # the next round
            keys = list(self._next_keys())
        for key in keys:
            self._examined.add(key)
            active_run, waiting = active_runs_by_id.get(key[0]), self._waits.open[key[:2]]
            if active_run is None or key in self._reported:
                continue
            try:
                found = why_impossible(self._store, active_run.row, key[1], tasks_waits(waiting.deferral.wait), now)
            except StoreError:
                return
            except Exception:
                log.exception("a wait cannot be examined", run=key[0], slot=key[1])
                continue
            if found:
                self._reported.add(key)
                task_id, _ = active_run.where(key[1])
                row, sentence = active_run.row, " ".join(one.sentence for one in found)
                log.warning(
                    "a task waits for something that cannot happen",
                    dag_id=row.dag_id,
                    run_id=row.run_id,
                    task_id=task_id,
                    why=sentence,
                )
                self._notify(
                    Notice(
                        "wait",
                        row.dag_id,
                        row.run_id,
                        "impossible",
                        task_id=active_run.machine.name(key[1]),
                        at=now,
                        text=sentence,
                    )
                )

    def _next_keys(self) -> Iterator[AttemptKey]:
        """Yield the next waits for tasks that were not examined in this round."""
        count = 0
        for one in self._waits.open.values():
            if count == AT_MOST:
                return
            if one.key not in self._examined and tasks_waits(one.deferral.wait):
                count += 1
                yield one.key
