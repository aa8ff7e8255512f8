"""The scheduler: one loop, one inbox, one owner of the run state in memory.

    inbox ─▶ machines decide ─▶ admission ─▶ one transaction (group commit) ─▶ after the commit: submit, answer, notify

Each event becomes an item in the inbox. `process` takes the items, lets the machine of each run apply its events,
admits task instances, writes all changes in one transaction, and only then sends messages. Nothing is dispatched before its
decision is committed. A run whose guard failed (somebody else changed its row) is rebuilt from the store and its events are
applied again; the other runs commit. If the transaction fails, or its outcome is unknown, everything is rebuilt from the store:
memory never holds state that the store does not have.

This module has only the loop. The other parts share `shared_state` and get each other as arguments: runs (`run_registry`), DAGs and
their schedules (`dag_registry`), queued runs (`run_queue`), waits without a process (`deferral_manager`), attempts
(`attempt_handler`), worker hosts (`host_registry`), callbacks (`callback_dispatcher`).

An exception in one run or one item concerns only that run: it is quarantined, logged, and tried again later.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tradewind.executors.port import Executor
from tradewind.kernel import events as e
from tradewind.kernel.callbacks import STEPS
from tradewind.kernel.codes import NO_TASK
from tradewind.model.errors import Stale, StoreError
from tradewind.model.rows import Batch, RunWrite
from tradewind.model.states import FINISHED, OCCUPYING, SCHEDULABLE, RunState, TaskState
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock
from tradewind.scheduler.assets.asset_index import AssetIndex
from tradewind.scheduler.assets.custom_mappers import CustomMappers
from tradewind.scheduler.assets.watchers import AssetWatchers, WakeWatchers
from tradewind.scheduler.attempts.attempt_handler import AttemptHandler
from tradewind.scheduler.attempts.host_registry import HostRegistry
from tradewind.scheduler.callbacks import requests
from tradewind.scheduler.callbacks.callback_dispatcher import CallbackDispatcher
from tradewind.scheduler.changes import RESYNC, Changes
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.dags.custom_timetables import CustomTimetables
from tradewind.scheduler.dags.dag_registry import DagRegistry
from tradewind.scheduler.dags.run_queue import RunQueue
from tradewind.scheduler.group_commit import GroupWriter
from tradewind.scheduler.inbox import FromWorker, Item, RunEvent, SettleRun, run_of
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.run_registry import RunRegistry
from tradewind.scheduler.runs.run_slots import RunSlots
from tradewind.scheduler.shared_state import ROWS_PER_MOVE, SharedState
from tradewind.scheduler.waits.deferral_manager import DeferralManager
from tradewind.scheduler.waits.messages import waiting_cause
from tradewind.scheduler.waits.planned import planned_row
from tradewind.scheduler.waits.wait_index import ExamineWait, WaitDue, WaitResult
from tradewind.store.port import Store
from tradewind.store.views import listened_events
from tradewind.wire.messages import Notice, Refused, Start, Workload

if TYPE_CHECKING:
    from tradewind.scheduler.metrics.scheduler_metrics import SchedulerMetrics  # loaded only if metrics are on

log = Log("scheduler")

RESERVE = 20
"""The fraction 1/n of a transaction that is always reserved for dispatches and new rows."""


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
        state = self.state = SharedState(store, clock, config, executor, epoch, notify)
        self.store = store
        self.clock = clock
        self.config = config
        self.executor = executor
        self.executors = state.executors
        self.epoch = epoch
        self.notify = notify
        self.inbox = state.inbox
        self.active_runs_by_id = state.active_runs_by_id
        self.dags = state.dags
        self.admission = state.admission
        self.timers = state.timers
        self.previous_runs = state.previous_runs
        self.waits = state.waits
        self.quarantine = state.quarantine
        self.batch = state.batch
        self.timetables = CustomTimetables(store)
        self.mappers = CustomMappers(store, epoch, self.timetables)
        self.assets = AssetIndex(store, epoch, self.mappers)
        self.watchers = AssetWatchers(state)
        self.hosts = HostRegistry(state, self.watchers, self._guarded)
        self.callbacks = CallbackDispatcher(store, config, epoch, self.hosts.bundle_of)
        self.deferrals = DeferralManager(state, self.hosts.run_triggers)
        self.queue = RunQueue(state, self.callbacks.wake)
        self.runs = RunRegistry(state, self.queue, self.deferrals, self.take)
        self.slots = RunSlots(self.previous_runs, self.runs.topology, self.active_runs_by_id)
        self.schedules = DagRegistry(
            state, self.queue, self.runs, self.slots, self.assets, self.watchers, self.timetables, self.mappers
        )
        self._attempts = AttemptHandler(state, self.hosts.why_lost)
        self._writer = GroupWriter(store, self.runs.quarantine_run)
        self.changes = Changes()
        self.metrics: SchedulerMetrics | None = None
        """Sends metrics; None: metrics are off."""
        self.trouble: str | None = None
        """Why the last write failed; None: it succeeded."""
        self._taken: list[Item] = []
        """Items of the inbox that the pending batch contains."""
        self._next_wave: dict[int, None] = {}
        """Runs whose next decisions wait until task instances of the last decisions were admitted."""
        self._going_on: set[int] = set()
        """Runs that have a `SettleRun` in the inbox."""
        self._readmit = False
        self._failures = 0

    @property
    def paused(self) -> bool:
        """Whether nothing is decided until everything is loaded again, because the store failed."""
        return self.state.paused

    @property
    def superseded(self) -> bool:
        """Whether another scheduler has taken over."""
        return self.state.superseded

    @superseded.setter
    def superseded(self, value: bool) -> None:
        self.state.superseded = value

    def _guarded(self, run: int, work: Callable[[], object]) -> None:
        self.runs.guarded(run, work)

    # --- from the store ---------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load everything from the store: at the start, and after a failed commit."""
        self.state.clear()
        self._going_on.clear()
        self._next_wave.clear()
        self.schedules.clear()
        self.timetables.restart()
        self.callbacks.wake()
        self.assets.clear()
        self.watchers.clear()
        # Items that follow from the store are created again. Messages of worker hosts are not, so they stay, each one once: a host
        # repeats a message until it is answered.
        messages: dict[object, Item] = {}
        for item in self.inbox:
            if isinstance(item, FromWorker):
                messages[item.attempt, item.body.op, item.body.nonce] = item
            elif isinstance(item, RunEvent) and isinstance(item.event, e.AttemptVanished):
                messages[item.run, item.event.slot, item.event.fence, item.event.nonce, "vanished"] = item
        self.inbox.clear()
        self.inbox.extend(messages.values())
        self.state.set_parallelism()
        self.refresh_pools()
        self.refresh_listeners()
        self.schedules.load()

    def refresh_listeners(self) -> None:
        """Read from the list of plugins which events have listeners."""
        self.state.listened = listened_events(self.store.plugins())

    def refresh_pools(self) -> None:
        """Read the pools, which may have been changed."""
        pools = self.store.pools()
        for pool in pools:
            self.admission.set_capacity(("pool", pool.name, 0), pool.slots)
        self.deferrals.set_pools(pools)

    def forget_pool(self, name: str) -> None:
        """Remove a deleted pool: task instances that need it are not admitted any more."""
        self.admission.set_capacity(("pool", name, 0), None)
        self.refresh_pools()

    def compare_with_store(self) -> int:
        """Safety net: compare memory with the store, and reload and count the DAGs, backfills and runs that differ."""
        found = self.schedules.compare_with_store() + self.runs.compare_with_store()
        self.refresh_pools()
        self.readmit()
        if self.executor.runs_triggers:
            self.hosts.run_triggers(one.key for one in self.waits.triggers())
            self.watchers.repeat_orders()
            self.watchers.wake()
        return found

    def is_quarantined(self, run: int) -> bool:
        """Return whether a decision on the run failed and is tried again later."""
        return run in self.quarantine

    def release_memory(self) -> None:
        """Drop what can be read again, when no run is active."""
        self.runs.release_memory()
        self.store.release_memory()

    # --- the inbox --------------------------------------------------------------------------------------------------

    def push(self, item: Item) -> None:
        """Add an item to the inbox, for the next `process`."""
        self.inbox.append(item)

    def prune_timers(self) -> None:
        """Drop timers of runs that have ended. The timer of a quarantined run stays."""
        self.timers.prune(lambda item: isinstance(item, SettleRun | WakeWatchers) or item.run in self.active_runs_by_id)

    def take_due_timers(self) -> None:
        """Move due timers into the inbox."""
        for item in self.timers.due(self.clock.wall()):
            if isinstance(item, str):
                self.queue.mark_dirty(item)
            elif isinstance(item, WakeWatchers):
                self.watchers.wake()
            elif isinstance(item, ExamineWait):
                self.waits.notice(*item)
            else:
                self.inbox.append(item)

    @property
    def busy(self) -> bool:
        """Whether there is work to do now."""
        return bool(
            self.inbox or self._readmit or self.schedules.busy or self.waits.noticed or self.assets.dirty or self.watchers.busy
        )

    def readmit(self) -> None:
        """Try to admit candidates in the next `process`: a limit may have changed."""
        self._readmit = True

    def process(self) -> None:
        """Do all work that is there now, in transactions of limited size."""
        self.take_due_timers()
        while self.busy and not self.paused and not self.superseded:
            self._taken = []
            began = 0 if self.metrics is None else self.clock.monotonic()
            try:
                self._decide()
            except StoreError as error:
                self.commit_failed(error, self._taken)
                return
            except Exception:  # a bug outside of any single item: the caller loads everything again
                self._put_back(self._taken)
                raise
            self._commit(self._taken)
            if not self.paused and not self.superseded:
                self._after_commit_steps()
            if self.metrics is not None:
                self.metrics.batch_done(began, self.clock.monotonic())
                self.metrics.flush()
            self.take_due_timers()

    def _after_commit_steps(self) -> None:
        """Do the steps that write their own transactions, and examine the waits that the commit may have ended."""
        try:
            self.schedules.advance_backfills()
            self.deferrals.examine_noticed()
            self.schedules.advance_watchers()
            self.schedules.advance_assets()
        except Stale as error:
            self.stop_superseded(error)
        except StoreError as error:
            self.commit_failed(error, [])

    # --- deciding ---------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """In rounds: apply a limited number of items, examine dirty DAGs, and admit task instances."""
        now = self.clock.wall()
        self.batch.rows = 0
        while True:
            self._decide_round(now)
            # the next wave of decisions follows after the task instances of the last one were admitted, as in Airflow
            waves, self._next_wave = self._next_wave, {}
            for run in waves:
                self.settle_later(run)
            if not waves or not self.batch.rows_left():
                return

    def _decide_round(self, now: int) -> None:
        while self.inbox and self.batch.rows_left():
            item = self.inbox.popleft()
            self._taken.append(item)
            run = run_of(item)
            if isinstance(item, SettleRun):
                self._going_on.discard(run)
            if isinstance(item, SettleRun) and self.quarantine.is_over(run, now):
                self.runs.refresh(run)
            else:
                self.runs.guarded(run, lambda item=item: self._apply(item, now))  # type: ignore[misc]
        self.schedules.decide(now)
        self._readmit = False
        for candidate in self.admission.admit(max(1, self.batch.rows_left(RESERVE) // ROWS_PER_MOVE)):
            self.runs.guarded(candidate.run, lambda c=candidate: self._dispatch(c.run, c.slot, now))  # type: ignore[misc]
            self._readmit = True

    def _apply(self, item: Item, now: int) -> None:
        if isinstance(item, FromWorker):
            self._apply_worker(item, now)
            return
        active_run = self.active_runs_by_id.get(item.run)
        if active_run is None:
            if isinstance(item, WaitResult):
                self.executor.drop_triggers([(item.run, item.slot, item.fence)])
            return
        if active_run.state is RunState.QUEUED:
            return  # it is being queued again in this batch; its events are found again when it restarts
        active_run.machine.budget = max(1, self.batch.rows_left() // ROWS_PER_MOVE)
        if isinstance(item, SettleRun):
            self.take(active_run, active_run.machine.settle(now), now)
        elif isinstance(item, WaitDue | WaitResult):
            decisions = self.deferrals.apply(active_run, item, now)
            if decisions is not None:
                self.take(active_run, decisions, now)
        elif isinstance(item.event, e.AttemptVanished):
            decisions = self._attempts.vanished(active_run, item.event._replace(at=now), now)
            if decisions is not None:
                self.take(active_run, decisions, now)
        elif isinstance(item.event, e.PastChanged) and not self.previous_runs.is_current(item.run, item.event):
            self.take(active_run, [], now)  # outdated; but the run may now only wait for a previous run, and block a run slot
        elif isinstance(item.event, e.RunTimedOut) and (due := self.runs.times_out_at(active_run, now)) > now:
            self.timers.add(due, item)
        else:
            if isinstance(item.event, e.PastChanged):
                self._depend_on_previous_run(active_run)
            self.take(active_run, active_run.machine.apply(item.event._replace(at=now)), now)

    def _depend_on_previous_run(self, active_run: ActiveRun) -> None:
        """Write a run only together with its previous run, if the previous run has changes that are not committed yet."""
        before = self.previous_runs.before(active_run.row.id)
        live = None if before is None else self.active_runs_by_id.get(before)
        if live is not None and live.changed:
            active_run.after.add(live.row.id)
            self.batch.include(active_run)

    def _apply_worker(self, item: FromWorker, now: int) -> None:
        active_run = self.active_runs_by_id.get(item.attempt[0])
        if active_run is None and self.state.is_out_of_scope(item.attempt[0]):
            return  # the worker host keeps the message, and repeats it to the scheduler that handles the DAG
        if active_run is None:
            self._attempts.answer(item, Refused(item.body.op, "its run is not running", item.body.nonce))
            return
        active_run.machine.budget = max(1, self.batch.rows_left() // ROWS_PER_MOVE)
        if isinstance(item.body, Start):
            decisions = self._attempts.start(active_run, item, item.body, now)
            if decisions is not None:
                self.take(active_run, decisions, now)
            return
        effects = self._attempts.report(active_run, item, item.body, now)
        if effects is not None:
            if not effects.is_settled:
                self.settle_later(active_run.row.id)
            self.take(active_run, effects.decisions, now, effects.calls_back)

    def take(self, active_run: ActiveRun, decisions: list[e.Decision], now: int, calls_back: int = NO_TASK) -> None:
        """Apply the decisions of a run to the rest of the scheduler.

        Args:
            calls_back: the slot of a task whose own process calls its callbacks.
        """
        run = active_run.row.id
        for decision in decisions:
            if isinstance(decision, e.Move):
                self.batch.rows += ROWS_PER_MOVE
                active_run.add_move(decision)
                self._moved(active_run, decision)
                if decision.after in STEPS:
                    active_run.callback_requests += requests.of_attempt(
                        active_run, decision, decision.slot == calls_back, self.state.listened
                    )
            elif isinstance(decision, e.Expanded):
                self.batch.rows += 1 + decision.added
                active_run.add_expanded(decision)
            elif isinstance(decision, e.Added):
                self.batch.rows += 1
                active_run.add_row(decision)
            elif isinstance(decision, e.Verified):
                active_run.set_verified()
            elif isinstance(decision, e.Timer):
                self.timers.add(decision.due, RunEvent(run, e.TimerDue(decision.slot, decision.due)))
            elif isinstance(decision, e.Stop):
                self._attempts.stop(active_run, decision)
            elif isinstance(decision, e.RunEnds):
                active_run.state = RunState.SUCCESS if decision.success else RunState.FAILED
                active_run.reason = decision.cause
                active_run.callback_requests += requests.of_run(active_run, decision, self.state.listened)
                self.queue.mark_dirty(active_run.row.dag_id)
        if active_run.changed:
            self.batch.include(active_run)
        if active_run.machine.blocks_admission or active_run.admission_blocked:
            self.runs.update_capacity(active_run)
        if active_run.machine.unsettled:
            if run not in self._going_on:
                self._next_wave[run] = None
        elif active_run.topology.has_past and active_run.waits_for_previous_run(now):
            self.queue.mark_dirty(active_run.row.dag_id)

    def settle_later(self, run: int) -> None:
        """Settle this run after the items that are in the inbox now."""
        if run not in self._going_on:
            self._going_on.add(run)
            self.inbox.append(SettleRun(run))

    def _moved(self, active_run: ActiveRun, move: e.Move) -> None:
        run, slot = active_run.row.id, move.slot
        if move.before is TaskState.SCHEDULED and move.after is not TaskState.QUEUED:
            self.admission.discard(run, slot)
        if move.before in OCCUPYING and move.after not in OCCUPYING:
            self.admission.release(run, slot)
            self.executor.release((run, slot))
            active_run.holders.pop(slot, None)
        if move.after is TaskState.DEFERRED and move.before in SCHEDULABLE:
            wait = planned_row(active_run, slot, move.fence, move.at)
            active_run.keep_wait(wait)
            active_run.journal[-1] = active_run.journal[-1]._replace(cause=waiting_cause(move.cause, wait.deferral.wait))
            self.batch.rows += 1
        if active_run.waits:
            self.deferrals.moved(active_run, move)
        if move.after is TaskState.SCHEDULED:
            self.admission.add(active_run.candidate(slot))
        if self.waits.watches:
            self.waits.moved(active_run, slot)
        if move.after in FINISHED or move.before in FINISHED:
            self.previous_runs.finished(active_run, slot, self.active_runs_by_id, self.state.push_event)

    def _dispatch(self, run: int, slot: int, now: int) -> None:
        active_run = self.active_runs_by_id[run]
        active_run.machine.budget = 1
        decisions = active_run.machine.apply(e.Admitted(slot, now), settle=False)
        if isinstance(decisions[0], e.Refusal):
            self.admission.release(run, slot)
        else:
            self.batch.workloads.append((active_run, slot))
        self.take(active_run, decisions, now)

    # --- committing -----------------------------------------------------------------------------------------------------

    def _commit(self, items: list[Item]) -> None:
        """Write the batch. Only after the commit, send the messages."""
        now = self.clock.wall()
        writes = self._writes(now)
        touched, dropped = self._commit_order({run: self.batch.touched[run] for run in writes})
        share = self.schedules.share(self.batch.rows_left(RESERVE))
        if touched or dropped or share:
            batch = Batch(
                self.epoch,
                now,
                [writes[run] for run in touched],
                share.new,
                list(share.positions.values()),
                [(share.rows_of, self.batch.rows_left(RESERVE))] if share.rows_of is not None else [],
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
            for row in written.committed.created:
                self.changes.run(row.dag_id, row.run_id)
            stale_runs = {**written.committed.stale, **dropped}
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
        for active_run in self.batch.touched.values():
            active_run.after.clear()
        self.batch.touched.clear()
        self._send_outputs()

    def _writes(self, now: int) -> dict[int, RunWrite]:
        """Return the changes of each run. A run whose changes cannot be computed is quarantined."""
        writes: dict[int, RunWrite] = {}

        def add(run: int, active_run: ActiveRun) -> None:
            if active_run.changed:
                writes[run] = active_run.write(now)

        for run, active_run in list(self.batch.touched.items()):
            self.runs.guarded(run, partial(add, run, active_run))
        return writes

    @staticmethod
    def _commit_order(touched: dict[int, ActiveRun]) -> tuple[dict[int, ActiveRun], dict[int, list[int]]]:
        """Order runs after the previous runs that they depend on, and drop those that depend on a run that is not written.

        Returns:
            The runs to write, in order; the runs that were dropped, in the form of `Committed.stale`.
        """
        dropped: dict[int, list[int]] = {}
        while wrong := [run for run, active_run in touched.items() if not active_run.after <= touched.keys()]:
            for run in wrong:
                del touched[run]
                dropped[run] = []
        if any(active_run.after for active_run in touched.values()):
            dates = {run: active_run.row.logical_date or 0 for run, active_run in touched.items() if active_run.after}
            touched = dict(sorted(touched.items(), key=lambda one: (one[0] in dates, dates.get(one[0], 0))))
        return touched, dropped

    def _clear_trouble(self) -> None:
        if self.trouble is not None:
            log.info("the store can be written again")
            self.trouble = None

    def _reload_runs(self, stale: dict[int, list[int]], items: list[Item]) -> None:
        """Rebuild runs that somebody else changed. Their changes were not written; their events are applied again."""
        for run, slots in stale.items():
            log.warning("a run was changed by somebody else; it is reloaded", run=run, slots=slots[:10])
            self.batch.discard_outputs(run)
            self.runs.refresh(run)
            self.inbox.extend(item for item in items if run_of(item) == run and not isinstance(item, SettleRun))

    def _send_outputs(self) -> None:
        """After the commit: send answers and cancels, then new work."""
        outputs, workloads = self.batch.take_outputs()
        for run, call in outputs:
            self.runs.isolated(run, call)
        ready: list[Workload] = []
        for active_run, slot in workloads:
            if (
                active_run.machine.task_state(slot) is TaskState.QUEUED
                and self.active_runs_by_id.get(active_run.row.id) is active_run
            ):
                self.runs.guarded(active_run.row.id, partial(self._add_workload, ready, active_run.row.id, slot))
        if ready:
            fp("scheduler.before_submit")
            self.hosts.submit(ready)
            fp("scheduler.after_submit")

    def _add_workload(self, ready: list[Workload], run: int, slot: int) -> None:
        ready.append(self.hosts.workload(run, slot))

    def _written(self, touched: dict[int, ActiveRun], now: int) -> None:
        for run, active_run in touched.items():
            self.runs.isolated(run, partial(self._run_written, active_run, now))

    def _run_written(self, active_run: ActiveRun, now: int) -> None:
        changed = active_run.state is not active_run.row.state
        if active_run.callback_requests:
            self.callbacks.wake()
        if self.changes.wanted:
            self.changes.committed(active_run)
        if self.metrics is not None:
            self.metrics.batch_written(active_run, now)
        active_run.written(now)
        if changed:
            row = active_run.row
            self.notify(Notice("run", row.dag_id, row.run_id, row.state.value, at=now, text=row.reason or ""))
            if self.waits.watches:
                self.waits.run_changed(row.dag_id, row.logical_date, row.run_id)
            if row.state is not RunState.RUNNING:
                self.runs.forget(row.id)
                self.queue.mark_dirty(row.dag_id)
                entry = self.dags.get(row.dag_id)
                if row.state is RunState.QUEUED and entry is not None:
                    self.queue.add(entry, row)
            elif active_run.topology.has_past:
                self.queue.mark_dirty(row.dag_id)

    def commit_failed(self, error: StoreError, items: list[Item]) -> None:
        """Handle a commit that failed or whose outcome is unknown: memory is not valid any more. The items are tried again."""
        self._failures += 1
        if self._failures == 1:
            log.error("the store cannot be written; it is tried again", error=str(error))
        self.record_failure(str(error))
        self._put_back(items)

    def _put_back(self, items: list[Item]) -> None:
        """Put items back at the front of the inbox."""
        self.inbox.extendleft(reversed([item for item in items if not isinstance(item, SettleRun)]))

    def stop_superseded(self, error: Stale) -> None:
        """Stop deciding: another scheduler has taken over."""
        log.error("this scheduler was superseded and stops", error=str(error))
        self.state.superseded = True

    def record_failure(self, why: str) -> None:
        """Stop deciding until `recover`: the store failed, so memory may be wrong."""
        self.trouble = why
        self.state.paused = True

    def recover(self) -> bool:
        """Load everything from the store again, and return whether that worked. `trouble` stays set until the next commit."""
        try:
            self.load()
        except StoreError as error:
            self.trouble = str(error)
            return False
        except Exception as error:
            log.exception("the state cannot be loaded from the store; it is tried again")
            self.trouble = f"a bug in Tradewind, see the scheduler's log: {type(error).__name__}: {error}"
            return False
        self.state.paused = False
        self._readmit = True
        self.changes.add(RESYNC)
        self.hosts.recovered(self.clock.wall())
        return True
