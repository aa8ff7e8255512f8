"""The scheduler: one actor, one inbox, one owner of mutable state.

    inbox ─▶ machines decide ─▶ admission gives slots ─▶ one transaction (group commit) ─▶ after commit: submit, answer, notify

Whatever happens becomes an item in the inbox. `process` takes what is there, lets each run's machine apply its events, admits
what fits, writes all of it in one transaction and only then lets the outside hear of it. Nothing is dispatched from a decision
that is not committed. A run whose guard missed is rebuilt from the store and its events are applied again; the others commit.
If the transaction fails, or its outcome is unknown, everything is rebuilt from the store: there is no state in memory that the
store does not have.

Here is that loop. Its parts stand around it: runs (`run_registry`), DAGs and their schedules (`dag_registry`), waits without
a process (`deferral_manager`), attempts (`attempt_handler`), worker hosts (`host_registry`), callbacks (`callback_dispatcher`).

Whatever one run or one item throws is caught at that item; the run is quarantined, shown in the log, and tried again later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from tradewind.executors.port import Executor
from tradewind.kernel import events as e
from tradewind.kernel.admission import PARALLELISM, UNLIMITED, Admission
from tradewind.kernel.callbacks import STEPS
from tradewind.kernel.codes import NO_TASK
from tradewind.model.errors import Stale, StoreError, StoreRefused
from tradewind.model.rows import Batch, RunWrite
from tradewind.model.states import FINISHED, OCCUPYING, SCHEDULABLE, RunState, TaskState
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock
from tradewind.scheduler.assets.asset_index import AssetIndex
from tradewind.scheduler.attempts.attempt_handler import AttemptHandler
from tradewind.scheduler.attempts.host_registry import HostRegistry
from tradewind.scheduler.callbacks import requests
from tradewind.scheduler.callbacks.callback_dispatcher import CallbackDispatcher
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.dags.custom_timetables import CustomTimetables
from tradewind.scheduler.dags.dag_registry import DagRegistry
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.scheduler.group_commit import GroupWriter
from tradewind.scheduler.inbox import FromWorker, Item, RunEvent, SettleRun, run_of
from tradewind.scheduler.quarantine import Quarantine
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.previous_runs import PreviousRunTracker
from tradewind.scheduler.runs.run_registry import ROWS_PER_MOVE, RunRegistry
from tradewind.scheduler.runs.run_slots import RunSlots
from tradewind.scheduler.timers import Timers
from tradewind.scheduler.waits.deferral_manager import DeferralManager
from tradewind.scheduler.waits.messages import describe
from tradewind.scheduler.waits.planned import planned_row
from tradewind.scheduler.waits.wait_index import LookAtWait, WaitDue, WaitIndex, WaitNews
from tradewind.store.port import Store
from tradewind.wire.messages import Notice, Refused, Start, Workload

log = Log("scheduler")

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
        self.active_runs_by_id: dict[int, ActiveRun] = {}
        self.dags: dict[str, DagEntry] = {}
        self.admission = Admission()
        self.timers = Timers()
        self.past = PreviousRunTracker(store)
        self.waits = WaitIndex(store, self.timers)
        self.quarantine = Quarantine()
        """Runs whose deciding failed. They count as running, and their attempts keep their slots, until they are tried again."""
        self.assets = AssetIndex(store, epoch)
        self.runs = RunRegistry(self)
        self.places = RunSlots(self.past, self.runs.topology, self.active_runs_by_id)
        self.schedules = DagRegistry(self)
        self.timetables = CustomTimetables(store, config.folder)
        self.deferrals = DeferralManager(self)
        self.hosts = HostRegistry(self)
        self.callbacks = CallbackDispatcher(store, config, epoch, self.hosts.place)
        self._attempts = AttemptHandler(self)
        self._writer = GroupWriter(store, self.runs.quarantine_run)
        self.trouble: str | None = None
        """Why the last thing that was to be written could not be, or None."""
        self.paused = False
        """Nothing is decided until everything was read anew."""
        self.superseded = False
        self.rows = 0
        """Rows that the batch under way writes, roughly."""
        self._after: list[tuple[int, Callable[[], None]]] = []
        """(run, what is done) when the batch under way is committed."""
        self._touched: dict[int, ActiveRun] = {}
        self._workloads: list[tuple[ActiveRun, int]] = []
        self._taken: list[Item] = []
        self._next_wave: dict[int, None] = {}
        """Runs with decisions that wait until slots were given."""
        self._going_on: set[int] = set()
        """Runs that have a `GoOn` in the inbox."""
        self._readmit = False
        self._failures = 0

    # --- from the store ---------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Build everything from the store: at the start, and when a commit failed."""
        self.active_runs_by_id.clear()
        self.dags.clear()
        self.admission = Admission()
        self.timers.clear()
        self.past.clear()
        self.quarantine.clear()
        self.waits.clear()
        self._going_on.clear()
        self._next_wave.clear()
        self._touched.clear()
        self._after.clear()
        self._workloads.clear()
        self.schedules.clear()
        self.timetables.restart()
        self.callbacks.ring()
        self.assets.clear()
        # what follows from the store is found again; what was said to us is not. Hosts say a thing again until it is answered
        told: dict[object, Item] = {}
        for item in self.inbox:
            if isinstance(item, FromWorker):
                told[item.attempt, item.body.op, item.body.nonce] = item
            elif isinstance(item, RunEvent) and isinstance(item.event, e.AttemptVanished):
                told[item.run, item.event.slot, item.event.fence, item.event.nonce, "vanished"] = item
        self.inbox = deque(told.values())
        self.admission.set_capacity(PARALLELISM, self.config.parallelism or UNLIMITED)
        self.refresh_pools()
        self.schedules.load()

    def refresh_pools(self) -> None:
        """Pools may have been changed."""
        pools = self.store.pools()
        for pool in pools:
            self.admission.set_capacity(("pool", pool.name, 0), pool.slots)
        self.deferrals.count_in(pools)

    def forget_pool(self, name: str) -> None:
        self.admission.set_capacity(("pool", name, 0), None)
        self.refresh_pools()

    def compare_with_store(self) -> int:
        """Safety net: does memory stand as the store does? What differs is read anew; how many things did."""
        found = self.schedules.compare_with_store() + self.runs.compare_with_store()
        self.refresh_pools()
        self.readmit()
        if self.executor.ready:
            self.hosts.run_triggers(one.key for one in self.waits.triggers())
        return found

    def is_quarantined(self, run: int) -> bool:
        """Did deciding it fail a moment ago?"""
        return run in self.quarantine

    def release_memory(self) -> None:
        """Drop what can be read again; for a time without runs."""
        self.runs.release_memory()
        self.store.release_memory()

    # --- the inbox --------------------------------------------------------------------------------------------------

    def push(self, item: Item) -> None:
        """Something happened; it is handled by the next `process`."""
        self.inbox.append(item)

    def push_event(self, run: int, event: e.Event) -> None:
        """Something happened to a run."""
        self.inbox.append(RunEvent(run, event))

    def at_or_now(self, due: int, item: Item) -> None:
        """It happens at a moment, which may be past."""
        if due > self.clock.wall():
            self.timers.add(due, item)
        else:
            self.inbox.append(item)

    def prune_timers(self) -> None:
        """Forget moments of runs that are over. A run that was set aside comes back by its own entry."""
        self.timers.prune(lambda item: isinstance(item, SettleRun) or item.run in self.active_runs_by_id)

    def take_due_timers(self) -> None:
        """Move what is due into the inbox."""
        for item in self.timers.due(self.clock.wall()):
            if isinstance(item, str):
                self.schedules.look_at(item)
            elif isinstance(item, LookAtWait):
                self.waits.notice(*item)
            else:
                self.inbox.append(item)

    @property
    def busy(self) -> bool:
        """Is there something to do now?"""
        return bool(self.inbox or self._readmit or self.schedules.busy or self.waits.noticed or self.assets.wanted)

    def readmit(self) -> None:
        """A limit may have changed: look whether somebody fits now."""
        self._readmit = True

    def process(self) -> None:
        """Do all that is there to do, in transactions of bounded size."""
        self.take_due_timers()
        while self.busy and not self.paused and not self.superseded:
            self._taken = []
            try:
                self._decide()
            except StoreError as error:
                self.commit_failed(error, self._taken)
                return
            except Exception:  # a fault of ours outside of any one item: whoever calls has everything read anew
                self._put_back(self._taken)
                raise
            self._commit(self._taken)
            self.schedules.advance_backfills()
            self.deferrals.look()
            self.schedules.advance_assets()
            self.take_due_timers()

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
                self.settle_later(run)
            if not waves or not self.room():
                return

    def _decide_round(self, now: int) -> None:
        while self.inbox and self.room():
            item = self.inbox.popleft()
            self._taken.append(item)
            run = run_of(item)
            if isinstance(item, SettleRun):
                self._going_on.discard(run)
            if isinstance(item, SettleRun) and self.quarantine.is_over(run, now):
                self.runs.refresh(run)
            else:
                self.guarded(run, lambda item=item: self._apply(item, now))  # type: ignore[misc]
        self.schedules.decide(now)
        self._readmit = False
        for candidate in self.admission.admit(max(1, self.room(RESERVE) // ROWS_PER_MOVE)):
            self.guarded(candidate.run, lambda c=candidate: self._dispatch(c.run, c.slot, now))  # type: ignore[misc]
            self._readmit = True

    def room(self, reserve: int = 0) -> int:
        """Rows that this transaction may still write; with `reserve`, at least one part in so many of them all."""
        most = self.config.batch_max_rows
        return max(most - self.rows, most // reserve if reserve else 0)

    def guarded(self, run: int, work: Callable[[], object]) -> None:
        """Whatever one run throws stays with it: it is set aside and tried again later."""
        if run not in self.quarantine:
            self.isolated(run, work)

    def isolated(self, run: int, work: Callable[[], object]) -> None:
        """The same for a run that may be set aside already.

        Raises:
            StoreError: the store cannot be used now.
        """
        try:
            work()
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                raise
            log.exception("a run is set aside, because deciding it failed; it is tried again later", run=run)
            self.runs.quarantine_run(run)

    def _apply(self, item: Item, now: int) -> None:
        if isinstance(item, FromWorker):
            self._apply_worker(item, now)
            return
        active_run = self.active_runs_by_id.get(item.run)
        if active_run is None:
            if isinstance(item, WaitNews):
                self.executor.drop_triggers([(item.run, item.slot, item.fence)])
            return
        if active_run.state is RunState.QUEUED:
            return  # it has just given its place back; all this is found again when it comes back
        active_run.machine.budget = max(1, self.room() // ROWS_PER_MOVE)
        if isinstance(item, SettleRun):
            self.take(active_run, active_run.machine.settle(now), now)
        elif isinstance(item, WaitDue | WaitNews):
            self.deferrals.apply(active_run, item, now)
        elif isinstance(item.event, e.AttemptVanished):
            self._attempts.vanished(active_run, item.event._replace(at=now), now)
        elif isinstance(item.event, e.PastChanged) and not self.past.stands(item.run, item.event):
            self.take(active_run, [], now)  # something else has been said since: it may wait, and have a place that others need
        elif isinstance(item.event, e.RunTimedOut) and (due := self.runs.times_out(active_run, now)) > now:
            self.timers.add(due, item)
        else:
            if isinstance(item.event, e.PastChanged):
                self._depend_on_previous_run(active_run)
            self.take(active_run, active_run.machine.apply(item.event._replace(at=now)), now)

    def _depend_on_previous_run(self, active_run: ActiveRun) -> None:
        """What the run before says may not be committed yet."""
        before = self.past.before(active_run.row.id)
        live = None if before is None else self.active_runs_by_id.get(before)
        if live is not None and live.changed:
            active_run.after.add(live.row.id)
            self.touch(active_run)

    def _apply_worker(self, item: FromWorker, now: int) -> None:
        active_run = self.active_runs_by_id.get(item.attempt[0])
        if active_run is None and self.runs.is_of_another(item.attempt[0]):
            return  # the worker host keeps it, and says it again to the scheduler that looks after the DAG
        if active_run is None:
            self._attempts.answer(item, Refused(item.body.op, "its run is not running", item.body.nonce))
            return
        active_run.machine.budget = max(1, self.room() // ROWS_PER_MOVE)
        if isinstance(item.body, Start):
            self._attempts.start(active_run, item, item.body, now)
        else:
            self._attempts.report(active_run, item, item.body, now)

    def take(self, active_run: ActiveRun, decisions: list[e.Decision], now: int, calls_back: int = NO_TASK) -> None:
        """Everything that a run's decisions mean for the rest of the scheduler.

        `calls_back`: the slot of a task whose own process calls its callbacks.
        """
        run = active_run.row.id
        for decision in decisions:
            if isinstance(decision, e.Move):
                self.rows += ROWS_PER_MOVE
                active_run.note(decision)
                self._moved(active_run, decision)
                if decision.after in STEPS:
                    active_run.posts += requests.of_attempt(active_run, decision, decision.slot == calls_back)
            elif isinstance(decision, e.Expanded):
                self.rows += 1 + decision.added
                active_run.note_expanded(decision)
            elif isinstance(decision, e.Added):
                self.rows += 1
                active_run.note_added(decision)
            elif isinstance(decision, e.Verified):
                active_run.note_verified()
            elif isinstance(decision, e.Timer):
                self.timers.add(decision.due, RunEvent(run, e.TimerDue(decision.slot, decision.due)))
            elif isinstance(decision, e.Stop):
                self._attempts.stop(active_run, decision)
            elif isinstance(decision, e.RunEnds):
                active_run.state = RunState.SUCCESS if decision.success else RunState.FAILED
                active_run.reason = decision.cause
                active_run.posts += requests.of_run(active_run, decision)
                self.schedules.look_at(active_run.row.dag_id)
        if active_run.changed:
            self.touch(active_run)
        if active_run.machine.blocks_admission or active_run.closed:
            self.runs.update_capacity(active_run)
        if active_run.machine.unsettled:
            if run not in self._going_on:
                self._next_wave[run] = None
        elif active_run.topology.has_past and active_run.waits_for_the_past(now):
            self.schedules.look_at(active_run.row.dag_id)

    def touch(self, active_run: ActiveRun) -> None:
        """Something of this run is to be written with the batch under way."""
        self._touched[active_run.row.id] = active_run

    def unmark_changed(self, run: int) -> None:
        """Nothing of it is."""
        self._touched.pop(run, None)

    def after_commit(self, run: int, call: Callable[[], None]) -> None:
        """What the outside hears of this run, when the batch under way is written."""
        self._after.append((run, call))

    def discard_outputs(self, run: int) -> None:
        """Its share of the batch is not written."""
        self._after = [(owner, call) for owner, call in self._after if owner != run]

    def settle_later(self, run: int) -> None:
        """Settle this run behind what is in the inbox."""
        if run not in self._going_on:
            self._going_on.add(run)
            self.inbox.append(SettleRun(run))

    def _moved(self, active_run: ActiveRun, move: e.Move) -> None:
        run, slot = active_run.row.id, move.slot
        if move.before is TaskState.SCHEDULED and move.after is not TaskState.QUEUED:
            self.admission.discard(run, slot)
        if move.before in OCCUPYING and move.after not in OCCUPYING:
            self.admission.release(run, slot)
            active_run.holders.pop(slot, None)
        if move.after is TaskState.DEFERRED and move.before in SCHEDULABLE:
            wait = planned_row(active_run, slot, move.fence, move.at)
            active_run.keep_wait(wait)
            active_run.journal[-1] = active_run.journal[-1]._replace(cause=f"{move.cause}: {describe(wait.deferral.wait)}")
            self.rows += 1
        if active_run.waits:
            self.deferrals.moved(active_run, move)
        if move.after is TaskState.SCHEDULED:
            self.admission.add(active_run.candidate(slot))
        if self.waits.watches:
            self.waits.moved(active_run, slot)
        if move.after in FINISHED or move.before in FINISHED:
            self.past.finished(active_run, slot, self.active_runs_by_id, self.push_event)

    def _dispatch(self, run: int, slot: int, now: int) -> None:
        active_run = self.active_runs_by_id[run]
        active_run.machine.budget = 1
        decisions = active_run.machine.apply(e.Admitted(slot, now), settle=False)
        if isinstance(decisions[0], e.Refusal):
            self.admission.release(run, slot)
        else:
            self._workloads.append((active_run, slot))
        self.take(active_run, decisions, now)

    # --- committing -----------------------------------------------------------------------------------------------------

    def _commit(self, items: list[Item]) -> None:
        """Write the batch; then, and only then, let the outside hear of it."""
        now = self.clock.wall()
        writes = self._writes(now)
        touched, unsound = self._commit_order({run: self._touched[run] for run in writes})
        share = self.schedules.share(self.room(RESERVE))
        if touched or unsound or share:
            batch = Batch(
                self.epoch,
                now,
                [writes[run] for run in touched],
                share.new,
                list(share.positions.values()),
                [(share.rows_of, self.room(RESERVE))] if share.rows_of is not None else [],
            )
            fp("scheduler.before_commit")
            try:
                written = self._writer.write(batch)
            except Stale as error:
                self.stop_superseded(error)
                return
            except StoreError as error:
                self.commit_failed(error, items)
                return
            fp("scheduler.after_commit")
            self._failures = 0
            stale_runs = {**written.committed.stale, **unsound}
            stale = [run for run in touched if run in stale_runs or run in self.quarantine]
            for run in stale:
                del touched[run]
            self._written(touched, now)
            try:
                self.schedules.written(share, written, now)
                self._reload_runs(stale_runs, items)
            except StoreError as error:
                self.commit_failed(error, [item for item in items if run_of(item) in stale_runs])
                return
        self._clear_trouble()
        for active_run in self._touched.values():
            active_run.after.clear()
        self._touched.clear()
        self._send_outputs()

    def _writes(self, now: int) -> dict[int, RunWrite]:
        """Each run's share of the batch. A run whose share cannot be made up is set aside."""
        writes: dict[int, RunWrite] = {}

        def make_up(run: int, active_run: ActiveRun) -> None:
            if active_run.changed:
                writes[run] = active_run.write(now)

        for run, active_run in list(self._touched.items()):
            self.guarded(run, partial(make_up, run, active_run))
        return writes

    @staticmethod
    def _commit_order(touched: dict[int, ActiveRun]) -> tuple[dict[int, ActiveRun], dict[int, list[int]]]:
        """Runs behind those that they rest on, which have earlier dates; and those that rest on one that was set aside since."""
        unsound: dict[int, list[int]] = {}
        while wrong := [run for run, active_run in touched.items() if not active_run.after <= touched.keys()]:
            for run in wrong:
                del touched[run]
                unsound[run] = []
        if any(active_run.after for active_run in touched.values()):
            dates = {run: active_run.row.logical_date or 0 for run, active_run in touched.items() if active_run.after}
            touched = dict(sorted(touched.items(), key=lambda one: (one[0] in dates, dates.get(one[0], 0))))
        return touched, unsound

    def _clear_trouble(self) -> None:
        if self.trouble is not None:
            log.info("the store can be written again")
            self.trouble = None

    def _reload_runs(self, stale: dict[int, list[int]], items: list[Item]) -> None:
        """Runs that somebody else changed: their share was not written, their events come again."""
        for run, slots in stale.items():
            log.warning("a run was changed by somebody else; it is read anew", run=run, slots=slots[:10])
            self.discard_outputs(run)
            self.runs.refresh(run)
            self.inbox.extend(item for item in items if run_of(item) == run and not isinstance(item, SettleRun))

    def _send_outputs(self) -> None:
        """After the commit: answers, cancels, then new work."""
        after, self._after = self._after, []
        workloads, self._workloads = self._workloads, []
        for run, call in after:
            self.isolated(run, call)
        ready: list[Workload] = []
        for active_run, slot in workloads:
            if (
                active_run.machine.task_state(slot) is TaskState.QUEUED
                and self.active_runs_by_id.get(active_run.row.id) is active_run
            ):
                self.guarded(active_run.row.id, lambda b=active_run, s=slot: ready.append(self.hosts.workload(b.row.id, s)))  # type: ignore[misc]
        if ready:
            fp("scheduler.before_submit")
            self.hosts.submit(ready)
            fp("scheduler.after_submit")

    def _written(self, touched: dict[int, ActiveRun], now: int) -> None:
        for run, active_run in touched.items():
            self.isolated(run, partial(self._run_written, active_run, now))

    def _run_written(self, active_run: ActiveRun, now: int) -> None:
        changed = active_run.state is not active_run.row.state
        if active_run.posts:
            self.callbacks.ring()
        active_run.written(now)
        if changed:
            row = active_run.row
            self.notify(Notice("run", row.dag_id, row.run_id, row.state.value, at=now, text=row.reason or ""))
            if self.waits.watches:
                self.waits.run_changed(row.dag_id, row.logical_date, row.run_id)
            if row.state is not RunState.RUNNING:
                self.runs.forget(row.id)
                self.schedules.look_at(row.dag_id)
                entry = self.dags.get(row.dag_id)
                if row.state is RunState.QUEUED and entry is not None:
                    self.schedules.enqueue(entry, row)
            elif active_run.topology.has_past:
                self.schedules.look_at(row.dag_id)

    def commit_failed(self, error: StoreError, items: list[Item]) -> None:
        """Nothing was written, or nobody knows: what memory says does not count. The items come again after a while."""
        self._failures += 1
        if self._failures == 1:
            log.error("the store cannot be written; it is tried again", error=str(error))
        self.record_failure(str(error))
        self._put_back(items)

    def _put_back(self, items: list[Item]) -> None:
        """They come again, before everything else."""
        self.inbox.extendleft(reversed([item for item in items if not isinstance(item, SettleRun)]))

    def stop_superseded(self, error: Stale) -> None:
        """Another scheduler has taken over: nothing more is decided here."""
        log.error("this scheduler was superseded and stops", error=str(error))
        self.superseded = True

    def record_failure(self, why: str) -> None:
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
        except Exception as error:
            log.exception("the scheduler cannot be built from the store; it is tried again")
            self.trouble = f"a fault of Tradewind's own, see the scheduler's log: {type(error).__name__}: {error}"
            return False
        self.paused = False
        self._readmit = True
        self.hosts.recovered(self.clock.wall())
        return True
