"""One running run in the scheduler's memory: its machine, its row, and its changes in the pending batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from tradewind.executors.registry import ExecutorRegistry
from tradewind.kernel.admission import Candidate, Resource, executor_slots
from tradewind.kernel.events import Added, Event, Expanded, Move
from tradewind.kernel.integrity import VerifiedVersion
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.run_data import RunFacts
from tradewind.kernel.run_summary import encode_summary, summary_of
from tradewind.kernel.topology import Topology
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.executor_names import KUBERNETES, LOCAL
from tradewind.model.ids import UNEXPANDED
from tradewind.model.rows import (
    AttemptEnd,
    AttemptStart,
    DeferralRow,
    InputAnswer,
    InputRequest,
    JournalEntry,
    NewAssetEvent,
    NewCallbackRequest,
    NewTaskRow,
    RunRow,
    RunSnapshot,
    RunWrite,
    TaskWrite,
    XComWrite,
)
from tradewind.model.states import FINISHED_RUNS, OCCUPYING, WAITING, Outcome, RunState, TaskState
from tradewind.wire.log_paths import log_path
from tradewind.wire.messages import AssetUpdate, Workload
from tradewind.wire.worker_names import may_report_for, worker_of

WAIT_IS_KEPT = WAITING | {TaskState.SCHEDULED, TaskState.QUEUED, TaskState.RUNNING}
"""States in which the wait of a task instance is kept: its next attempt gets the result of the wait."""

_ONLY_LOCAL = ExecutorRegistry(LOCAL, 0)
_OCCUPYING = frozenset(state.code for state in OCCUPYING)
_SCHEDULED = TaskState.SCHEDULED.code
_TRIED_AGAIN = frozenset({TaskState.UP_FOR_RETRY.code, TaskState.UP_FOR_RESCHEDULE.code})
"""States that only the previous run can block when their time has come. A deferred task instance continues by itself."""


class Holder(NamedTuple):
    """The process of an attempt whose start was accepted."""

    fence: int
    nonce: str
    host: str
    """Identifier of the worker host process that started it."""


class ActiveRun:
    """See the module. `row` is the row in the store; the attributes that `begin_batch` sets are the changes of the batch."""

    __slots__ = (
        "admission_blocked",
        "after",
        "asset_events",
        "callback_requests",
        "cleared_xcoms",
        "conf",
        "deferrals",
        "earlier",
        "ended_waits",
        "ends",
        "events",
        "executors",
        "holders",
        "input_answers",
        "input_requests",
        "journal",
        "labels",
        "last_hosts",
        "machine",
        "missing",
        "new_rows",
        "newest_bundle",
        "pool_choices",
        "pools",
        "reason",
        "reschedules",
        "row",
        "starts",
        "state",
        "target",
        "topology",
        "version",
        "waits",
        "xcoms",
    )

    def __init__(self, row: RunRow, topology: Topology, machine: RunMachine, executors: ExecutorRegistry | None = None) -> None:
        self.row = row
        self.topology = topology
        self.machine = machine
        self.executors = executors or _ONLY_LOCAL
        machine.max_waves = 1  # candidates are admitted after each wave
        self.admission_blocked = False
        """Whether admission has the run's max_active_tasks set to 0 (see `RunRegistry.update_capacity`)."""
        self.target = row.version
        """The version of its DAG that `topology` belongs to. Until all rows match it, the run itself has its earlier version."""
        self.newest_bundle: str | None = None
        """The version of its bundle that the run must keep, if it keeps none yet: the version of `target`. None: none."""
        self.earlier: dict[int, TaskDefinition] = {}
        """slot → its task when the attempt was dispatched, if that was under an earlier version."""
        self.conf: dict[str, Any] = msgspec.json.decode(row.conf) if row.conf else {}
        self.holders: dict[int, Holder] = {}
        """slot → the process that runs its attempt."""
        self.last_hosts: dict[int, str] = {}
        """slot → the worker host that started its latest attempt."""
        self.reschedules: dict[int, int] = {}
        """slot → how often its current try was rescheduled."""
        self.missing: dict[int, int] = {}
        """slot → how many attempts in a row did not find the task in its DAG file."""
        self.pools: dict[int, str] = {}
        """slot → the pool that a person chose for this task instance, instead of the DAG's."""
        self.waits: dict[int, DeferralRow] = {}
        """slot → its wait, or its last wait in this try."""
        self.begin_batch()

    @classmethod
    def restore(
        cls,
        snapshot: RunSnapshot,
        topology: Topology,
        requeue_limit: int,
        budget: int,
        *,
        repeat_lost: bool = False,
        executors: ExecutorRegistry | None = None,
        definition: Callable[[int], DagDefinition] | None = None,
        target: int | None = None,
    ) -> ActiveRun:
        """Build a run from the store: after a start of the scheduler, a failed guard, or an edit.

        Args:
            executors: the executors of the deployment; None: LocalExecutor alone.
            definition: returns the definition of a version.
            target: the version of `topology`, which the run has to follow; None: the run's own.
        """
        row = snapshot.run
        failing = row.reason if row.state not in FINISHED_RUNS else None
        facts = RunFacts(row.id, row.dag_id, row.logical_date, requeue_limit, budget, failing, repeat_lost)
        before = None
        if target is not None and target != row.version and definition is not None:
            before = VerifiedVersion(row.version, definition(row.version))
        active_run = cls(row, topology, RunMachine.from_rows(topology, facts, snapshot.rows, before), executors)
        if before is not None and target is not None:
            active_run.target = target
        if definition is not None:
            active_run.earlier = {
                slot: task
                for slot, version in active_run.machine.versions.items()
                if (task := definition(version).task(active_run.machine.task_id(slot))) is not None
            }
        for attempt in snapshot.live:
            known = active_run.holders.get(attempt.slot)
            if known is None or known.fence < attempt.fence:
                active_run.holders[attempt.slot] = Holder(attempt.fence, attempt.nonce or "", attempt.host or "")
        active_run.last_hosts = dict(snapshot.hosts)
        active_run.reschedules = dict(snapshot.reschedules)
        active_run.pools = dict(snapshot.pools)
        for wait in snapshot.deferrals:
            active_run.waits[wait.slot] = wait
            state = active_run.machine.task_state(wait.slot)
            if state not in WAIT_IS_KEPT or (state in WAITING and wait.fence != active_run.machine.fence[wait.slot]):
                active_run.forget_wait(wait.slot)  # it was cleared or marked since
        return active_run

    # --- the pending batch ----------------------------------------------------------------------------------------

    def begin_batch(self) -> None:
        """Start a batch in which nothing has changed yet."""
        self.state = self.row.state
        self.version = self.row.version
        self.reason: str | None = self.row.reason
        self.journal: list[JournalEntry] = []
        self.starts: list[AttemptStart] = []
        self.ends: list[AttemptEnd] = []
        self.xcoms: list[XComWrite] = []
        self.cleared_xcoms: list[tuple[str, int]] = []
        self.events: list[Event] = []
        self.new_rows: list[NewTaskRow] = []
        self.labels: list[tuple[int, str]] = []
        self.pool_choices: list[tuple[int, str]] = []
        self.deferrals: list[DeferralRow] = []
        self.ended_waits: list[int] = []
        self.input_requests: list[InputRequest] = []
        self.input_answers: list[InputAnswer] = []
        self.asset_events: list[NewAssetEvent] = []
        self.callback_requests: list[NewCallbackRequest] = []
        self.after: set[int] = set()
        """Runs that must be written before this one in this batch, because it depends on their changes."""

    def add_move(self, move: Move) -> None:
        """Write a step of a task instance into the journal."""
        if move.before is TaskState.RESTARTING and move.after is not TaskState.RESTARTING:
            self.pools.pop(move.slot, None)  # the cleared attempt has ended; the store forgets the pool with the same move
        self.journal.append(JournalEntry(move.slot, move.fence, move.before.code, move.after.code, move.at, move.cause))

    def add_expanded(self, expanded: Expanded) -> None:
        """Write the rows of additional instances of a mapped task."""
        task = self.topology.tasks[expanded.task]
        slots = range(expanded.slot, expanded.slot + expanded.added)
        indexes = range(expanded.first_index, expanded.first_index + expanded.added)
        self.new_rows += [NewTaskRow(s, task.task_id, i, task.retries) for s, i in zip(slots, indexes, strict=True)]

    def add_row(self, added: Added) -> None:
        """Write the row of a task that the run's earlier version did not have."""
        task = self.topology.tasks[added.slot]
        self.new_rows.append(NewTaskRow(added.slot, task.task_id, UNEXPANDED, task.retries))

    def set_verified(self) -> None:
        """Give the run its target version: all its rows match it."""
        self.version = self.target

    def choose_pool(self, slot: int, pool: str) -> None:
        """Let this task instance use this pool until it is cleared."""
        self.pools[slot] = pool
        self.pool_choices.append((slot, pool))

    def keep_wait(self, wait: DeferralRow) -> None:
        """Write the wait of a task instance, or the result of its wait."""
        self.waits[wait.slot] = wait
        self.deferrals.append(wait)

    def forget_wait(self, slot: int) -> None:
        del self.waits[slot]
        self.deferrals = [one for one in self.deferrals if one.slot != slot]
        self.ended_waits.append(slot)

    def where(self, slot: int) -> tuple[str, int]:
        """Return task id and map index of a task instance."""
        instances = self.machine.instances
        return self.machine.task_id(slot), instances.index(slot)

    def add_asset_events(self, slot: int, updates: Iterable[AssetUpdate], at: int) -> None:
        """Write events for the assets that a successful task instance updated."""
        row, (task_id, index) = self.row, self.where(slot)
        for one in updates:
            extra, about = one.extra or None, one.about or None
            source = (row.dag_id, row.run_id, task_id, index)
            key = row.partition_key if one.partition_key is None or one.aliases else one.partition_key
            date = row.partition_date if key == row.partition_key else None
            event = NewAssetEvent(one.name, one.uri, one.group, extra, at, about, one.aliases, *source)
            self.asset_events.append(event._replace(partition_key=key, partition_date=date))

    def count_reschedule(self, slot: int, outcome: Outcome, try_number: int) -> None:
        """Count the reschedules of a try after the end of an attempt. The next attempt gets the count; a new try starts at 0."""
        same_try = self.machine.task_state(slot) is TaskState.SCHEDULED and self.machine.tries[slot] == try_number
        if outcome is Outcome.RESCHEDULE:
            self.reschedules[slot] = self.reschedules.get(slot, 0) + 1
        elif not same_try and outcome is not Outcome.MISSING:
            self.reschedules.pop(slot, None)

    def accepts_report_from(self, slot: int, fence: int, nonce: str, host: str) -> bool:
        """Return whether a report on this attempt is valid: it comes from the process that runs the attempt, or from its worker.

        Only the process whose start was accepted counts, and the worker of this process. Any other process was refused and has done
        nothing, and another worker cannot know about it. Before a start is accepted, every report counts. A worker host of an older
        release sends neither nonce nor host; its reports count.
        """
        holder = self.holders.get(slot)
        if holder is None or holder.fence != fence or not holder.nonce or not (nonce or host):
            return True
        return nonce == holder.nonce and may_report_for(worker_of(host), worker_of(holder.host))

    @property
    def changed(self) -> bool:
        """Whether the pending batch changes anything in the run."""
        written = self.journal or self.ends or self.xcoms or self.new_rows or self.machine.touched
        return bool(written) or self.state is not self.row.state or self.version != self.row.version

    def waits_for_previous_run(self, now: int) -> bool:
        """Return whether the run has not ended although nothing in it is active or due later: only its previous run can wake it."""
        machine = self.machine
        if machine.ended or machine.unsettled or self.state is not RunState.RUNNING:
            return False
        if machine.active > len(machine.due):
            return False
        held = (slot for slot, due in machine.due.items() if due <= now and machine.state[slot] in _TRIED_AGAIN)
        return machine.active == sum(1 for _ in held)

    def write(self, at: int) -> RunWrite:
        """Return all changes of the run in the pending batch."""
        started, ended = self._times(at)
        machine = self.machine
        return RunWrite(
            self.row.id,
            self.row.revision,
            self.state,
            started,
            ended,
            self.reason,
            self.row.journal_seq,
            [TaskWrite(machine.row(slot), state, fence) for slot, (state, fence) in machine.touched.items()],
            self.journal,
            self.starts,
            self.ends,
            self.xcoms,
            self.cleared_xcoms,
            self.new_rows,
            self.labels,
            self.pool_choices,
            self.deferrals,
            self.ended_waits,
            self.asset_events,
            self.callback_requests,
            frozenset(self.after),
            self.version,
            self.input_requests,
            self.input_answers,
            self._summary(),
            self._new_bundle_version(),
        )

    def _new_bundle_version(self) -> str | None:
        """Return the version of its bundle that the run keeps to from this batch on; None: unchanged."""
        return self.newest_bundle if self.row.bundle_version is None and self.version == self.target else None

    def _summary(self) -> bytes | None:
        """Return the summary of a run that has ended, so that a grid of many runs need not read their rows."""
        if self.state is self.row.state or self.state not in FINISHED_RUNS:
            return None
        return encode_summary(summary_of(self.machine, self.target))

    def written(self, at: int) -> None:
        """Handle the commit of the batch: update the row, and begin the next batch."""
        started, ended = self._times(at)
        self.row = self.row._replace(
            revision=self.row.revision + 1,
            journal_seq=self.row.journal_seq + len(self.journal),
            task_count=self.row.task_count + len(self.new_rows),
            rows_created=self.row.rows_created + len(self.new_rows),
            state=self.state,
            version=self.version,
            bundle_version=self.row.bundle_version or self._new_bundle_version(),
            started_at=started,
            ended_at=ended,
            reason=self.reason,
        )
        self.machine.mark_written()
        self.begin_batch()

    def _times(self, at: int) -> tuple[int | None, int | None]:
        started, ended = self.row.started_at, self.row.ended_at
        if self.state is not self.row.state:
            started = started or at  # a run whose tasks are all empty starts and ends in one batch
            if self.state in FINISHED_RUNS:
                ended = at
        return started, ended

    # --- for other parts of the scheduler -------------------------------------------------------------------------

    def candidate(self, slot: int) -> Candidate:
        """Return a scheduled task instance as a candidate for admission."""
        row = self.row
        date = row.logical_date if row.logical_date is not None else row.run_after
        return Candidate(-self.topology.priority[self.machine.instances.task(slot)], date, row.id, slot, self.needs(slot))

    def needs(self, slot: int) -> tuple[tuple[Resource, int], ...]:
        """Return every limit that an attempt of the task instance counts against, besides parallelism, and the amount."""
        row = self.row
        task = self._dispatched_task(slot)
        needs: list[tuple[Resource, int]] = [
            (("pool", self.pools.get(slot, task.pool), 0), task.pool_slots),
            (("dag", row.dag_id, 0), 1),
            (("run", row.id, 0), 1),
        ]
        if self.topology.definition.max_active_tasks_all_runs is not None:
            needs.append((("dag_tasks", row.dag_id, 0), 1))
        if task.max_active_tis_per_dag is not None:
            needs.append(((f"dag_task:{task.task_id}", row.dag_id, 0), 1))
        if task.max_active_tis_per_dagrun is not None:
            needs.append(((f"run_task:{task.task_id}", row.id, 0), 1))
        if self.executors.has_several:
            needs.append((executor_slots(self.executors.resolve(task.executor)), 1))
        return tuple(needs)

    def executor(self, slot: int) -> str:
        """Return the name of the executor that runs the task instance."""
        return self.executors.resolve(self._dispatched_task(slot).executor)

    def _dispatched_task(self, slot: int) -> TaskDefinition:
        """Return the task of a slot; for a live attempt that an earlier version of the DAG dispatched, the task of that version."""
        task = self.topology.tasks[self.machine.instances.task(slot)]
        return self.earlier.get(slot, task) if self.earlier and slot in self.machine.versions else task

    def limits(self) -> Iterable[tuple[Resource, int]]:
        """Yield the limits of the definition: for this run, for all runs, for tasks over all runs, for tasks in this run."""
        definition = self.topology.definition
        yield ("run", self.row.id, 0), definition.max_active_tasks
        if definition.max_active_tasks_all_runs is not None:
            yield ("dag_tasks", self.row.dag_id, 0), definition.max_active_tasks_all_runs
        for task in self.topology.tasks:
            if task.max_active_tis_per_dag is not None:
                yield (f"dag_task:{task.task_id}", self.row.dag_id, 0), task.max_active_tis_per_dag
            if task.max_active_tis_per_dagrun is not None:
                yield (f"run_task:{task.task_id}", self.row.id, 0), task.max_active_tis_per_dagrun

    def occupying(self) -> Iterable[int]:
        """Return the slots with a live attempt."""
        return [slot for slot, code in enumerate(self.machine.state) if code in _OCCUPYING]

    def scheduled(self) -> Iterable[int]:
        """Return the slots that wait for admission."""
        return [slot for slot, code in enumerate(self.machine.state) if code == _SCHEDULED]

    def workload(
        self,
        slot: int,
        bundle: str,
        default_timeout: int | None,
        import_cost: int = 0,
        file: str | None = None,
        newest: str | None = None,
    ) -> Workload:
        """Return the message with which a worker host runs the current attempt of this task instance.

        Args:
            bundle: name of the bundle that has the DAG file.
            default_timeout: execution timeout of tasks without their own, microseconds.
            import_cost: how long parsing the DAG's file took, microseconds.
            file: path of the DAG's file, if it differs from the definition's: the file was renamed since.
            newest: the newest version of the bundle, for a run that keeps no version.
        """
        row, machine = self.row, self.machine
        number, index = machine.instances.task(slot), machine.instances.index(slot)
        task = self.topology.tasks[number]
        fence, tries = machine.fence[slot], machine.tries[slot]
        wait = self.waits.get(slot)
        executor = self.executors.resolve(task.executor)
        return Workload(
            run=row.id,
            slot=slot,
            fence=fence,
            import_cost=import_cost,
            dag_id=row.dag_id,
            task_id=machine.task_id(slot),
            run_id=row.run_id,
            map_index=index,
            try_number=tries,
            max_tries=machine.retries(slot),
            bundle=bundle,
            bundle_version=row.bundle_version or newest,
            file=file or self.topology.definition.fileloc,
            run_type=row.run_type,
            logical_date=row.logical_date,
            interval_start=row.interval_start,
            interval_end=row.interval_end,
            run_after=row.run_after,
            partition_key=row.partition_key,
            partition_date=row.partition_date,
            run_started=row.started_at,
            queued_at=machine.queued_at[slot],
            reschedules=self.reschedules.get(slot, 0),
            first_started=machine.started_at[slot] or None,
            conf=self.conf,
            triggering_user=row.triggering_user,
            execution_timeout=task.execution_timeout if task.execution_timeout is not None else default_timeout,
            pool=self.pools.get(slot, task.pool),
            queue=task.queue,
            executor=executor,
            priority=self.topology.priority[number],
            owner=task.owner,
            run_as_user=task.run_as_user,
            log=log_path(row.dag_id, row.run_id, task.task_id, index, tries, fence),
            resumption=None if wait is None else wait.resumption,
            previous_host=self.last_hosts.get(slot, ""),
            pod_override=task.pod_override if executor == KUBERNETES else "",
        )
