"""Worker hosts: what they hold, what they lack, what they are to run. What was lost on the way is found here."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from tradewind.kernel import events as e
from tradewind.kernel.admission import PARALLELISM
from tradewind.model.states import TaskState
from tradewind.observe.log import Log
from tradewind.scheduler.runs.active_run import ActiveRun, Holder
from tradewind.scheduler.waits.wait_index import OpenWait, order
from tradewind.wire.log_paths import log_path
from tradewind.wire.messages import AttemptKey, TriggerOrder, Workload

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler

log = Log("scheduler")

ENDS_KEPT = 20
"""So many earlier lives of worker hosts are remembered, with how they ended."""


class HostRegistry:
    """See the module."""

    def __init__(self, owner: Scheduler) -> None:
        self._owner = owner
        self._hello: tuple[frozenset[AttemptKey], frozenset[AttemptKey]] | None = None
        """What a worker host holds that came while nothing could be written: attempts and triggers."""
        self._host = ""
        """Name of the worker host's life that said hello last."""
        self._ends: dict[str, str] = {}
        """Earlier life of a worker host → how it ended, in words. Only the latest few are kept."""

    def recovered(self, now: int) -> None:
        """The store can be used again: hear the host that came meanwhile, or hand over what was committed after all."""
        hello, self._hello = self._hello, None
        if hello is not None:
            self.came(*hello)
        elif self._owner.executor.ready:
            self.resubmit_old(now)  # what was committed after all, before anybody was told
            self.run_triggers(one.key for one in self._owner.waits.triggers())

    @property
    def live_attempts(self) -> int:
        """How many attempts are queued or running, those of runs that are set aside included. Counted as they come and go."""
        return self._owner.admission.used(PARALLELISM)

    def attempts(self) -> list[tuple[AttemptKey, TaskState, int]]:
        """Every live attempt: its key, the state of its task instance, and when it was dispatched.

        Looks at every task instance of the running runs: for what a worker host says when it comes, and for the safety nets.
        """
        found = []
        for run, active_run in self._owner.active_runs_by_id.items():
            machine = active_run.machine
            for slot in active_run.occupying():
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
        missing: dict[AttemptKey, str] = {}
        ours: set[AttemptKey] = set()
        for key, state, _ in self.attempts():
            ours.add(key)
            if key in live:
                if state is TaskState.RESTARTING:
                    self._owner.executor.cancel(key, "it was cleared", self._owner.config.kill_grace)
            elif state is TaskState.QUEUED:
                again += self._workload_of(key)
            else:
                missing[key] = self._nonce(key)
        for key in live - ours:
            if key[0] not in self._owner.quarantine and not self._owner.runs.is_out_of_scope(key[0]):
                self._owner.executor.cancel(key, "it is not current any more", self._owner.config.kill_grace)
        self._owner.executor.reconcile(missing)
        self.submit(again)
        wanted = {one.key for one in self._owner.waits.triggers()}
        self.run_triggers(sorted(wanted - triggers))
        unwanted = sorted(key for key in triggers - wanted if key[0] not in self._owner.quarantine)
        self._owner.executor.drop_triggers([key for key in unwanted if not self._owner.runs.is_out_of_scope(key[0])])

    def note_life(self, host: str, earlier: str, earlier_end: str) -> None:
        """A worker host said hello, and how the life before it ended."""
        self._host = host
        if earlier and earlier_end:
            self._ends.pop(earlier, None)
            self._ends[earlier] = earlier_end
            while len(self._ends) > ENDS_KEPT:
                del self._ends[next(iter(self._ends))]

    def why_lost(self, holder: Holder | None, event: e.AttemptVanished) -> str:
        """Who or what took the process away, as far as that is known."""
        if holder is None or not holder.host or holder.host == (event.host or self._host):
            return event.reason
        return self._ends.get(holder.host, "the worker host that ran it has ended")

    def resubmit_old(self, older_than: int) -> int:
        """Safety net: hand over again what was dispatched before a moment and has not started; how many."""
        late = [key for key, state, queued in self.attempts() if state is TaskState.QUEUED and queued <= older_than]
        again = [work for key in late for work in self._workload_of(key)]
        if again:
            self.submit(again)
        return len(again)

    def submit(self, works: list[Workload]) -> None:
        """Hand them over. Where one cannot be sent (a value that no message holds) its run is set aside, and the others go."""
        try:
            self._owner.executor.submit(works)
        except Exception:
            log.exception("workloads cannot be handed over together; they go one by one", count=len(works))
            for work in works:  # a host that has one already ignores it
                self._owner.runs.guarded(work.run, partial(self._owner.executor.submit, [work]))

    def reconcile(self) -> None:
        """Safety net: do the hosts still have what we believe to run?"""
        started = (key for key, state, _ in self.attempts() if state is not TaskState.QUEUED)
        self._owner.executor.reconcile({key: self._nonce(key) for key in started})

    def _nonce(self, key: AttemptKey) -> str:
        """Of the process that carries out this attempt; empty: none was accepted."""
        run, slot, fence = key
        holder = self._owner.active_runs_by_id[run].holders.get(slot)
        return holder.nonce if holder is not None and holder.fence == fence else ""

    def place(self, dag_id: str) -> tuple[str, int]:
        """Folder of a DAG's files, and what parsing its file cost."""
        entry = self._owner.dags.get(dag_id)
        plan = entry.plan if entry is not None else self._owner.store.dag(dag_id)
        return self._owner.config.folder(plan.bundle if plan else ""), plan.parse_duration if plan else 0

    def _workload_of(self, key: AttemptKey) -> list[Workload]:
        """What a host is told of an attempt; nothing of a run that cannot be told of, which is set aside."""
        found: list[Workload] = []
        self._owner.runs.guarded(key[0], lambda: found.append(self.workload(key[0], key[1])))
        return found

    def workload(self, run: int, slot: int) -> Workload:
        active_run = self._owner.active_runs_by_id[run]
        folder, cost = self.place(active_run.row.dag_id)
        return active_run.workload(slot, folder, self._owner.config.default_execution_timeout, cost, self._file(active_run))

    def _file(self, active_run: ActiveRun) -> str:
        """The DAG's file as it is called now; of a versioned bundle, as the run's version has it."""
        entry = self._owner.dags.get(active_run.row.dag_id)
        if entry is None or active_run.row.bundle_version is not None:
            return active_run.topology.definition.fileloc
        return entry.plan.file

    def run_triggers(self, keys: Iterable[AttemptKey]) -> None:
        orders: list[TriggerOrder] = []
        for key in keys:
            active_run, waiting = self._owner.active_runs_by_id.get(key[0]), self._owner.waits.open.get(key[:2])
            if active_run is not None and waiting is not None and waiting.key == key:
                self._owner.runs.guarded(key[0], lambda b=active_run, w=waiting: orders.append(self._trigger_order(b, w)))  # type: ignore[misc]
        self._owner.executor.run_triggers(orders)

    def _trigger_order(self, active_run: ActiveRun, waiting: OpenWait) -> TriggerOrder:
        _, slot, fence = waiting.key
        entry = self._owner.dags.get(active_run.row.dag_id)
        folder = self._owner.config.folder(entry.plan.bundle if entry is not None else "")
        log = log_path(
            active_run.row.dag_id, active_run.row.run_id, *active_run.where(slot), active_run.machine.tries[slot], fence
        )
        return order(active_run, waiting, folder, log)
