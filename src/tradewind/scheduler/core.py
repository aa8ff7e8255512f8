"""The scheduler: one actor, one inbox, one owner of mutable state.

    inbox ─▶ machines decide ─▶ admission gives slots ─▶ one transaction (group commit) ─▶ after commit: submit, answer, notify

Whatever happens becomes an item in the inbox. `process` takes what is there, lets each run's machine apply its events, admits
what fits, writes all of it in one transaction and only then lets the outside hear of it. Nothing is dispatched from a decision
that is not committed. A run whose guard missed is rebuilt from the store and its events are applied again; the others commit.
If the transaction fails, or its outcome is unknown, everything is rebuilt from the store: there is no state in memory that the
store does not have.

Whatever one run or one item throws is caught at that item; the run is quarantined, shown in the log, and tried again later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tradewind.executors.port import Executor
from tradewind.kernel import events as e
from tradewind.kernel.admission import PARALLELISM, UNLIMITED, Admission
from tradewind.kernel.machine import RunFacts, RunMachine
from tradewind.kernel.topology import Topology
from tradewind.model.errors import Stale, StoreError
from tradewind.model.moments import SECOND
from tradewind.model.states import FINISHED, OCCUPYING, RunState, TaskState
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.past_watch import PastWatch
from tradewind.scheduler.run_box import RunBox
from tradewind.scheduler.schedule_book import DagEntry, plan_next, take_due, times_of
from tradewind.scheduler.timers import Timers
from tradewind.service.clock import Clock
from tradewind.store.nouns import AttemptEnd, AttemptStart, Batch, NewRun, RunRow, SchedulePosition, XComWrite
from tradewind.store.port import Store
from tradewind.wire.messages import Accepted, AttemptKey, Notice, Refused, Report, Start, ToRunner, Workload

log = Log("scheduler")

QUARANTINE = 30 * SECOND
TOPOLOGIES_KEPT = 64


class FromWorker(NamedTuple):
    """A runner's start or report, as it came through its host."""

    attempt: AttemptKey
    host: str
    body: Start | Report


class RunEvent(NamedTuple):
    """Something else that happened to a run."""

    run: int
    event: e.Event


class GoOn(NamedTuple):
    """A run has more decisions than fitted into one batch."""

    run: int


Item = FromWorker | RunEvent | GoOn


