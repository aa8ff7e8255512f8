"""Says once of each open wait that it can never end: in the scheduler's log, and to whoever listens."""

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
"""Waits that are looked at each time: with many open ones their turn comes later."""


class ImpossibleWaitReporter:
    """See the module."""

    def __init__(self, store: Store, desk: WaitIndex, notify: Callable[[Notice], None]) -> None:
        self._store = store
        self._desk = desk
        self._notify = notify
        self._looked_at: set[AttemptKey] = set()
        """In this round."""
        self._said: set[AttemptKey] = set()

    def look(self, active_runs_by_id: dict[int, ActiveRun], now: int) -> None:
        """Look at the next few."""
        open_keys = {one.key for one in self._desk.open.values()}
        self._said &= open_keys
        turn = list(self._turn())
        if not turn:
            self._looked_at.clear()  # the next round
            turn = list(self._turn())
        for key in turn:
            self._looked_at.add(key)
            active_run, waiting = active_runs_by_id.get(key[0]), self._desk.open[key[:2]]
            if active_run is None or key in self._said:
                continue
            try:
                found = why_impossible(self._store, active_run.row, key[1], tasks_waits(waiting.deferral.wait), now)
            except StoreError:
                return
            except Exception:
                log.exception("a wait cannot be judged", run=key[0], slot=key[1])
                continue
            if found:
                self._said.add(key)
                task_id, _ = active_run.where(key[1])
                row, sentence = active_run.row, " ".join(one.sentence for one in found)
                log.warning(
                    "a task waits for what cannot come", dag_id=row.dag_id, run_id=row.run_id, task_id=task_id, why=sentence
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

    def _turn(self) -> Iterator[AttemptKey]:
        """Waits for tasks that have not had their turn in this round."""
        count = 0
        for one in self._desk.open.values():
            if count == AT_MOST:
                return
            if one.key not in self._looked_at and tasks_waits(one.deferral.wait):
                count += 1
                yield one.key
