"""Active runs: loaded from the store, started, rebuilt after a change, quarantined after a failure, and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from tradewind.kernel import events as e
from tradewind.kernel.admission import UNLIMITED
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.run_data import RunFacts
from tradewind.kernel.topology import Topology
from tradewind.model.errors import StoreError, StoreRefused
from tradewind.model.rows import DagPlan, RemovedRun, RunRow, RunSnapshot
from tradewind.model.states import WAITING, RunState, TaskState
from tradewind.observe.log import Log
from tradewind.scheduler.callbacks import requests
from tradewind.scheduler.dags.run_queue import RunQueue
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.scheduler.inbox import RunEvent, SettleRun
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.run_shape import fitted
from tradewind.scheduler.shared_state import ROWS_PER_MOVE, SharedState
from tradewind.scheduler.waits.deferral_manager import DeferralManager

log = Log("scheduler")

TOPOLOGIES_KEPT = 64

Take = Callable[[ActiveRun, list[e.Decision], int], None]
"""(run, decisions, now): applies the decisions of a run to the rest of the scheduler."""


class RunRegistry:
    """See the module.

    Args:
        take: called with the first decisions of a run that starts.
    """

    def __init__(self, state: SharedState, queue: RunQueue, deferrals: DeferralManager, take: Take) -> None:
        self._state = state
        self._queue = queue
        self._deferrals = deferrals
        self._take = take
        self._topologies: dict[int, Topology] = {}

    def topology(self, version: int) -> Topology:
        """Return the graph of a version's definition."""
        found = self._topologies.get(version)
        if found is None:
            found = self._topologies[version] = Topology(self._state.store.definition(version))
            while len(self._topologies) > TOPOLOGIES_KEPT:
                del self._topologies[next(iter(self._topologies))]
        return found

    def release_memory(self) -> None:
        """Drop what can be read again, when no run is active."""
        self._topologies.clear()

    # --- failures ---------------------------------------------------------------------------------------------------

    def guarded(self, run: int, work: Callable[[], object]) -> None:
        """Do `work` for a run, unless the run is quarantined. If it fails, the run is quarantined and tried again later.

        Raises:
            StoreError: the store cannot be used now.
        """
        if run not in self._state.quarantine:
            self.isolated(run, work)

    def isolated(self, run: int, work: Callable[[], object]) -> None:
        """Do `work` for a run that may be quarantined already. If it fails, the run is quarantined (again).

        Raises:
            StoreError: the store cannot be used now.
        """
        try:
            work()
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                raise
            log.exception("a run is quarantined because a decision on it failed; it is tried again later", run=run)
            self.quarantine_run(run)

    def quarantine_run(self, run: int) -> None:
        """Ignore a run for a while: its changes are not written, and its attempts keep their slots."""
        state = self._state
        self.forget(run, keep_slots=True)
        state.batch.discard_outputs(run)
        state.timers.add(state.quarantine.quarantine_run(run, state.clock.wall()), SettleRun(run))

    # --- loading and starting ---------------------------------------------------------------------------------------

    def begin(self, row: RunRow, now: int) -> None:
        """Start a queued run: its first tasks become scheduled. A run that was cleared continues from its rows."""
        state = self._state
        is_new = row.revision == 0 and row.started_at is None and row.clear_number == 0
        if is_new and self.current_version(row) == row.version:
            topology = self.topology(row.version)
            config = state.config
            facts = RunFacts(
                row.id, row.dag_id, row.logical_date, config.requeue_limit, self._budget, repeat_lost=config.repeat_lost
            )
            active_run = ActiveRun(row, topology, RunMachine(topology, facts), self._state.executors)
        else:
            snapshot = state.store.snapshot(row.id)
            if snapshot is None or snapshot.run.state is not RunState.QUEUED:
                self.refresh(row.id)
                return
            active_run = self._build(snapshot)
        active_run.state = RunState.RUNNING
        active_run.callback_requests += requests.of_run_start(active_run, state.listened, now)
        self._adopt(active_run)
        state.batch.include(active_run)
        active_run.machine.budget = max(1, state.batch.rows_left() // ROWS_PER_MOVE)
        self._take(active_run, active_run.machine.apply(e.RunStarted(now)), now)

    def load_running(self, row: RunRow) -> None:
        """Load a run that is running according to the store."""
        entry = self._state.dags.get(row.dag_id)
        if entry is not None:
            entry.remember_backfill(row)
            entry.running.add(row.id)
        self.guarded(row.id, lambda: self._restore(row.id))

    def _restore(self, run: int) -> None:
        snapshot = self._state.store.snapshot(run)
        if snapshot is not None and snapshot.run.state is RunState.RUNNING:
            self._adopt(self._build(snapshot))
            # the event lets tasks without upstream tasks, and tasks with their own dates, be examined
            self._state.push_event(run, e.RunStarted(0))

    def current_version(self, row: RunRow) -> int:
        """Return the version of its DAG that a run follows: the newest one; in a versioned bundle the run's own."""
        entry = self._state.dags.get(row.dag_id)
        return row.version if entry is None or row.bundle_version is not None else entry.plan.version

    def follow(self, plan: DagPlan) -> None:
        """Verify the running runs of a DAG against its version, which may be newer than theirs."""
        entry = self._state.dags[plan.dag_id]
        for run in sorted(entry.running):
            active_run = self._state.active_runs_by_id.get(run)
            if active_run is not None and active_run.target != self.current_version(active_run.row):
                self.guarded(run, lambda run=run: self.refresh(run))  # type: ignore[misc]

    def _build(self, snapshot: RunSnapshot) -> ActiveRun:
        version = self.current_version(snapshot.run)
        topology = fitted(self.topology(version), snapshot)
        config = self._state.config
        return ActiveRun.restore(
            snapshot,
            topology,
            config.requeue_limit,
            self._budget,
            repeat_lost=config.repeat_lost,
            executors=self._state.executors,
            definition=self._state.store.definition,
            target=version,
        )

    @property
    def _budget(self) -> int:
        return self._state.config.batch_max_rows // ROWS_PER_MOVE

    def _adopt(self, active_run: ActiveRun) -> None:
        """Register a run that is running or starts: its limits, attempts, candidates, timers and waits."""
        state, row, machine = self._state, active_run.row, active_run.machine
        state.active_runs_by_id[row.id] = active_run
        entry = state.dags.get(row.dag_id)
        if entry is not None:
            entry.running.add(row.id)
            if row.bundle_version is None and not active_run.topology.definition.disable_bundle_versioning:
                active_run.newest_bundle = entry.plan.bundle_version  # a clear has moved it to the newest version
        for resource, capacity in active_run.limits():
            state.admission.set_capacity(resource, capacity)
        self.update_capacity(active_run)
        if active_run.topology.definition.dagrun_timeout is not None:
            # a run that timed out during a restart gets this event before any other one
            state.push_at(self.times_out_at(active_run, state.clock.wall()), RunEvent(row.id, e.RunTimedOut(0)))
        state.previous_runs.adopt(active_run, state.active_runs_by_id, state.push_event)
        for slot in active_run.occupying():
            state.admission.occupy(row.id, slot, active_run.needs(slot))
            if machine.task_state(slot) is TaskState.RESTARTING:
                state.executor.cancel((row.id, slot, machine.fence[slot]), "it was cleared", state.config.kill_grace)
        for slot in active_run.scheduled():
            state.admission.add(active_run.candidate(slot))
        for slot, due in machine.due.items():
            if machine.task_state(slot) not in WAITING:
                state.timers.add(due, RunEvent(row.id, e.TimerDue(slot, due)))
        if active_run.waits:
            self._deferrals.adopt(active_run)

    def update_capacity(self, active_run: ActiveRun) -> None:
        """Admit no task instance of a run during a sweep or a verification: the task instance might be one that ends with it."""
        if active_run.admission_blocked is not active_run.machine.blocks_admission:
            active_run.admission_blocked = not active_run.admission_blocked
            most = 0 if active_run.admission_blocked else active_run.topology.definition.max_active_tasks
            self._state.admission.set_capacity(("run", active_run.row.id, 0), most)

    @staticmethod
    def times_out_at(active_run: ActiveRun, now: int) -> int:
        """Return the moment at which dagrun_timeout is exceeded. After a clear it counts from the new start."""
        return (active_run.row.started_at or now) + (active_run.topology.definition.dagrun_timeout or UNLIMITED)

    # --- changes by others ------------------------------------------------------------------------------------------

    def refresh(self, run: int) -> None:
        """Rebuild a run that a person changed, or that leaves quarantine. If that fails, the run is quarantined.

        Raises:
            StoreError: the store cannot be used now.
        """
        self.isolated(run, partial(self._refresh, run))

    def _refresh(self, run: int) -> None:
        state = self._state
        row, known = state.store.run(run), self._known(run)
        before = state.active_runs_by_id.get(run)
        triggers = state.waits.triggers_of(run, before.waits) if before is not None else set()
        self.forget(run)
        if run in state.quarantine:
            state.quarantine.discard(run)
            state.admission.release_run(run)
        if row is None:
            self._queue.remove(run)
            if known is None:
                state.waits.notice_all()
            else:  # task instances that wait for this run cannot find it any more
                state.waits.run_changed(known.dag_id, known.logical_date, known.run_id)
            return
        entry = state.dags.get(row.dag_id)
        if entry is not None:
            entry.running.discard(run)
            self._queue.mark_dirty(row.dag_id)
            if row.state is RunState.QUEUED:
                self._queue.add(entry, row)
            else:
                self._queue.remove(run)
        if row.state is RunState.RUNNING and entry is not None:
            self.load_running(row)
        state.previous_runs.run_edited(run, state.active_runs_by_id, state.push_event)
        state.waits.run_changed(row.dag_id, row.logical_date, row.run_id)
        if triggers:
            after = state.active_runs_by_id.get(run)
            gone = triggers - state.waits.triggers_of(run, after.waits if after is not None else ())
            if gone:
                state.executor.drop_triggers(sorted(gone))

    def _known(self, run: int) -> RunRow | None:
        """Return the row in memory of an unfinished run."""
        active_run = self._state.active_runs_by_id.get(run)
        return active_run.row if active_run is not None else self._queue.get(run)

    def deleted(self, removed: Iterable[RemovedRun]) -> None:
        """Handle the deletion of finished runs: active runs may have depended on them, and tasks may wait for them."""
        state = self._state
        removed = list(removed)
        for one in removed:
            state.waits.run_changed(one.dag_id, one.logical_date, one.run_id)
        for run in sorted(state.previous_runs.runs_after(removed)):
            self._find_previous_run(run)
        for dag_id in sorted({one.dag_id for one in removed} & state.dags.keys()):
            self._examine_order(state.dags[dag_id])

    def _examine_order(self, entry: DagEntry) -> None:
        """Mark a DAG for examination whose queued runs may start in another order, or replace a running one."""
        if entry.waiting and entry.running:
            self._queue.mark_dirty(entry.plan.dag_id)

    def _find_previous_run(self, run: int) -> None:
        """Look up the previous run of an active run again: it may be another one now."""
        state, active_run = self._state, self._state.active_runs_by_id.get(run)
        if active_run is not None and active_run.topology.has_past:
            self.guarded(
                run, partial(state.previous_runs.compare_with_store, active_run, state.active_runs_by_id, state.push_event)
            )

    def set_note(self, run: int, note: str | None) -> None:
        """Set the note of a run in memory."""
        active_run = self._state.active_runs_by_id.get(run)
        if active_run is not None:
            active_run.row = active_run.row._replace(note=note)
        self._queue.set_note(run, note)

    def compare_with_store(self) -> int:
        """Compare all runs in memory with the store, reload those that differ, and return their number.

        This also finds runs that were deleted by something other than a command. It reads every unfinished run: only the duty
        `compare_with_store` calls it.
        """
        state, found = self._state, 0
        active = state.store.active_runs()
        known = state.active_runs_by_id.keys() | {run for entry in state.dags.values() for run in entry.waiting}
        for run in sorted(known - {row.id for row in active}):  # it has ended, or was deleted
            self.refresh(run)
            found += 1
        for row in active:
            entry, active_run = state.dags.get(row.dag_id), state.active_runs_by_id.get(row.id)
            if active_run is not None:
                missed = active_run.row.revision != row.revision
            elif row.state is RunState.QUEUED:
                missed = entry is not None and row.id not in entry.waiting and row.id not in entry.running
            else:
                missed = entry is not None and row.id not in state.quarantine
            if missed:
                self.refresh(row.id)
                found += 1
        for run in list(state.active_runs_by_id):
            self._find_previous_run(run)
        state.waits.notice_named_runs()
        for entry in state.dags.values():
            self._examine_order(entry)
        return found

    # --- removing -----------------------------------------------------------------------------------------------------

    def forget(self, run: int, *, keep_slots: bool = False) -> None:
        """Remove a run from memory, because it ended or is rebuilt, and release the slots that it holds.

        Args:
            keep_slots: its attempts continue and keep their slots.
        """
        state = self._state
        active_run = state.active_runs_by_id.pop(run, None)
        state.batch.exclude(run)
        if active_run is None:
            return
        entry = state.dags.get(active_run.row.dag_id)
        if entry is not None and not keep_slots:
            entry.running.discard(run)
        for slot in active_run.scheduled():
            state.admission.discard(run, slot)
        if not keep_slots:
            # a scheduled task instance may hold limits, because its dispatch was refused; a deferred one may hold pool slots
            for slot in (*active_run.occupying(), *active_run.scheduled(), *active_run.waits):
                state.admission.release(run, slot)
            for resource, _ in active_run.limits():
                if resource[1] == run:
                    state.admission.forget(resource)
        state.previous_runs.forget(active_run.row)
        state.waits.forget(run, active_run.waits)
