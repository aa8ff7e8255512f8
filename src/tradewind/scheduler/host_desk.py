"""Worker hosts: what they hold, what they lack, what they are to run. What was lost on the way is found here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tradewind.model.states import TaskState
from tradewind.scheduler.run_box import RunBox
from tradewind.scheduler.waits import OpenWait, order
from tradewind.wire.log_paths import log_path
from tradewind.wire.messages import AttemptKey, TriggerOrder, Workload

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler


class HostDesk:
    """See the module."""

    def __init__(self, owner: Scheduler) -> None:
        self._owner = owner
        self._hello: tuple[frozenset[AttemptKey], frozenset[AttemptKey]] | None = None
        """What a worker host holds that came while nothing could be written: attempts and triggers."""

    def recovered(self, now: int) -> None:
        """The store can be used again: hear the host that came meanwhile, or hand over what was committed after all."""
        hello, self._hello = self._hello, None
        if hello is not None:
            self.came(*hello)
        elif self._owner.executor.ready:
            self.resubmit_old(now)  # what was committed after all, before anybody was told
            self.run_triggers(one.key for one in self._owner.waits.triggers())

    def attempts(self) -> list[tuple[AttemptKey, TaskState, int]]:
        """Every live attempt: its key, the state of its task instance, and when it was dispatched."""
        found = []
        for run, box in self._owner.boxes.items():
            machine = box.machine
            for slot in box.occupying():
                found.append(((run, slot, machine.fence[slot]), machine.task_state(slot), machine.queued_at[slot]))
        return found

    def came(self, live: frozenset[AttemptKey], triggers: frozenset[AttemptKey] = frozenset()) -> None:
        """A worker host said what it holds: hand over what it lacks, ask for what it ought to hold, stop what is not ours.

        What runs and is not among the living is asked for, not given up: its verdict may be on the way behind the hello.
        While nothing can be written this waits: what memory says then is not committed.
        """
        if self._owner.superseded:
            return  # nor is it then, and never will be
        if self._owner.paused:
            self._hello = live, triggers
            return
        again: list[Workload] = []
        missing: list[AttemptKey] = []
        ours: set[AttemptKey] = set()
        for key, state, _ in self.attempts():
            ours.add(key)
            if key in live:
                if state is TaskState.RESTARTING:
                    self._owner.executor.cancel(key, "it was cleared", self._owner.config.kill_grace)
            elif state is TaskState.QUEUED:
                again.append(self.workload(key[0], key[1]))
            else:
                missing.append(key)
        for key in live - ours:
            if key[0] not in self._owner.quarantine:
                self._owner.executor.cancel(key, "it is not current any more", self._owner.config.kill_grace)
        self._owner.executor.reconcile(missing)
        self._owner.executor.submit(again)
        wanted = {one.key for one in self._owner.waits.triggers()}
        self.run_triggers(sorted(wanted - triggers))
        self._owner.executor.drop_triggers(sorted(key for key in triggers - wanted if key[0] not in self._owner.quarantine))

    def resubmit_old(self, older_than: int) -> int:
        """Safety net: hand over again what was dispatched before a moment and has not started; how many."""
        again = [
            self.workload(key[0], key[1])
            for key, state, queued in self.attempts()
            if state is TaskState.QUEUED and queued <= older_than
        ]
        if again:
            self._owner.executor.submit(again)
        return len(again)

    def reconcile(self) -> None:
        """Safety net: do the hosts still have what we believe to run?"""
        self._owner.executor.reconcile([key for key, state, _ in self.attempts() if state is not TaskState.QUEUED])

    def place(self, dag_id: str) -> tuple[str, int]:
        """Folder of a DAG's files, and what parsing its file cost."""
        entry = self._owner.dags.get(dag_id)
        return self._owner.config.folder(entry.plan.bundle if entry else ""), entry.plan.parse_duration if entry else 0

    def workload(self, run: int, slot: int) -> Workload:
        box = self._owner.boxes[run]
        folder, cost = self.place(box.row.dag_id)
        return box.workload(slot, folder, self._owner.config.default_execution_timeout, cost)

    def run_triggers(self, keys: Iterable[AttemptKey]) -> None:
        orders: list[TriggerOrder] = []
        for key in keys:
            box, waiting = self._owner.boxes.get(key[0]), self._owner.waits.open.get(key[:2])
            if box is not None and waiting is not None and waiting.key == key:
                self._owner.guarded(key[0], lambda b=box, w=waiting: orders.append(self._trigger_order(b, w)))  # type: ignore[misc]
        self._owner.executor.run_triggers(orders)

    def _trigger_order(self, box: RunBox, waiting: OpenWait) -> TriggerOrder:
        _, slot, fence = waiting.key
        entry = self._owner.dags.get(box.row.dag_id)
        folder = self._owner.config.folder(entry.plan.bundle if entry is not None else "")
        log = log_path(box.row.dag_id, box.row.run_id, *box.where(slot), box.machine.tries[slot], fence)
        return order(box, waiting, folder, log)
