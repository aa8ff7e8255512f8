"""Runs that run: taken up from the store, begun, built anew where somebody changed them, set aside, forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from tradewind.kernel import events as e
from tradewind.kernel.admission import UNLIMITED
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.run_data import RunFacts
from tradewind.kernel.topology import Topology
from tradewind.model.rows import DagPlan, RemovedRun, RunRow, RunSnapshot
from tradewind.model.states import RunState, TaskState
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.scheduler.inbox import RunEvent, SettleRun
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.run_shape import fitted

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler

TOPOLOGIES_KEPT = 64
ROWS_PER_MOVE = 2
"""The task instance's own, and the journal's."""


class RunRegistry:
    """See the module."""

    def __init__(self, owner: Scheduler) -> None:
        self._owner = owner
        self._topologies: dict[int, Topology] = {}

    def topology(self, version: int) -> Topology:
        """The graph of a definition."""
        found = self._topologies.get(version)
        if found is None:
            found = self._topologies[version] = Topology(self._owner.store.definition(version))
            while len(self._topologies) > TOPOLOGIES_KEPT:
                del self._topologies[next(iter(self._topologies))]
        return found

    def release_memory(self) -> None:
        """Drop what can be read again; for a time without runs."""
        self._topologies.clear()

    # --- taken up ---------------------------------------------------------------------------------------------------

    def begin(self, row: RunRow, now: int) -> None:
        """A queued run begins: its roots become scheduled. One that was cleared goes on from its rows."""
        owner = self._owner
        fresh = row.revision == 0 and row.started_at is None and row.clear_number == 0
        if fresh and self.version_now(row) == row.version:
            topology = self.topology(row.version)
            config = owner.config
            facts = RunFacts(
                row.id, row.dag_id, row.logical_date, config.requeue_limit, self._budget, repeat_lost=config.repeat_lost
            )
            active_run = ActiveRun(row, topology, RunMachine(topology, facts))
        else:
            snapshot = owner.store.snapshot(row.id)
            if snapshot is None or snapshot.run.state is not RunState.QUEUED:
                self.refresh(row.id)
                return
            active_run = self._box(snapshot)
        active_run.state = RunState.RUNNING
        self._adopt(active_run)
        owner.touch(active_run)
        active_run.machine.budget = max(1, owner.room() // ROWS_PER_MOVE)
        owner.take(active_run, active_run.machine.apply(e.RunStarted(now)), now)

    def load_running(self, row: RunRow) -> None:
        """A run that the store knows as running."""
        entry = self._owner.dags.get(row.dag_id)
        if entry is not None:
            entry.note_kind(row)
            entry.running.add(row.id)
        self._owner.guarded(row.id, lambda: self._restore(row.id))

    def _restore(self, run: int) -> None:
        """The machine of a running run, its slots, candidates and timers."""
        snapshot = self._owner.store.snapshot(run)
        if snapshot is not None and snapshot.run.state is RunState.RUNNING:
            self._adopt(self._box(snapshot))
            # looks at every task whose upstream says nothing, and at their own dates
            self._owner.push_event(run, e.RunStarted(0))

    def version_now(self, row: RunRow) -> int:
        """The version of its DAG that a run has to follow: of a plain folder the newest; of a versioned bundle the one it has."""
        entry = self._owner.dags.get(row.dag_id)
        return row.version if entry is None or row.bundle_version is not None else entry.plan.version

    def follow(self, plan: DagPlan) -> None:
        """The DAG may have a newer version: its running runs are verified against it."""
        entry = self._owner.dags[plan.dag_id]
        for run in sorted(entry.running):
            active_run = self._owner.active_runs_by_id.get(run)
            if active_run is not None and active_run.target != self.version_now(active_run.row):
                self._owner.guarded(run, lambda run=run: self.refresh(run))  # type: ignore[misc]

    def _box(self, snapshot: RunSnapshot) -> ActiveRun:
        row, store = snapshot.run, self._owner.store
        version = self.version_now(row)
        topology = fitted(self.topology(version), snapshot)
        config = self._owner.config
        return ActiveRun.restore(
            snapshot,
            topology,
            config.requeue_limit,
            self._budget,
            repeat_lost=config.repeat_lost,
            definition=store.definition,
            target=version,
        )

    @property
    def _budget(self) -> int:
        return self._owner.config.batch_max_rows // ROWS_PER_MOVE

    def _adopt(self, active_run: ActiveRun) -> None:
        """A run that is running or starts to: what it holds, wants and waits for."""
        owner, row, machine = self._owner, active_run.row, active_run.machine
        owner.active_runs_by_id[row.id] = active_run
        entry = owner.dags.get(row.dag_id)
        if entry is not None:
            entry.running.add(row.id)
        for resource, capacity in active_run.limits():
            owner.admission.set_capacity(resource, capacity)
        self.update_capacity(active_run)
        if active_run.topology.definition.dagrun_timeout is not None:
            # overdue at a restart: it hears that before anything else
            owner.at_or_now(self.times_out(active_run, owner.clock.wall()), RunEvent(row.id, e.RunTimedOut(0)))
        owner.past.adopt(active_run, owner.active_runs_by_id, owner.push_event)
        for slot in active_run.occupying():
            owner.admission.occupy(row.id, slot, active_run.needs(slot))
            if machine.task_state(slot) is TaskState.RESTARTING:
                owner.executor.cancel((row.id, slot, machine.fence[slot]), "it was cleared", owner.config.kill_grace)
        for slot in active_run.scheduled():
            owner.admission.add(active_run.candidate(slot))
        for slot, due in machine.due.items():
            if machine.task_state(slot) is not TaskState.DEFERRED:
                owner.timers.add(due, RunEvent(row.id, e.TimerDue(slot, due)))
        if active_run.waits:
            owner.deferrals.adopt(active_run)

    def update_capacity(self, active_run: ActiveRun) -> None:
        """While many of a run's task instances are being taken away, none is given a slot: it may be one of them."""
        if active_run.closed is not active_run.machine.blocks_admission:
            active_run.closed = not active_run.closed
            most = 0 if active_run.closed else active_run.topology.definition.max_active_tasks
            self._owner.admission.set_capacity(("run", active_run.row.id, 0), most)

    @staticmethod
    def times_out(active_run: ActiveRun, now: int) -> int:
        """When the run will be older than its dagrun_timeout; a cleared run is as old as its new life."""
        return (active_run.row.started_at or now) + (active_run.topology.definition.dagrun_timeout or UNLIMITED)

    # --- changed ----------------------------------------------------------------------------------------------------

    def refresh(self, run: int) -> None:
        """A person changed this run, or it was set aside and is tried again: build it anew. One that cannot be read is set aside.

        Raises:
            StoreError: the store cannot be used now.
        """
        self._owner.isolated(run, partial(self._refresh, run))

    def _refresh(self, run: int) -> None:
        owner = self._owner
        row, known = owner.store.run(run), self._known(run)
        before = owner.active_runs_by_id.get(run)
        triggers = owner.waits.triggers_of(run, before.waits) if before is not None else set()
        self.forget(run)
        if run in owner.quarantine:
            owner.quarantine.discard(run)
            owner.admission.release_run(run)
        if row is None:
            owner.schedules.dequeue(run)
            if known is None:
                owner.waits.notice_all()
            else:  # whoever waits for this run will not see it any more
                owner.waits.run_changed(known.dag_id, known.logical_date, known.run_id)
            return
        entry = owner.dags.get(row.dag_id)
        if entry is not None:
            entry.running.discard(run)
            owner.schedules.look_at(row.dag_id)
            if row.state is RunState.QUEUED:
                owner.schedules.enqueue(entry, row)
            else:
                owner.schedules.dequeue(run)
        if row.state is RunState.RUNNING and entry is not None:
            self.load_running(row)
        owner.past.edited(run, owner.active_runs_by_id, owner.push_event)
        owner.waits.run_changed(row.dag_id, row.logical_date, row.run_id)
        if triggers:
            after = owner.active_runs_by_id.get(run)
            gone = triggers - owner.waits.triggers_of(run, after.waits if after is not None else ())
            if gone:
                owner.executor.drop_triggers(sorted(gone))

    def _known(self, run: int) -> RunRow | None:
        """An unfinished run as memory has it."""
        active_run = self._owner.active_runs_by_id.get(run)
        return active_run.row if active_run is not None else self._owner.schedules.queued(run)

    def deleted(self, removed: Iterable[RemovedRun]) -> None:
        """Finished runs were deleted: the run before a running one may be another one now, and one that is waited for be gone."""
        owner = self._owner
        removed = list(removed)
        for one in removed:
            owner.waits.run_changed(one.dag_id, one.logical_date, one.run_id)
        for run in sorted(owner.past.concerned_by(removed)):
            self._look_back_again(run)
        for dag_id in sorted({one.dag_id for one in removed} & owner.dags.keys()):
            self._choose_again(owner.dags[dag_id])

    def _choose_again(self, entry: DagEntry) -> None:
        """A queued run may begin in another order now, or take the place of a running one."""
        if entry.waiting and entry.running:
            self._owner.schedules.look_at(entry.plan.dag_id)

    def _look_back_again(self, run: int) -> None:
        """The run before this one may be another one now."""
        owner, active_run = self._owner, self._owner.active_runs_by_id.get(run)
        if active_run is not None and active_run.topology.has_past:
            owner.guarded(run, partial(owner.past.compare_with_store, active_run, owner.active_runs_by_id, owner.push_event))

    def noted(self, run: int, note: str | None) -> None:
        """A person wrote a note on a run; nothing follows from it."""
        active_run = self._owner.active_runs_by_id.get(run)
        if active_run is not None:
            active_run.row = active_run.row._replace(note=note)
        self._owner.schedules.noted(run, note)

    def compare_with_store(self) -> int:
        """Does memory stand as the store does? What differs is read anew; how many runs did.

        Also finds runs that were deleted without a word. It looks at everything there is: only the duty of that name asks for it.
        """
        owner, found = self._owner, 0
        active = owner.store.active_runs()
        known = owner.active_runs_by_id.keys() | {run for entry in owner.dags.values() for run in entry.waiting}
        for run in sorted(known - {row.id for row in active}):  # it has ended, or was deleted
            self.refresh(run)
            found += 1
        for row in active:
            entry, active_run = owner.dags.get(row.dag_id), owner.active_runs_by_id.get(row.id)
            if active_run is not None:
                missed = active_run.row.revision != row.revision
            elif row.state is RunState.QUEUED:
                missed = entry is not None and row.id not in entry.waiting and row.id not in entry.running
            else:
                missed = entry is not None and row.id not in owner.quarantine
            if missed:
                self.refresh(row.id)
                found += 1
        for run in list(owner.active_runs_by_id):
            self._look_back_again(run)
        owner.waits.notice_named_runs()
        for entry in owner.dags.values():
            self._choose_again(entry)
        return found

    # --- let go -----------------------------------------------------------------------------------------------------

    def is_of_another(self, run: int) -> bool:
        """Does the run belong to a DAG that this scheduler does not look after?"""
        if not self._owner.config.scope.bundles and self._owner.config.scope.dag_id is None:
            return False
        row = self._owner.store.run(run)
        return row is not None and row.dag_id not in self._owner.dags

    def forget(self, run: int, *, keep_slots: bool = False) -> None:
        """The run is not running any more, or is built anew: release what it holds."""
        owner = self._owner
        active_run = owner.active_runs_by_id.pop(run, None)
        owner.unmark_changed(run)
        if active_run is None:
            return
        entry = owner.dags.get(active_run.row.dag_id)
        if entry is not None and not keep_slots:
            entry.running.discard(run)
        for slot in active_run.scheduled():
            owner.admission.discard(run, slot)
        if not keep_slots:
            # a slot may have been given to one that is still scheduled: its dispatch was refused; one that waits may hold its pool
            for slot in (*active_run.occupying(), *active_run.scheduled(), *active_run.waits):
                owner.admission.release(run, slot)
            for resource, _ in active_run.limits():
                if resource[1] == run:
                    owner.admission.forget(resource)
        owner.past.forget(active_run.row)
        owner.waits.forget(run, active_run.waits)

    def quarantine_run(self, run: int) -> None:
        """Its deciding failed: nothing of it leaves the memory, its attempts keep their slots, it is tried again later."""
        owner = self._owner
        self.forget(run, keep_slots=True)
        owner.discard_outputs(run)
        owner.timers.add(owner.quarantine.quarantine_run(run, owner.clock.wall()), SettleRun(run))
