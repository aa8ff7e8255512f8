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
from functools import partial
from itertools import islice
from typing import TypeVar

from tradewind.executors.port import Executor
from tradewind.kernel import events as e
from tradewind.kernel.admission import PARALLELISM, UNLIMITED, Admission
from tradewind.kernel.callbacks import STEPS
from tradewind.kernel.codes import NO_TASK
from tradewind.kernel.machine import RunFacts, RunMachine
from tradewind.kernel.topology import Topology
from tradewind.model.errors import NotFound, Stale, StoreError, StoreRefused
from tradewind.model.states import FINISHED, OCCUPYING, SCHEDULABLE, RunState, TaskState
from tradewind.model.waits import TriggerWait
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.scheduler import follow_ups
from tradewind.scheduler.asset_book import AssetBook
from tradewind.scheduler.attempt_desk import AttemptDesk
from tradewind.scheduler.backfills import BackfillBook
from tradewind.scheduler.callback_desk import CallbackDesk
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.group_writer import GroupWriter
from tradewind.scheduler.host_desk import HostDesk
from tradewind.scheduler.items import FromWorker, GoOn, Item, RunEvent, run_of
from tradewind.scheduler.past_watch import PastWatch
from tradewind.scheduler.places import Places
from tradewind.scheduler.planned_waits import planned_row
from tradewind.scheduler.quarantine import Quarantine
from tradewind.scheduler.run_box import WAIT_IS_KEPT, RunBox
from tradewind.scheduler.schedule_book import DagEntry, plan_next, take_due, times_of
from tradewind.scheduler.timers import Timers
from tradewind.scheduler.timetable_desk import TimetableDesk
from tradewind.scheduler.waits import WaitDesk, WaitDue, WaitNews, come_due, due_at, over
from tradewind.service.clock import Clock
from tradewind.store.nouns import (
    Batch,
    DagPlan,
    NewRun,
    RunRow,
    RunSnapshot,
    SchedulePosition,
    XComWrite,
)
from tradewind.store.port import Store
from tradewind.wire.messages import (
    Notice,
    Refused,
    Start,
    TimetableTold,
    Workload,
)

log = Log("scheduler")
T = TypeVar("T")