class Scheduler:
    """See the module. Not reentrant; everything is called from one loop."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        config: SchedulerConfig,
        executor: Executor,
        epoch: int,
        notify: Callable[[Notice], None],
    ) -> None:
        self.store = store
        self.clock = clock
        self.config = config
        self.executor = executor
        self.epoch = epoch
        self.notify = notify
        self.inbox: deque[Item] = deque()
        self.boxes: dict[int, RunBox] = {}
        self.dags: dict[str, DagEntry] = {}
        self.admission = Admission()
        self.timers = Timers()
        self.past = PastWatch(store)
        self.trouble: str | None = None
        """Why nothing can be written now, or None."""
        self.superseded = False
        self._topologies: dict[int, Topology] = {}
        self._touched: dict[int, RunBox] = {}
        self._after: list[tuple[int, Callable[[], None]]] = []
        self._workloads: list[tuple[RunBox, int]] = []
        self._new: list[tuple[NewRun, SchedulePosition]] = []
        self._quarantined: set[int] = set()
        self._looked_at: set[str] = set()
        """DAGs whose runs have to be looked at: something started, ended or came due."""
        self._failures = 0
        self._taken: list[Item] = []
        self._readmit = False
        self._positions: dict[str, SchedulePosition] = {}
        """Schedules that moved without a run: shown to people as the next run."""
        self._wanted: deque[tuple[str, int]] = deque()

    # --- from the store ---------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Build everything from the store: at the start, and when a commit failed."""
        now = self.clock.wall()
        self.boxes.clear()
        self.dags.clear()
        self.admission = Admission()
        self.timers.clear()
        self.past.clear()
        self._quarantined.clear()
        self._positions.clear()
        self._touched.clear()
        self._after.clear()
        self._workloads.clear()
        self._new.clear()
        self._wanted.clear()
        self.admission.set_capacity(PARALLELISM, self.config.parallelism or UNLIMITED)
        self.refresh_pools()
        for plan in self.store.plans():
            self.dags[plan.dag_id] = DagEntry(plan)
            self._open_or_close(plan.dag_id)
        for row in self.store.active_runs():
            entry = self.dags.get(row.dag_id)
            if row.state is RunState.QUEUED and entry is not None:
                entry.enqueue(row)
                self._ask_for_rows(row)
            elif row.state is RunState.RUNNING:
                self._guarded(row.id, lambda row=row: self._restore(row.id))  # type: ignore[misc]
        for dag_id, entry in self.dags.items():
            plan_next(entry, now)
            self._look_at(dag_id)

    def refresh_pools(self) -> None:
        """Pools may have been changed."""
        for pool in self.store.pools():
            self.admission.set_capacity(("pool", pool.name, 0), pool.slots)

    def forget_pool(self, name: str) -> None:
        self.admission.set_capacity(("pool", name, 0), None)

    def refresh_dag(self, dag_id: str) -> None:
        """A DAG was parsed anew, paused, unpaused, or has a new run."""
        plan = self.store.dag(dag_id)
        if plan is None:
            return
        entry = self.dags.get(dag_id)
        if entry is None:
            entry = self.dags[dag_id] = DagEntry(plan)
        entry.plan = plan
        for row in self.store.active_runs(dag_id):
            if row.state is RunState.QUEUED and row.id not in entry.running:
                entry.enqueue(row)
                self._ask_for_rows(row)
        self._open_or_close(dag_id)
        plan_next(entry, self.clock.wall())
        following = times_of(entry.next)
        self._positions[dag_id] = SchedulePosition(dag_id, entry.plan.last, following)
        self._look_at(dag_id)

    def refresh_run(self, run: int) -> None:
        """A person changed this run: build it anew."""
        row = self.store.run(run)
        self._forget(run)
        if row is None:
            return
        entry = self.dags.get(row.dag_id)
        if entry is not None and row.state is RunState.QUEUED:
            entry.running.discard(run)
            entry.enqueue(row)
            self._look_at(row.dag_id)
        elif row.state is RunState.RUNNING:
            self._guarded(run, lambda: self._restore(run))
        self.past.edited(run, self.boxes, self._push)

    def _restore(self, run: int) -> RunBox | None:
        """The machine of a running run, its slots, candidates and timers."""
        snapshot = self.store.snapshot(run)
        if snapshot is None or snapshot.run.state is not RunState.RUNNING:
            return None
        topology = self._topology(snapshot.run.version)
        box = RunBox.restore(snapshot, topology, self.config.requeue_limit, self.config.batch_max_rows)
        self._adopt(box)
        machine = box.machine
        for slot in box.occupying():
            self.admission.occupy(run, slot, box.needs(slot))
            if machine.task_state(slot) is TaskState.RESTARTING:
                key = (run, slot, machine.fence[slot])
                self.executor.cancel(key, "it was cleared", self.config.kill_grace)
        for slot in box.scheduled():
            self.admission.add(box.candidate(slot))
        for slot, due in machine.due.items():
            self._at(due, RunEvent(run, e.TimerDue(slot, due)))
        self.inbox.append(GoOn(run))
        return box

    def _adopt(self, box: RunBox) -> None:
        """A run that is running or starts to."""
        row, definition = box.row, box.topology.definition
        self.boxes[row.id] = box
        entry = self.dags.get(row.dag_id)
        if entry is not None:
            entry.running.add(row.id)
        self.admission.set_capacity(("run", row.id, 0), definition.max_active_tasks)
        for slot, task in enumerate(box.topology.tasks):
            if task.max_active_tis_per_dag is not None:
                self.admission.set_capacity((f"dag_task:{task.task_id}", row.dag_id, 0), task.max_active_tis_per_dag)
            if task.max_active_tis_per_dagrun is not None:
                self.admission.set_capacity(("run_task", row.id, slot), task.max_active_tis_per_dagrun)
        if definition.dagrun_timeout is not None:
            started = row.started_at or self.clock.wall()
            due = started + definition.dagrun_timeout
            self._at(due, RunEvent(row.id, e.RunTimedOut(due)))
        self.past.adopt(box, self.boxes, self._push)

    def _forget(self, run: int) -> None:
        """The run is not running any more, or is built anew: release what it holds."""
        box = self.boxes.pop(run, None)
        self._touched.pop(run, None)
        if box is None:
            return
        entry = self.dags.get(box.row.dag_id)
        if entry is not None:
            entry.running.discard(run)
        for slot in box.occupying():
            self.admission.release(run, slot)
        for slot in box.scheduled():
            self.admission.discard(run, slot)
        self.admission.forget(("run", run, 0))
        for slot, task in enumerate(box.topology.tasks):
            if task.max_active_tis_per_dagrun is not None:
                self.admission.forget(("run_task", run, slot))
        self.past.forget(run)

    def _topology(self, version: int) -> Topology:
        found = self._topologies.get(version)
        if found is None:
            found = self._topologies[version] = Topology(self.store.definition(version))
            while len(self._topologies) > TOPOLOGIES_KEPT:
                del self._topologies[next(iter(self._topologies))]
        return found

    def _open_or_close(self, dag_id: str) -> None:
        """A paused DAG's tasks are not admitted."""
        entry = self.dags[dag_id]
        self.admission.set_capacity(("dag", dag_id, 0), UNLIMITED if not entry.plan.is_paused else 0)

    # --- the inbox --------------------------------------------------------------------------------------------------

    def push(self, item: Item) -> None:
        """Something happened; it is handled by the next `process`."""
        self.inbox.append(item)

    def _push(self, run: int, event: e.Event) -> None:
        self.inbox.append(RunEvent(run, event))

    def _at(self, due: int, item: Item) -> None:
        self.timers.add(due, item)

    def _look_at(self, dag_id: str) -> None:
        self._looked_at.add(dag_id)

    def wake_timers(self) -> None:
        """Move what is due into the inbox."""
        for item in self.timers.due(self.clock.wall()):
            if isinstance(item, str):
                self._look_at(item)
            else:
                self.inbox.append(item)

    @property
    def busy(self) -> bool:
        """Is there something to do now?"""
        return bool(self.inbox or self._looked_at or self._wanted or self._readmit or self._positions)

    def readmit(self) -> None:
        """A limit may have changed: look whether somebody fits now."""
        self._readmit = True

    def process(self) -> None:
        """Do all that is there to do, in transactions of bounded size."""
        self.wake_timers()
        while self.busy and self.trouble is None and not self.superseded:
            self._taken = []
            try:
                self._decide()
            except StoreError as error:
                self._commit_failed(error, self._taken)
                return
            self._commit(self._taken)
            self.wake_timers()

    # --- deciding ---------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Apply a bounded number of items, look at the DAGs concerned, and admit."""
        now = self.clock.wall()
        rows = 0
        while self.inbox and rows < self.config.batch_max_rows:
            item = self.inbox.popleft()
            self._taken.append(item)
            run = item.attempt[0] if isinstance(item, FromWorker) else item.run
            rows += self._guarded(run, lambda item=item: self._apply(item, now)) or 0  # type: ignore[misc]
        for dag_id in sorted(self._looked_at):
            self._schedule(dag_id, now)
        self._looked_at.clear()
        self._readmit = False
        room = max(1, (self.config.batch_max_rows - rows) // 2)
        for candidate in self.admission.admit(room):
            box = self.boxes[candidate.run]
            self._guarded(candidate.run, lambda b=box, s=candidate.slot: self._dispatch(b, s, now))  # type: ignore[misc]
            self._readmit = True

    def _guarded(self, run: int, work: Callable[[], object]) -> int:
        """Whatever one run throws stays with it: it is set aside and tried again later."""
        if run in self._quarantined:
            return 0
        try:
            result = work()
        except StoreError:
            raise
        except Exception:
            log.exception("a run is set aside, because deciding it failed; it is tried again later", run=run)
            self._forget(run)
            self._quarantined.add(run)
            self.timers.add(self.clock.wall() + QUARANTINE, GoOn(run))
            return 0
        return result if isinstance(result, int) else 0

    def _apply(self, item: Item, now: int) -> int:
        if isinstance(item, FromWorker):
            return self._apply_worker(item, now)
        box = self.boxes.get(item.run)
        if box is None:
            if isinstance(item, GoOn) and item.run in self._quarantined:
                self._quarantined.discard(item.run)
                self._restore(item.run)
            return 0
        if isinstance(item, GoOn):
            return self._take(box, box.machine.settle(now), now)
        return self._take(box, box.machine.apply(item.event._replace(at=now)), now)

    def _apply_worker(self, item: FromWorker, now: int) -> int:
        box = self.boxes.get(item.attempt[0])
        if box is None:
            self._answer(item, Refused(item.body.op, "its run is not running"))
            return 0
        if isinstance(item.body, Start):
            return self._apply_start(box, item, item.body, now)
        return self._apply_report(box, item, item.body, now)

    def _apply_start(self, box: RunBox, item: FromWorker, start: Start, now: int) -> int:
        _, slot, fence = item.attempt
        known = box.nonces.get(slot)
        machine = box.machine
        if known is not None and known[0] == fence:
            same = known[1] == start.nonce and machine.fence[slot] == fence
            answer = Accepted(start.op) if same else Refused(start.op, "another process was started for this attempt")
            self._answer(item, answer)
            return 0
        first_of_try = machine.started_at[slot] == 0
        decisions = machine.apply(e.AttemptStarted(slot, fence, now))
        refusal = next((d for d in decisions if isinstance(d, e.Refusal)), None)
        if refusal is not None:
            self._answer(item, Refused(start.op, refusal.cause))
            return self._take(box, decisions, now)
        box.nonces[slot] = (fence, start.nonce)
        if first_of_try and machine.tries[slot] > 1:
            box.cleared_xcoms.append((box.topology.ids[slot], -1))
        box.starts.append(
            AttemptStart(
                slot,
                fence,
                machine.tries[slot],
                self.executor.name,
                item.host,
                start.hostname,
                start.pid,
                start.nonce,
                machine.queued_at[slot],
                now,
            )
        )
        self._answer(item, Accepted(start.op))
        return self._take(box, decisions, now)

    def _apply_report(self, box: RunBox, item: FromWorker, report: Report, now: int) -> int:
        _, slot, fence = item.attempt
        machine = box.machine
        ended = report.ended or now
        tries, queued = machine.tries[slot], machine.queued_at[slot]
        decisions = machine.apply(
            e.AttemptEnded(
                slot,
                fence,
                report.outcome,
                now,
                report.reason,
                report.reschedule_at,
                report.retry_delay,
                report.branch,
            )
        )
        refusal = next((d for d in decisions if isinstance(d, e.Refusal)), None)
        if refusal is not None:
            self._answer(item, Refused(report.op, refusal.cause))
            return self._take(box, decisions, now)
        box.nonces.pop(slot, None)
        box.ends.append(
            AttemptEnd(
                slot,
                fence,
                tries,
                self.executor.name,
                queued,
                ended,
                report.outcome.value,
                report.reason,
                report.exit_code,
                report.signal,
            )
        )
        task_id = box.topology.ids[slot]
        for xcom in report.xcoms:
            box.xcoms.append(XComWrite(task_id, -1, xcom.key, xcom.value or None, xcom.spill, xcom.size, ended))
        self._answer(item, Accepted(report.op))
        return self._take(box, decisions, now)

    def _answer(self, item: FromWorker, answer: Accepted | Refused) -> None:
        """After the commit."""
        self._after.append((item.attempt[0], lambda: self.executor.answer(ToRunner(item.attempt, answer))))

    def _take(self, box: RunBox, decisions: list[e.Decision], now: int) -> int:
        """Everything that a run's decisions mean for the rest of the scheduler; how many rows they make."""
        run, moves = box.row.id, 0
        for decision in decisions:
            if isinstance(decision, e.Move):
                moves += 1
                box.note(decision)
                self._moved(box, decision)
            elif isinstance(decision, e.Timer):
                self._at(decision.due, RunEvent(run, e.TimerDue(decision.slot, decision.due)))
            elif isinstance(decision, e.Stop):
                self._stop_attempt(box, decision)
            elif isinstance(decision, e.RunEnds):
                box.state = RunState.SUCCESS if decision.success else RunState.FAILED
                box.reason = decision.cause
                self._look_at(box.row.dag_id)
        if box.changed:
            self._touched[run] = box
        if box.machine.unsettled:
            self.inbox.append(GoOn(run))
        return moves

    def _moved(self, box: RunBox, move: e.Move) -> None:
        run, slot = box.row.id, move.slot
        if move.before is TaskState.SCHEDULED and move.after is not TaskState.QUEUED:
            self.admission.discard(run, slot)
        if move.before in OCCUPYING and move.after not in OCCUPYING:
            self.admission.release(run, slot)
            box.nonces.pop(slot, None)
        if move.after is TaskState.SCHEDULED:
            self.admission.add(box.candidate(slot))
        if move.after in FINISHED or move.before in FINISHED:
            self.past.finished(box, slot, self.boxes, self._push)

    def _stop_attempt(self, box: RunBox, stop: e.Stop) -> None:
        key = (box.row.id, stop.slot, stop.fence)
        self._after.append((key[0], lambda: self.executor.cancel(key, stop.cause, self.config.kill_grace)))
        box.ends.append(
            AttemptEnd(
                stop.slot,
                stop.fence,
                box.machine.tries[stop.slot],
                self.executor.name,
                box.machine.queued_at[stop.slot],
                self.clock.wall(),
                "stopped",
                stop.cause,
                None,
                None,
            )
        )

    def _dispatch(self, box: RunBox, slot: int, now: int) -> int:
        moves = self._take(box, box.machine.apply(e.Admitted(slot, now)), now)
        self._workloads.append((box, slot))
        return moves

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _schedule(self, dag_id: str, now: int) -> None:
        """Create the runs of a DAG that are due, and start those that may start."""
        entry = self.dags.get(dag_id)
        if entry is None:
            return
        pending = sum(1 for new, _ in self._new if new.dag_id == dag_id)
        while (due := take_due(entry, now, pending)) is not None:
            self._new.append(due)
            pending += 1
        while (row := entry.startable(now)) is not None:
            self._guarded(row.id, lambda row=row: self._start(row, now))  # type: ignore[misc]
        self._wake_for(entry, now)

    def _wake_for(self, entry: DagEntry, now: int) -> None:
        """Look at this DAG again when its next run is due, or its oldest queued one."""
        moments = [m for m in (entry.next.run_after if entry.next else None, entry.next_wait()) if m is not None and m > now]
        if moments and entry.open:
            self.timers.add(min(moments), entry.plan.dag_id)

    def _start(self, row: RunRow, now: int) -> int:
        """A queued run begins: its roots become scheduled."""
        if row.revision == 0 and row.started_at is None and row.clear_number == 0:
            facts = RunFacts(row.id, row.dag_id, row.logical_date, self.config.requeue_limit, self.config.batch_max_rows)
            topology = self._topology(row.version)
            box = RunBox(row, topology, RunMachine(topology, facts))
            begin = True
        else:
            snapshot = self.store.snapshot(row.id)
            if snapshot is None:
                return 0
            topology = self._topology(row.version)
            box = RunBox.restore(snapshot, topology, self.config.requeue_limit, self.config.batch_max_rows)
            begin = False
        box.state = RunState.RUNNING
        self._touched[row.id] = box
        self._adopt(box)
        machine = box.machine
        decisions = machine.apply(e.RunStarted(now)) if begin else machine.settle(now)
        return self._take(box, decisions, now)

    def _ask_for_rows(self, row: RunRow) -> None:
        if row.rows_created < row.task_count:
            self._wanted.append((row.dag_id, row.id))

    # --- committing -----------------------------------------------------------------------------------------------------

    def _commit(self, items: list[Item]) -> None:
        """Write the batch; then, and only then, let the outside hear of it."""
        now = self.clock.wall()
        touched = {run: box for run, box in self._touched.items() if box.changed}
        wanted = [self._wanted.popleft() for _ in range(min(len(self._wanted), 1))]
        new = self._new
        if touched or new or wanted or self._positions:
            batch = Batch(
                self.epoch,
                now,
                [box.write(now) for box in touched.values()],
                [created for created, _ in new],
                [*self._positions.values(), *(position for _, position in new)],
                [(run, self.config.batch_max_rows) for _, run in wanted],
            )
            fp("scheduler.before_commit")
            try:
                committed = self.store.commit(batch)
            except Stale as error:
                log.error("this scheduler was superseded and stops", error=str(error))
                self.superseded = True
                return
            except StoreError as error:
                self._commit_failed(error, items)
                return
            fp("scheduler.after_commit")
            self._failures = 0
            self._positions.clear()
            for run, slots in committed.stale.items():
                log.warning("a run was changed by somebody else; it is read anew", run=run, slots=slots[:10])
                touched.pop(run, None)
                self._after = [(owner, call) for owner, call in self._after if owner != run]
                self.refresh_run(run)
                self.inbox.extend(item for item in items if _run_of(item) == run and not isinstance(item, GoOn))
            self._written(touched, now)
            self._created(new, committed.created)
            for dag_id, run in wanted:
                self._rows_created(dag_id, run, committed.rows_created.get(run, 0))
        self._touched.clear()
        self._new = []
        self._let_out()

    def _let_out(self) -> None:
        """After the commit: answers, cancels, then new work."""
        after, self._after = self._after, []
        workloads, self._workloads = self._workloads, []
        for _, call in after:
            call()
        if workloads:
            ready: list[Workload] = []
            for box, slot in workloads:
                if box.machine.task_state(slot) is TaskState.QUEUED and self.boxes.get(box.row.id) is box:
                    ready.append(self._workload(box.row.id, slot))
            fp("scheduler.before_submit")
            self.executor.submit(ready)

    def _written(self, touched: dict[int, RunBox], now: int) -> None:
        for run, box in touched.items():
            changed = box.state is not box.row.state
            box.written(now)
            if changed:
                row = box.row
                self.notify(Notice("run", row.dag_id, row.run_id, row.state.value, at=now, text=row.reason or ""))
                if row.state is not RunState.RUNNING:
                    self._forget(run)
                    self._look_at(row.dag_id)

    def _created(self, new: list[tuple[NewRun, SchedulePosition]], rows: list[RunRow]) -> None:
        for (wanted, _), row in zip(new, rows, strict=True):
            entry = self.dags.get(wanted.dag_id)
            if entry is not None and row.state is RunState.QUEUED:
                entry.enqueue(row)
                self._ask_for_rows(row)
                self.notify(Notice("run", row.dag_id, row.run_id, row.state.value, at=row.queued_at))
            self._look_at(wanted.dag_id)

    def _rows_created(self, dag_id: str, run: int, have: int) -> None:
        entry = self.dags.get(dag_id)
        row = entry.waiting.get(run) if entry is not None else None
        if entry is None or row is None:
            return
        if have >= row.task_count:
            entry.wants_rows.discard(run)
            entry.waiting[run] = row._replace(rows_created=have)
            self._look_at(dag_id)
        else:
            self._wanted.append((dag_id, run))

    def _commit_failed(self, error: StoreError, items: list[Item]) -> None:
        """Nothing was written, or nobody knows: what memory says does not count. The items come again after a while."""
        self._failures += 1
        if self._failures == 1:
            log.error("the store cannot be written; it is tried again", error=str(error))
        self.trouble = str(error)
        self.inbox.extendleft(reversed([item for item in items if not isinstance(item, GoOn)]))

    def recover(self) -> bool:
        """After trouble: build everything from the store again; whether that worked."""
        try:
            self.load()
        except StoreError as error:
            self.trouble = str(error)
            return False
        if self.trouble is not None:
            log.info("the store can be written again")
        self.trouble = None
        return True

    # --- hosts --------------------------------------------------------------------------------------------------------

    def attempts(self) -> list[tuple[AttemptKey, TaskState, int]]:
        """Every live attempt: its key, the state of its task instance, and when it was dispatched."""
        found = []
        for run, box in self.boxes.items():
            machine = box.machine
            for slot in box.occupying():
                found.append(((run, slot, machine.fence[slot]), machine.task_state(slot), machine.queued_at[slot]))
        return found

    def host_came(self, live: frozenset[AttemptKey]) -> None:
        """A worker host said what it holds: hand over what it lacks, give up what died with its earlier life."""
        now = self.clock.wall()
        again: list[Workload] = []
        ours: set[AttemptKey] = set()
        for key, state, _ in self.attempts():
            ours.add(key)
            if key in live:
                if state is TaskState.RESTARTING:
                    self.executor.cancel(key, "it was cleared", self.config.kill_grace)
            elif state is TaskState.QUEUED:
                again.append(self._workload(key[0], key[1]))
            else:
                self._push(key[0], e.AttemptVanished(key[1], key[2], now, "the worker died"))
        for key in live - ours:
            self.executor.cancel(key, "it is not current any more", self.config.kill_grace)
        self.executor.submit(again)

    def resubmit_old(self, older_than: int) -> int:
        """Safety net: hand over again what was dispatched before a moment and has not started; how many."""
        again = [
            self._workload(key[0], key[1])
            for key, state, queued in self.attempts()
            if state is TaskState.QUEUED and queued <= older_than
        ]
        if again:
            self.executor.submit(again)
        return len(again)

    def reconcile(self) -> None:
        """Safety net: do the hosts still have what we believe to run?"""
        self.executor.reconcile([key for key, state, _ in self.attempts() if state is not TaskState.QUEUED])

    def _workload(self, run: int, slot: int) -> Workload:
        box = self.boxes[run]
        entry = self.dags.get(box.row.dag_id)
        folder = self.config.folder(entry.plan.bundle if entry is not None else "")
        return box.workload(slot, folder, self.config.default_execution_timeout)


def _run_of(item: Item) -> int:
    return item.attempt[0] if isinstance(item, FromWorker) else item.run