TOPOLOGIES_KEPT = 64
ROWS_PER_MOVE = 2
"""The task instance's own, and the journal's."""
CREATED_WITH_RUN = 2000
"""Task-instance rows that a store writes with a run; those of a huge one follow by and by."""
RESERVE = 20
"""Whatever else a transaction writes, one part in so many is left for what waits: dispatches, rows of new runs."""


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
        self.places = Places(self.past, self._topology, self.boxes)
        self.hosts = HostDesk(self)
        self._attempts = AttemptDesk(self)
        self._writer = GroupWriter(store, self._set_aside)
        self.waits = WaitDesk(store, self.timers)
        self.trouble: str | None = None
        """Why the last thing that was to be written could not be, or None."""
        self.turns_left: int | None = None
        """Transactions after which it decides nothing more; None: no end."""
        self.paused = False
        """Nothing is decided until everything was read anew."""
        self.superseded = False
        self._topologies: dict[int, Topology] = {}
        self._touched: dict[int, RunBox] = {}
        self.after: list[tuple[int, Callable[[], None]]] = []
        self._workloads: list[tuple[RunBox, int]] = []
        self._new: list[tuple[NewRun, SchedulePosition]] = []
        self._next_wave: dict[int, None] = {}
        """Runs with decisions that wait until slots were given."""
        self._going_on: set[int] = set()
        """Runs that have a `GoOn` in the inbox."""
        self.quarantine = Quarantine()
        """Runs whose deciding failed. They count as running, and their attempts keep their slots, until they are tried again."""
        self._looked_at: dict[str, None] = {}
        """DAGs whose runs have to be looked at, in turn: something started, ended or came due."""
        self._failures = 0
        self._taken: list[Item] = []
        self.rows = 0
        """Rows that the batch under way writes, roughly."""
        self._readmit = False
        self._positions: dict[str, SchedulePosition] = {}
        """Schedules that moved without a run: shown to people as the next run."""
        self._wanted: dict[int, str] = {}
        """Queued runs with rows still to be written → their DAG, in turn."""
        self.desk = TimetableDesk(store, config.folder)
        self.callbacks = CallbackDesk(store, config, self.hosts.place)
        self._backfilled: dict[str, None] = {}
        """DAGs whose backfill may give the next run its turn."""
        self._book = BackfillBook(store, epoch, config.batch_max_rows)
        self.assets = AssetBook(store, epoch)
        self._counting_pools: frozenset[str] = frozenset()
        """Pools whose slots deferred task instances hold, too."""

    # --- from the store ---------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Build everything from the store: at the start, and when a commit failed."""
        now = self.clock.wall()
        self.boxes.clear()
        self.dags.clear()
        self.admission = Admission()
        self.timers.clear()
        self.past.clear()
        self.quarantine.clear()
        self.waits.clear()
        self._going_on.clear()
        self._next_wave.clear()
        self._positions.clear()
        self._touched.clear()
        self.after.clear()
        self._workloads.clear()
        self._new.clear()
        self._wanted.clear()
        self.desk.restart()
        self.callbacks.ring()
        self._backfilled.clear()
        self._book.clear()
        self.assets.clear()
        # what follows from the store is found again; what was said to us is not. Hosts say a thing again until it is answered
        told: dict[object, Item] = {}
        for item in self.inbox:
            if isinstance(item, FromWorker):
                told[item.attempt, item.body.op] = item
            elif isinstance(item, RunEvent) and isinstance(item.event, e.AttemptVanished):
                told[item.run, item.event.slot, item.event.fence, "vanished"] = item
        self.inbox = deque(told.values())
        self.admission.set_capacity(PARALLELISM, self.config.parallelism or UNLIMITED)
        self.refresh_pools()
        for plan in self.store.plans():
            self.dags[plan.dag_id] = DagEntry(plan)
            self._open_or_close(plan.dag_id)
        for backfill in self.store.backfills():
            if backfill.dag_id in self.dags:
                self.dags[backfill.dag_id].backfill = backfill
        for row in self.store.active_runs():
            entry = self.dags.get(row.dag_id)
            if row.state is RunState.QUEUED and entry is not None:
                self._enqueue(entry, row)
            elif row.state is RunState.RUNNING:
                self._bring_back(row)
        for entry in self.dags.values():
            self._plan(entry, now)

    def refresh_pools(self) -> None:
        """Pools may have been changed."""
        pools = self.store.pools()
        for pool in pools:
            self.admission.set_capacity(("pool", pool.name, 0), pool.slots)
        before, self._counting_pools = self._counting_pools, frozenset(pool.name for pool in pools if pool.include_deferred)
        changed = before ^ self._counting_pools
        for box in self.boxes.values() if changed else ():
            for slot in box.waits:
                if box.machine.task_state(slot) is TaskState.DEFERRED and box.needs(slot)[0][0][1] in changed:
                    self.admission.release(box.row.id, slot)
                    self._hold_while_deferred(box, slot)

    def forget_pool(self, name: str) -> None:
        self.admission.set_capacity(("pool", name, 0), None)
        self.refresh_pools()

    def refresh_dag(self, dag_id: str) -> None:
        """A DAG was parsed anew, paused, unpaused, or has a new run."""
        plan = self.store.dag(dag_id)
        if plan is None:
            self.waits.notice_all()
            if self.dags.pop(dag_id, None) is not None:  # deleted, with all its runs
                self._positions.pop(dag_id, None)
                self.admission.set_capacity(("dag", dag_id, 0), None)
            return
        entry = self.dags.get(dag_id)
        if entry is None:
            entry = self.dags[dag_id] = DagEntry(plan)
        elif entry.plan.file != plan.file:
            self.desk.pardon(entry.plan, self.clock.wall(), custom=False)
        entry.plan = plan
        entry.backfill = next(iter(self.store.backfills(dag_id)), None)
        for row in self.store.active_runs(dag_id):
            if row.state is RunState.QUEUED and row.id not in entry.running:
                self._enqueue(entry, row)
        self._open_or_close(dag_id)
        self._plan(entry, self.clock.wall())

    def _plan(self, entry: DagEntry, now: int) -> None:
        """Its next run may be another one."""
        plan_next(entry, now)
        dag_id = entry.plan.dag_id
        if entry.wants is None and entry.told is None:
            self.desk.pardon(entry.plan, now, custom=False)
        if entry.wants is None:  # else what is shown stays until the timetable has answered
            self._positions[dag_id] = SchedulePosition(dag_id, entry.plan.last, times_of(entry.next))
        self._look_at(dag_id)

    def file_read(self, dag_id: str) -> None:
        """Its file was read anew: the code of a custom timetable may be another one, though the DAG looks the same."""
        entry = self.dags.get(dag_id)
        if entry is None or (entry.told is None and entry.wants is None and dag_id not in self.desk.troubles):
            return
        now = self.clock.wall()
        entry.told = None
        plan_next(entry, now)
        self.desk.pardon(entry.plan, now, custom=entry.wants is not None)
        self._look_at(dag_id)

    def timetable_told(self, told: TimetableTold) -> None:
        """A custom timetable has answered, or could not."""
        now = self.clock.wall()
        entry = self.desk.take(told, self.dags, now)
        if entry is not None:
            self._plan(entry, now)

    def refresh_run(self, run: int) -> None:
        """A person changed this run, or it was set aside and is tried again: build it anew."""
        row = self.store.run(run)
        triggers = {one.key for one in self.waits.triggers() if one.key[0] == run}
        self._forget(run)
        if run in self.quarantine:
            self.quarantine.discard(run)
            self.admission.release_run(run)
        if row is None:
            for owner in self.dags.values():
                owner.waiting.pop(run, None)
            self.waits.notice_all()  # whoever waits for this run will not see it any more
            return
        entry = self.dags.get(row.dag_id)
        if entry is not None:
            entry.running.discard(run)
            self._look_at(row.dag_id)
            if row.state is RunState.QUEUED:
                self._enqueue(entry, row)
            else:
                entry.waiting.pop(run, None)
        if row.state is RunState.RUNNING:
            self._bring_back(row)
        self.past.edited(run, self.boxes, self._push)
        self.waits.run_changed(row.dag_id, row.logical_date, row.run_id)
        gone = triggers - {one.key for one in self.waits.triggers()}
        if gone:
            self.executor.drop_triggers(sorted(gone))

    def runs_deleted(self) -> None:
        """Finished runs were deleted: the run before a running one may be another one now, and one that is waited for be gone."""
        self.waits.runs_deleted()
        self.past.look_again(self.boxes, self._push)
        for entry in self.dags.values():
            if entry.waiting and entry.running:
                self._look_at(entry.plan.dag_id)

    def noted(self, run: int, note: str | None) -> None:
        """A person wrote a note on a run; nothing follows from it."""
        box = self.boxes.get(run)
        if box is not None:
            box.row = box.row._replace(note=note)
        for entry in self.dags.values():
            if run in entry.waiting:
                entry.waiting[run] = entry.waiting[run]._replace(note=note)

    def _bring_back(self, row: RunRow) -> None:
        """A run that the store knows as running."""
        entry = self.dags.get(row.dag_id)
        if entry is not None:
            entry.note_kind(row)
            entry.running.add(row.id)
        self.guarded(row.id, lambda: self._restore(row.id))

    def _restore(self, run: int) -> None:
        """The machine of a running run, its slots, candidates and timers."""
        snapshot = self.store.snapshot(run)
        if snapshot is not None and snapshot.run.state is RunState.RUNNING:
            self._adopt(self._box(snapshot))
            self._push(run, e.RunStarted(0))  # looks at every task whose upstream says nothing, and at their own dates

    def _box(self, snapshot: RunSnapshot) -> RunBox:
        topology = self._topology(snapshot.run.version)
        return RunBox.restore(snapshot, topology, self.config.requeue_limit, self.config.batch_max_rows // ROWS_PER_MOVE)

    def _adopt(self, box: RunBox) -> None:
        """A run that is running or starts to: what it holds, wants and waits for."""
        row, definition = box.row, box.topology.definition
        self.boxes[row.id] = box
        entry = self.dags.get(row.dag_id)
        if entry is not None:
            entry.running.add(row.id)
        for resource, capacity in box.limits():
            self.admission.set_capacity(resource, capacity)
        if definition.dagrun_timeout is not None:
            # overdue at a restart: it hears that before anything else
            self._at_or_now(self._times_out(box, self.clock.wall()), RunEvent(row.id, e.RunTimedOut(0)))
        self.past.adopt(box, self.boxes, self._push)
        machine = box.machine
        for slot in box.occupying():
            self.admission.occupy(row.id, slot, box.needs(slot))
            if machine.task_state(slot) is TaskState.RESTARTING:
                self.executor.cancel((row.id, slot, machine.fence[slot]), "it was cleared", self.config.kill_grace)
        for slot in box.scheduled():
            self.admission.add(box.candidate(slot))
        for slot, due in machine.due.items():
            if machine.task_state(slot) is not TaskState.DEFERRED:
                self._at(due, RunEvent(row.id, e.TimerDue(slot, due)))
        if box.waits:
            self.waits.adopt(box)
            for slot in box.waits:
                self._hold_while_deferred(box, slot)

    @staticmethod
    def _times_out(box: RunBox, now: int) -> int:
        """When the run will be older than its dagrun_timeout; a cleared run is as old as its new life."""
        return (box.row.started_at or now) + (box.topology.definition.dagrun_timeout or UNLIMITED)

    def _forget(self, run: int, *, keep_slots: bool = False) -> None:
        """The run is not running any more, or is built anew: release what it holds."""
        box = self.boxes.pop(run, None)
        self._touched.pop(run, None)
        if box is None:
            return
        entry = self.dags.get(box.row.dag_id)
        if entry is not None and not keep_slots:
            entry.running.discard(run)
        for slot in box.scheduled():
            self.admission.discard(run, slot)
        if not keep_slots:
            # a slot may have been given to one that is still scheduled: its dispatch was refused; one that waits may hold its pool
            for slot in (*box.occupying(), *box.scheduled(), *box.waits):
                self.admission.release(run, slot)
            for resource, _ in box.limits():
                if resource[1] == run:
                    self.admission.forget(resource)
        self.past.forget(run)
        self.waits.forget(run, box.waits)

    def _set_aside(self, run: int) -> None:
        """Its deciding failed: nothing of it leaves the memory, its attempts keep their slots, it is tried again later."""
        self._forget(run, keep_slots=True)
        self.after = [(owner, call) for owner, call in self.after if owner != run]
        self.timers.add(self.quarantine.set_aside(run, self.clock.wall()), GoOn(run))

    def is_set_aside(self, run: int) -> bool:
        """Did deciding it fail a moment ago?"""
        return run in self.quarantine

    def release_memory(self) -> None:
        """Drop what can be read again; for a time without runs."""
        self._topologies.clear()
        self.store.release_memory()

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

    def _at_or_now(self, due: int, item: Item) -> None:
        if due > self.clock.wall():
            self._at(due, item)
        else:
            self.inbox.append(item)

    def _look_at(self, dag_id: str) -> None:
        self._looked_at[dag_id] = None

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
        return bool(
            self.inbox
            or self._looked_at
            or self._wanted
            or self._readmit
            or self._positions
            or self._backfilled
            or self.waits.noticed
            or self.assets.wanted
        )

    def readmit(self) -> None:
        """A limit may have changed: look whether somebody fits now."""
        self._readmit = True

    def process(self) -> None:
        """Do all that is there to do, in transactions of bounded size."""
        self.wake_timers()
        while self.busy and not self.paused and not self.superseded and self.turns_left != 0:
            self._taken = []
            try:
                self._decide()
            except StoreError as error:
                self._commit_failed(error, self._taken)
                return
            self._commit(self._taken)
            self._advance_backfills()
            self._look_at_waits()
            self._advance_assets()
            self.wake_timers()

    # --- deciding ---------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Rounds of: apply a bounded number of items, look at the DAGs concerned, and admit."""
        now = self.clock.wall()
        self.rows = 0
        while True:
            self._decide_round(now)
            # a further wave of decisions comes after slots were given to what the last one made ready, as in Airflow
            waves, self._next_wave = self._next_wave, {}
            for run in waves:
                self.go_on(run)
            if not waves or not self._room():
                return

    def _decide_round(self, now: int) -> None:
        while self.inbox and self._room():
            item = self.inbox.popleft()
            self._taken.append(item)
            run = run_of(item)
            if isinstance(item, GoOn):
                self._going_on.discard(run)
            if isinstance(item, GoOn) and self.quarantine.is_over(run, now):
                self.refresh_run(run)
            else:
                self.guarded(run, lambda item=item: self._apply(item, now))  # type: ignore[misc]
        while self._looked_at and self._room():
            dag_id = next(iter(self._looked_at))
            del self._looked_at[dag_id]
            self._look(dag_id, now)
        self._readmit = False
        for candidate in self.admission.admit(max(1, self._room(RESERVE) // ROWS_PER_MOVE)):
            self.guarded(candidate.run, lambda c=candidate: self._dispatch(c.run, c.slot, now))  # type: ignore[misc]
            self._readmit = True

    def _room(self, reserve: int = 0) -> int:
        """Rows that this transaction may still write; with `reserve`, at least one part in so many of them all."""
        most = self.config.batch_max_rows
        return max(most - self.rows, most // reserve if reserve else 0)

    def guarded(self, run: int, work: Callable[[], object]) -> None:
        """Whatever one run throws stays with it: it is set aside and tried again later."""
        if run in self.quarantine:
            return
        try:
            work()
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                raise
            log.exception("a run is set aside, because deciding it failed; it is tried again later", run=run)
            self._set_aside(run)

    def _look(self, dag_id: str, now: int) -> None:
        """Whatever one DAG throws stays with it."""
        try:
            self._schedule(dag_id, now)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                raise
            log.exception("a DAG cannot be scheduled; it is tried again later", dag_id=dag_id)
            self.timers.add(self.quarantine.failed(dag_id, now), dag_id)

    def _apply(self, item: Item, now: int) -> None:
        if isinstance(item, FromWorker):
            self._apply_worker(item, now)
            return
        box = self.boxes.get(item.run)
        if box is None:
            if isinstance(item, WaitNews):
                self.executor.drop_triggers([(item.run, item.slot, item.fence)])
            return
        if box.state is RunState.QUEUED:
            return  # it has just given its place back; all this is found again when it comes back
        box.machine.budget = max(1, self._room() // ROWS_PER_MOVE)
        if isinstance(item, GoOn):
            self.take(box, box.machine.settle(now), now)
        elif isinstance(item, WaitDue | WaitNews):
            self._apply_wait(box, item, now)
        elif isinstance(item.event, e.AttemptVanished):
            self._attempts.vanished(box, item.event._replace(at=now), now)
        elif isinstance(item.event, e.PastChanged) and not self.past.stands(item.run, item.event):
            self.take(box, [], now)  # something else has been said since: it may wait, and have a place that others need
        elif isinstance(item.event, e.RunTimedOut) and (due := self._times_out(box, now)) > now:
            self._at(due, item)
        else:
            if isinstance(item.event, e.PastChanged):
                self._rest_on_the_past(box)
            self.take(box, box.machine.apply(item.event._replace(at=now)), now)

    def _rest_on_the_past(self, box: RunBox) -> None:
        """What the run before says may not be committed yet."""
        before = self.past.before(box.row.id)
        live = None if before is None else self.boxes.get(before)
        if live is not None and live.changed:
            box.after.add(live.row.id)
            self._touched[box.row.id] = box

    def _apply_worker(self, item: FromWorker, now: int) -> None:
        box = self.boxes.get(item.attempt[0])
        if box is None:
            self._attempts.answer(item, Refused(item.body.op, "its run is not running"))
            return
        box.machine.budget = max(1, self._room() // ROWS_PER_MOVE)
        if isinstance(item.body, Start):
            self._attempts.start(box, item, item.body, now)
        else:
            self._attempts.report(box, item, item.body, now)

    def take(self, box: RunBox, decisions: list[e.Decision], now: int, calls_back: int = NO_TASK) -> None:
        """Everything that a run's decisions mean for the rest of the scheduler.

        `calls_back`: the slot of a task whose own process calls its callbacks.
        """
        run = box.row.id
        for decision in decisions:
            if isinstance(decision, e.Move):
                self.rows += ROWS_PER_MOVE
                box.note(decision)
                self._moved(box, decision)
                if decision.after in STEPS:
                    box.posts += follow_ups.of_attempt(box, decision, decision.slot == calls_back)
            elif isinstance(decision, e.Expanded):
                self.rows += 1 + decision.added
                box.note_expanded(decision)
            elif isinstance(decision, e.Timer):
                self._at(decision.due, RunEvent(run, e.TimerDue(decision.slot, decision.due)))
            elif isinstance(decision, e.Stop):
                self._attempts.stop(box, decision)
            elif isinstance(decision, e.RunEnds):
                box.state = RunState.SUCCESS if decision.success else RunState.FAILED
                box.reason = decision.cause
                box.posts += follow_ups.of_run(box, decision)
                self._look_at(box.row.dag_id)
        if box.changed:
            self._touched[run] = box
        if box.machine.unsettled:
            if run not in self._going_on:
                self._next_wave[run] = None
        elif box.topology.has_past and box.waits_for_the_past(now):
            self._look_at(box.row.dag_id)

    def go_on(self, run: int) -> None:
        """Settle this run behind what is in the inbox."""
        if run not in self._going_on:
            self._going_on.add(run)
            self.inbox.append(GoOn(run))

    def _moved(self, box: RunBox, move: e.Move) -> None:
        run, slot = box.row.id, move.slot
        if move.before is TaskState.SCHEDULED and move.after is not TaskState.QUEUED:
            self.admission.discard(run, slot)
        if move.before in OCCUPYING and move.after not in OCCUPYING:
            self.admission.release(run, slot)
            box.nonces.pop(slot, None)
        if move.after is TaskState.DEFERRED and move.before in SCHEDULABLE:
            box.keep_wait(planned_row(box, slot, move.fence, move.at))
            self.rows += 1
        if box.waits:
            self._waits_moved(box, move)
        if move.after is TaskState.SCHEDULED:
            self.admission.add(box.candidate(slot))
        if self.waits.watches:
            self.waits.moved(box, slot)
        if move.after in FINISHED or move.before in FINISHED:
            self.past.finished(box, slot, self.boxes, self._push)

    # --- waits ----------------------------------------------------------------------------------------------------------

    def _waits_moved(self, box: RunBox, move: e.Move) -> None:
        """A task instance of a run in which something waits has moved: waits begin and end with state `deferred`."""
        run, slot = box.row.id, move.slot
        if move.before is TaskState.DEFERRED:
            self.admission.release(run, slot)
            waiting = self.waits.end(run, slot)
            if waiting is not None and isinstance(waiting.deferral.wait, TriggerWait):
                self.after.append((run, lambda: self.executor.drop_triggers([waiting.key])))
        row = box.waits.get(slot)
        if row is None:
            return
        if move.after is TaskState.DEFERRED and row.fence == move.fence:
            begun = self.waits.begin(box, row)
            self._hold_while_deferred(box, slot)
            if isinstance(row.deferral.wait, TriggerWait):
                self.after.append((run, lambda: self.hosts.run_triggers([begun.key])))
        elif move.after not in WAIT_IS_KEPT:
            box.forget_wait(slot)

    def _hold_while_deferred(self, box: RunBox, slot: int) -> None:
        """Slots of a pool that counts deferred task instances."""
        needs = box.needs(slot)
        if needs[0][0][1] in self._counting_pools and box.machine.task_state(slot) is TaskState.DEFERRED:
            self.admission.occupy(box.row.id, slot, needs[:1], attempt=False)

    def _apply_wait(self, box: RunBox, item: WaitDue | WaitNews, now: int) -> None:
        """A wait is over, unless it is another one by now."""
        run, slot, fence = item[:3]
        row = box.waits.get(slot)
        if row is None or row.fence != fence or box.machine.task_state(slot) is not TaskState.DEFERRED:
            if isinstance(item, WaitNews):
                self.after.append((run, lambda: self.executor.drop_triggers([(run, slot, fence)])))
            return
        end = item.end if isinstance(item, WaitNews) else come_due(row.deferral, now)
        if end is None:
            self._at(due_at(row.deferral) or now, item)  # the clock was set back
            return
        event, resumption = over(row, end, now)
        if resumption is not None:
            box.keep_wait(row._replace(resumption=resumption))
        for key, value in end.xcoms.items():
            box.xcoms.append(XComWrite(*box.where(slot), key, value, None, len(value), now))
        self.take(box, box.machine.apply(event), now)

    def _look_at_waits(self) -> None:
        """After the commit: what others wait for may have come with it."""
        if not self.waits.noticed or self.paused or self.superseded:
            return
        try:
            self.inbox.extend(self.waits.look(self.boxes, self.config.batch_max_rows))
        except StoreError as error:
            self._commit_failed(error, [])

    def _dispatch(self, run: int, slot: int, now: int) -> None:
        box = self.boxes[run]
        box.machine.budget = 1
        decisions = box.machine.apply(e.Admitted(slot, now), settle=False)
        if isinstance(decisions[0], e.Refusal):
            self.admission.release(run, slot)
        else:
            self._workloads.append((box, slot))
        self.take(box, decisions, now)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _schedule(self, dag_id: str, now: int) -> None:
        """Create the runs of a DAG that are due, and start those that may start."""
        entry = self.dags.get(dag_id)
        if entry is None:
            return
        pending = sum(1 for new, _ in self._new if new.dag_id == dag_id)
        while self._room() and (due := take_due(entry, now, pending)) is not None:
            self._new.append(due)
            self._positions.pop(dag_id, None)  # one that waits for its turn would take the schedule back to before this run
            self.rows += 1 + min(self._size(due[0].version), CREATED_WITH_RUN)
            pending += 1
        while self._room() and (row := self.places.next_run(entry, now)) is not None:
            del entry.waiting[row.id]
            entry.running.add(row.id)
            self.guarded(row.id, lambda row=row: self._start(row, now))  # type: ignore[misc]
        if entry.waiting and (box := self.places.gives_way(entry, now)) is not None:
            box.state = RunState.QUEUED  # its place is free when that is committed
            self._touched[box.row.id] = box
        elif entry.waiting and (moment := self.places.gives_way_at(entry, now)) is not None:
            self.timers.add(moment, dag_id)
        if not self._room():
            self._look_at(dag_id)
        if entry.told is not None and entry.told.until is not None and entry.told.until <= now:
            entry.told = None
            plan_next(entry, now)
        again = self.desk.consult(entry, now)
        if again is not None:
            self.timers.add(again, dag_id)
        if entry.backfill is not None:
            self._backfilled[dag_id] = None
        self.assets.look_at(entry.plan)
        self._wake_for(entry, now)

    def _advance_backfills(self) -> None:
        """After the commit: one bounded step of the backfills that something happened to; whatever one throws stays with it."""
        for dag_id in list(self._backfilled):
            if self.paused or self.superseded:
                return
            del self._backfilled[dag_id]
            entry, now = self.dags.get(dag_id), self.clock.wall()
            if entry is None or entry.backfill is None or entry.backfill.is_paused or not entry.open:
                continue
            step = partial(self._book.advance, entry.plan, entry.backfill, now)
            done = self._advance("backfill", dag_id, step)
            if done is None:
                continue
            changed, row = done
            moved, entry.backfill = row != entry.backfill, row
            for run in changed:
                self.refresh_run(run)
            if moved:
                self._look_at(dag_id)

    def _advance_assets(self) -> None:
        """After the commit: the runs of DAGs whose assets were updated; whatever one throws stays with it."""
        for dag_id in list(self.assets.wanted):
            if self.paused or self.superseded:
                return
            del self.assets.wanted[dag_id]
            entry, now = self.dags.get(dag_id), self.clock.wall()
            row = self._advance("assets", dag_id, partial(self.assets.advance, entry, now)) if entry is not None else None
            if row is not None:
                self._created([row])

    def _advance(self, what: str, dag_id: str, step: Callable[[], T]) -> T | None:
        """One step that writes a transaction of its own. None when it failed: whether others may go on, the loop's head asks."""
        try:
            return step()
        except Stale as error:
            self._stop_superseded(error)
        except StoreError as error:
            self._commit_failed(error, [])
        except Exception:
            log.exception("a DAG's step cannot be taken; it is tried again later", what=what, dag_id=dag_id)
            self.timers.add(self.quarantine.failed((what, dag_id), self.clock.wall()), dag_id)
        return None

    def _stop_superseded(self, error: Stale) -> None:
        log.error("this scheduler was superseded and stops", error=str(error))
        self.superseded = True

    def _size(self, version: int) -> int:
        """Tasks of a definition; 0 when it has given way to another one."""
        try:
            return len(self.store.definition(version).tasks)
        except NotFound:
            return 0

    def _wake_for(self, entry: DagEntry, now: int) -> None:
        """Look at this DAG again when its next run is due, or its oldest queued one."""
        moments = [m for m in (entry.next.run_after if entry.next else None, entry.next_wait()) if m is not None and m > now]
        if entry.told is not None and entry.told.until is not None:
            moments.append(entry.told.until)
        if moments and entry.open:
            self.timers.add(min(moments), entry.plan.dag_id)

    def _start(self, row: RunRow, now: int) -> None:
        """A queued run begins: its roots become scheduled. One that was cleared goes on from its rows."""
        if row.revision == 0 and row.started_at is None and row.clear_number == 0:
            budget = self.config.batch_max_rows // ROWS_PER_MOVE
            facts = RunFacts(row.id, row.dag_id, row.logical_date, self.config.requeue_limit, budget)
            topology = self._topology(row.version)
            box = RunBox(row, topology, RunMachine(topology, facts))
        else:
            snapshot = self.store.snapshot(row.id)
            if snapshot is None or snapshot.run.state is not RunState.QUEUED:
                self.refresh_run(row.id)
                return
            box = self._box(snapshot)
        box.state = RunState.RUNNING
        self._adopt(box)
        self._touched[row.id] = box
        box.machine.budget = max(1, self._room() // ROWS_PER_MOVE)
        self.take(box, box.machine.apply(e.RunStarted(now)), now)

    def _enqueue(self, entry: DagEntry, row: RunRow) -> None:
        """A queued run waits, and is the past of runs with a later date."""
        known = row.id in entry.waiting
        entry.enqueue(row)
        if row.rows_created < row.task_count:
            self._wanted.setdefault(row.id, row.dag_id)
        if not known:
            self.past.appeared(row, self.boxes, self._push)

    # --- committing -----------------------------------------------------------------------------------------------------

    def _commit(self, items: list[Item]) -> None:
        """Write the batch; then, and only then, let the outside hear of it."""
        now = self.clock.wall()
        touched, unsound = self._in_order({run: box for run, box in self._touched.items() if box.changed})
        wanted = next(iter(self._wanted), None)
        positions = {dag_id: self._positions[dag_id] for dag_id in islice(self._positions, self._room(RESERVE))}
        new, self._new = self._new, []
        if touched or unsound or new or wanted is not None or positions:
            batch = Batch(
                self.epoch,
                now,
                [box.write(now) for box in touched.values()],
                [created for created, _ in new],
                [*positions.values(), *(position for _, position in new)],
                [(wanted, self._room(RESERVE))] if wanted is not None else [],
            )
            fp("scheduler.before_commit")
            try:
                committed = self._writer.write(batch)
            except Stale as error:
                self._stop_superseded(error)
                return
            except StoreError as error:
                self._commit_failed(error, items)
                return
            fp("scheduler.after_commit")
            self._failures = 0
            if self.turns_left is not None:
                self.turns_left -= 1
            for dag_id in positions:
                del self._positions[dag_id]
            stale = [run for run in touched if run in committed.stale or run in self.quarantine]
            for run in stale:
                del touched[run]
            self._written(touched, now)
            self._created(committed.created)
            for dag_id in sorted(committed.consumers & self.dags.keys()):
                self.assets.look_at(self.dags[dag_id].plan)
            for run, have in committed.rows_created.items():
                self._rows_created(run, have)
            stale_runs = {**committed.stale, **unsound}
            try:
                self._read_anew(stale_runs, items)
            except StoreError as error:
                self._commit_failed(error, [item for item in items if run_of(item) in stale_runs])
                return
        self._trouble_is_over()
        for box in self._touched.values():
            box.after.clear()
        self._touched.clear()
        self._let_out()

    @staticmethod
    def _in_order(touched: dict[int, RunBox]) -> tuple[dict[int, RunBox], dict[int, list[int]]]:
        """Runs behind those that they rest on, which have earlier dates; and those that rest on one that was set aside since."""
        unsound: dict[int, list[int]] = {}
        while wrong := [run for run, box in touched.items() if not box.after <= touched.keys()]:
            for run in wrong:
                del touched[run]
                unsound[run] = []
        if any(box.after for box in touched.values()):
            dates = {run: box.row.logical_date or 0 for run, box in touched.items() if box.after}
            touched = dict(sorted(touched.items(), key=lambda one: (one[0] in dates, dates.get(one[0], 0))))
        return touched, unsound

    def _trouble_is_over(self) -> None:
        if self.trouble is not None:
            log.info("the store can be written again")
            self.trouble = None

    def _read_anew(self, stale: dict[int, list[int]], items: list[Item]) -> None:
        """Runs that somebody else changed: their share was not written, their events come again."""
        for run, slots in stale.items():
            log.warning("a run was changed by somebody else; it is read anew", run=run, slots=slots[:10])
            self.after = [(owner, call) for owner, call in self.after if owner != run]
            self.refresh_run(run)
            self.inbox.extend(item for item in items if run_of(item) == run and not isinstance(item, GoOn))

    def _let_out(self) -> None:
        """After the commit: answers, cancels, then new work."""
        after, self.after = self.after, []
        workloads, self._workloads = self._workloads, []
        for _, call in after:
            call()
        ready: list[Workload] = []
        for box, slot in workloads:
            if box.machine.task_state(slot) is TaskState.QUEUED and self.boxes.get(box.row.id) is box:
                self.guarded(box.row.id, lambda b=box, s=slot: ready.append(self.hosts.workload(b.row.id, s)))  # type: ignore[misc]
        if ready:
            fp("scheduler.before_submit")
            self.executor.submit(ready)
            fp("scheduler.after_submit")

    def _written(self, touched: dict[int, RunBox], now: int) -> None:
        for run, box in touched.items():
            changed = box.state is not box.row.state
            if box.posts:
                self.callbacks.ring()
            box.written(now)
            if changed:
                row = box.row
                self.notify(Notice("run", row.dag_id, row.run_id, row.state.value, at=now, text=row.reason or ""))
                if self.waits.watches:
                    self.waits.run_changed(row.dag_id, row.logical_date, row.run_id)
                if row.state is not RunState.RUNNING:
                    self._forget(run)
                    self._look_at(row.dag_id)
                    entry = self.dags.get(row.dag_id)
                    if row.state is RunState.QUEUED and entry is not None:
                        self._enqueue(entry, row)
                elif box.topology.has_past:
                    self._look_at(row.dag_id)

    def _created(self, rows: list[RunRow]) -> None:
        for row in rows:
            entry = self.dags.get(row.dag_id)
            if entry is not None and row.state is RunState.QUEUED and row.id not in entry.running:
                self._enqueue(entry, row)
                self.notify(Notice("run", row.dag_id, row.run_id, row.state.value, at=row.queued_at))
            if self.waits.watches:
                self.waits.run_changed(row.dag_id, row.logical_date, row.run_id)
            self._look_at(row.dag_id)

    def _rows_created(self, run: int, have: int) -> None:
        """A part of a huge run's rows was written; the next one waits for its turn behind other huge runs."""
        dag_id = self._wanted.pop(run)
        entry = self.dags.get(dag_id)
        row = entry.waiting.get(run) if entry is not None else None
        if entry is None or row is None or not have:
            return
        if have >= row.task_count:
            entry.wants_rows.discard(run)
            entry.waiting[run] = row._replace(rows_created=have)
            self._look_at(dag_id)
        else:
            self._wanted[run] = dag_id

    def _commit_failed(self, error: StoreError, items: list[Item]) -> None:
        """Nothing was written, or nobody knows: what memory says does not count. The items come again after a while."""
        self._failures += 1
        if self._failures == 1:
            log.error("the store cannot be written; it is tried again", error=str(error))
        self.stumble(str(error))
        self.inbox.extendleft(reversed([item for item in items if not isinstance(item, GoOn)]))

    def stumble(self, why: str) -> None:
        """The store failed: what memory says does not count until `recover`."""
        self.trouble = why
        self.paused = True

    def recover(self) -> bool:
        """After trouble: build everything from the store again; whether that worked. The trouble is over with the next commit."""
        try:
            self.load()
        except StoreError as error:
            self.trouble = str(error)
            return False
        self.paused = False
        self._readmit = True
        self.hosts.recovered(self.clock.wall())
        return True

    # --- hosts --------------------------------------------------------------------------------------------------------

    def look_again(self) -> int:
        """Safety net: does memory stand as the store does? What differs is read anew; how many things did."""
        found, plans = 0, self.store.plans()
        for dag_id in sorted(self.dags.keys() - {plan.dag_id for plan in plans}):
            self.refresh_dag(dag_id)
            found += 1
        for plan in plans:
            entry = self.dags.get(plan.dag_id)
            if entry is None or _lasting(entry.plan) != _lasting(plan):
                self.refresh_dag(plan.dag_id)
                found += 1
        for backfill in self.store.backfills():
            entry = self.dags.get(backfill.dag_id)
            if entry is not None and (
                entry.backfill is None or entry.backfill._replace(handled=0) != backfill._replace(handled=0)
            ):
                self.refresh_dag(backfill.dag_id)
                found += 1
            self._look_at(backfill.dag_id)
        active = self.store.active_runs()
        known = self.boxes.keys() | {run for entry in self.dags.values() for run in entry.waiting}
        for run in sorted(known - {row.id for row in active}):  # it has ended, or was deleted
            self.refresh_run(run)
            found += 1
        for row in active:
            entry, box = self.dags.get(row.dag_id), self.boxes.get(row.id)
            if box is not None:
                missed = box.row.revision != row.revision
            elif row.state is RunState.QUEUED:
                missed = entry is not None and row.id not in entry.waiting and row.id not in entry.running
            else:
                missed = row.id not in self.quarantine
            if missed:
                self.refresh_run(row.id)
                found += 1
        for entry in self.dags.values():
            self.assets.look_at(entry.plan)
        self.runs_deleted()
        self.refresh_pools()
        self.readmit()
        if self.executor.ready:
            self.hosts.run_triggers(one.key for one in self.waits.triggers())
        return found


def _lasting(plan: DagPlan) -> DagPlan:
    """A plan without what moves by itself."""
    return plan._replace(last=None, parse_duration=0)
