"""DAGs: their schedules, the runs that the schedules create, and the queued runs that may start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import NamedTuple

from tradewind.kernel.admission import UNLIMITED
from tradewind.model.errors import Stale, StoreError, StoreRefused
from tradewind.model.rows import BackfillRow, DagPlan, RunRow, ScheduledRun, SchedulePosition
from tradewind.model.states import RunState
from tradewind.observe.log import Log
from tradewind.scheduler.assets.asset_index import AssetIndex
from tradewind.scheduler.assets.custom_mappers import CustomMappers
from tradewind.scheduler.assets.watchers import AssetWatchers
from tradewind.scheduler.dags.backfills import BackfillPlanner
from tradewind.scheduler.dags.custom_timetables import CustomTimetables
from tradewind.scheduler.dags.run_queue import RunQueue
from tradewind.scheduler.dags.schedule import DagEntry, plan_next, take_due, times_of
from tradewind.scheduler.group_commit import Written
from tradewind.scheduler.quarantine import HeldBack
from tradewind.scheduler.runs.run_registry import RunRegistry
from tradewind.scheduler.runs.run_slots import RunSlots
from tradewind.scheduler.shared_state import SharedState
from tradewind.wire.messages import Notice, TimetableAnswer

log = Log("scheduler")

SCHEDULE, BACKFILL, ASSETS, ROWS = "schedule", "backfill", "assets", "rows"
"""Names of steps that are held back for a while when they fail: the first three by DAG id, `rows` by run number."""

CREATED_WITH_RUN = 2000
"""Number of task-instance rows that the store writes together with a new run; other rows of a large run follow in parts."""


class Share(NamedTuple):
    """The part of a transaction that comes from schedules."""

    new: list[ScheduledRun]
    positions: dict[str, SchedulePosition]
    rows_of: int | None
    """The queued run of which more rows are created."""

    def __bool__(self) -> bool:
        return bool(self.new or self.positions or self.rows_of is not None)


class DagRegistry:
    """See the module."""

    def __init__(
        self,
        state: SharedState,
        queue: RunQueue,
        runs: RunRegistry,
        slots: RunSlots,
        assets: AssetIndex,
        watchers: AssetWatchers,
        timetables: CustomTimetables,
        mappers: CustomMappers,
    ) -> None:
        self._state = state
        self._queue = queue
        self._runs = runs
        self._slots = slots
        self._assets = assets
        self._watchers = watchers
        self._timetables = timetables
        self._mappers = mappers
        self._backfills = BackfillPlanner(state.store, state.epoch, state.config.batch_max_rows)
        self._new: list[ScheduledRun] = []
        self._new_of: dict[str, int] = {}
        """DAG → number of its runs in `_new`."""
        self._positions: dict[str, SchedulePosition] = {}
        """Positions of schedules that moved without a run: people see the position as the next run."""
        self._backfilled: dict[str, None] = {}
        """DAGs whose backfill may continue."""

    def clear(self) -> None:
        """Drop everything, which is read again from the store."""
        self._queue.clear()
        self._new.clear()
        self._new_of.clear()
        self._positions.clear()
        self._backfilled.clear()
        self._backfills.clear()

    @property
    def busy(self) -> bool:
        """Whether there is work to do now."""
        return bool(self._queue.dirty or self._queue.incomplete or self._positions or self._backfilled)

    # --- from the store ---------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load every DAG with its backfill, and every unfinished run."""
        state = self._state
        for plan in self._plans():
            state.dags[plan.dag_id] = DagEntry(plan)
            self._set_paused(plan.dag_id)
        for backfill in state.store.backfills():
            if backfill.dag_id in state.dags:
                state.dags[backfill.dag_id].backfill = backfill
        for row in state.store.active_runs():
            entry = state.dags.get(row.dag_id)
            if row.state is RunState.QUEUED and entry is not None:
                self._runs.guarded(row.id, partial(self._queue.add, entry, row))
            elif row.state is RunState.RUNNING and entry is not None:
                self._runs.load_running(row)
        now = state.clock.wall()
        for entry in state.dags.values():
            self._plan(entry, now)

    def covers(self, plan: DagPlan) -> bool:
        """Return whether this scheduler handles the DAG (see `SchedulerConfig.scope`)."""
        return self._state.config.scope.covers(plan.dag_id, plan.bundle, plan.file)

    def _plans(self) -> list[DagPlan]:
        return [plan for plan in self._state.store.plans() if self.covers(plan)]

    def refresh(self, dag_id: str, created: Iterable[RunRow] | None = None) -> None:
        """Reload a DAG that was parsed, paused, unpaused or deleted, or has a new run. Its held back steps are tried again now.

        Args:
            created: the new runs, if nothing else has changed; None: all unfinished runs of the DAG are read.

        Raises:
            StoreError: the DAG cannot be read.
        """
        for step in (SCHEDULE, BACKFILL, ASSETS):
            self._state.quarantine.release((step, dag_id))
        self._reload(dag_id, created)

    def _reload(self, dag_id: str, created: Iterable[RunRow] | None = None) -> None:
        state = self._state
        plan = state.store.dag(dag_id)
        if plan is None or not self.covers(plan):
            if plan is None:
                state.waits.dag_deleted(dag_id)
            gone = state.dags.pop(dag_id, None)
            if gone is not None:  # deleted, with all its runs
                self._queue.remove_dag(gone)
                self._watchers.forget(dag_id)
                self._positions.pop(dag_id, None)
                state.admission.set_capacity(("dag", dag_id, 0), None)
            return
        entry = state.dags.get(dag_id)
        if entry is None:
            entry, created = DagEntry(plan), None
            state.dags[dag_id] = entry
        elif entry.plan.version != plan.version:
            created = None  # there are more changes than a new run
        if entry.plan.file != plan.file:
            self._timetables.reset_backoff(entry.plan, state.clock.wall(), custom=False)
        entry.plan = plan
        entry.backfill = next(iter(state.store.backfills(dag_id)), None)
        for row in state.store.active_runs(dag_id) if created is None else created:
            if row.state is RunState.QUEUED and row.id not in entry.running:
                self._runs.guarded(row.id, partial(self._queue.add, entry, row))
        self._set_paused(dag_id)
        self._plan(entry, state.clock.wall())
        if created is None:
            self._runs.follow(plan)

    def compare_with_store(self) -> int:
        """Compare all DAGs and backfills in memory with the store, reload those that differ, and return their number."""
        state, found, plans = self._state, 0, self._plans()
        for dag_id in sorted(state.dags.keys() - {plan.dag_id for plan in plans}):
            self._refresh_isolated(dag_id)
            found += 1
        for plan in plans:
            entry = state.dags.get(plan.dag_id)
            if entry is None or _comparable(entry.plan) != _comparable(plan):
                self._refresh_isolated(plan.dag_id)
                found += 1
        for backfill in state.store.backfills():
            entry = state.dags.get(backfill.dag_id)
            if entry is not None and (
                entry.backfill is None or entry.backfill._replace(handled=0) != backfill._replace(handled=0)
            ):
                self._refresh_isolated(backfill.dag_id)
                found += 1
            self._queue.mark_dirty(backfill.dag_id)
        for entry in state.dags.values():
            self._assets.mark_dirty(entry.plan)
        return found

    def _refresh_isolated(self, dag_id: str) -> None:
        """Reload a DAG. If that fails, only this DAG is affected: the next comparison tries it again."""
        try:
            self.refresh(dag_id)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                raise
            log.exception("a DAG cannot be reloaded; it is tried again later", dag_id=dag_id)

    def _set_paused(self, dag_id: str) -> None:
        """Admit tasks of a DAG only if it is not paused. Its asset watchers also run only then."""
        entry = self._state.dags[dag_id]
        self._watchers.follow(entry.plan)
        self._state.admission.set_capacity(("dag", dag_id, 0), UNLIMITED if not entry.plan.is_paused else 0)

    def _plan(self, entry: DagEntry, now: int) -> None:
        """Compute the next run of a DAG again."""
        plan_next(entry, now)
        dag_id = entry.plan.dag_id
        if entry.question is None and entry.reply is None:
            self._timetables.reset_backoff(entry.plan, now, custom=False)
        # otherwise the displayed next run stays: until the timetable has answered, or the store accepts the position
        if entry.question is None and self._state.quarantine.held_back((SCHEDULE, dag_id), now) is None:
            self._positions[dag_id] = SchedulePosition(dag_id, entry.plan.last, entry.plan.last, times_of(entry.next))
        self._queue.mark_dirty(dag_id)

    # --- custom timetables --------------------------------------------------------------------------------------------

    def file_parsed(self, dag_id: str) -> None:
        """Ask a custom timetable again: its file was parsed, so its code may have changed although the DAG looks the same."""
        entry, timetables = self._state.dags.get(dag_id), self._timetables
        if entry is None or (entry.reply is None and entry.question is None and dag_id not in timetables.troubles):
            return
        now = self._state.clock.wall()
        entry.reply = None
        plan_next(entry, now)
        timetables.reset_backoff(entry.plan, now, custom=entry.question is not None)
        self._queue.mark_dirty(dag_id)

    def on_timetable_answer(self, answer: TimetableAnswer) -> None:
        """Use the answer, or the error, of a custom timetable or partition mapper."""
        now = self._state.clock.wall()
        mapped = self._mappers.take(answer)
        if mapped is not None:
            found = self._state.dags.get(mapped)
            if found is not None:
                self._assets.mark_mapped(found.plan)
            return
        entry = self._timetables.take(answer, self._state.dags, now)
        if entry is not None:
            self._plan(entry, now)

    # --- deciding -----------------------------------------------------------------------------------------------------

    def held_back(self, plan: DagPlan, now: int) -> list[tuple[str, HeldBack]]:
        """Return the steps of a DAG that failed and are tried again later."""
        found = ((step, self._state.quarantine.held_back((step, plan.dag_id), now)) for step in (SCHEDULE, BACKFILL, ASSETS))
        return [(step, held) for step, held in found if held is not None]

    def decide(self, now: int) -> None:
        """Examine dirty DAGs while the transaction may write more rows. If one DAG fails, only this DAG is affected.

        Raises:
            StoreError: the store cannot be used now.
        """
        dirty, batch = self._queue.dirty, self._state.batch
        while dirty and batch.rows_left():
            dag_id = next(iter(dirty))
            del dirty[dag_id]
            try:
                self._examine(dag_id, now)
            except Exception as error:
                if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                    raise
                log.exception("a DAG cannot be scheduled; it is tried again later", dag_id=dag_id)
                self._state.timers.add(self._state.quarantine.failed(dag_id, now), dag_id)

    def _examine(self, dag_id: str, now: int) -> None:
        """Create the runs of a DAG that are due, and start those that may start."""
        state, batch = self._state, self._state.batch
        entry = state.dags.get(dag_id)
        if entry is None:
            return
        self._create_due_runs(entry, now)
        while batch.rows_left() and (row := self._slots.next_run(entry, now)) is not None:
            self._queue.remove(row.id)
            entry.running.add(row.id)
            self._runs.guarded(row.id, lambda row=row: self._runs.begin(row, now))  # type: ignore[misc]
        if entry.waiting and (active_run := self._slots.run_to_requeue(entry, now)) is not None:
            active_run.state = RunState.QUEUED  # its run slot is free when that is committed
            batch.include(active_run)
        elif entry.waiting and (moment := self._slots.requeue_moment(entry, now)) is not None:
            state.timers.add(moment, dag_id)
        if not batch.rows_left():
            self._queue.mark_dirty(dag_id)
        if entry.reply is not None and entry.reply.until is not None and entry.reply.until <= now:
            entry.reply = None
            plan_next(entry, now)
        again = self._timetables.consult(entry, now)
        if again is not None:
            state.timers.add(again, dag_id)
        if entry.backfill is not None:
            self._backfilled[dag_id] = None
        self._assets.mark_dirty(entry.plan)
        incomplete = self._queue.incomplete
        for run in sorted(run for run in entry.incomplete & entry.waiting.keys() if run not in incomplete):
            if state.quarantine.held_back((ROWS, run), now) is None:
                incomplete[run] = dag_id
        self._set_timer(entry, now)

    def _create_due_runs(self, entry: DagEntry, now: int) -> None:
        """Create the runs that are due by the schedule, unless the store refused the last one a moment ago."""
        state, dag_id = self._state, entry.plan.dag_id
        if state.quarantine.held_back((SCHEDULE, dag_id), now) is not None:
            return
        if state.quarantine.release((SCHEDULE, dag_id)):
            self._plan(entry, now)
        while state.batch.rows_left() and (due := take_due(entry, now, self._new_of.get(dag_id, 0))) is not None:
            self._new.append(due)
            self._new_of[dag_id] = self._new_of.get(dag_id, 0) + 1
            self._positions.pop(dag_id, None)  # an older position would set the schedule back to before this run
            definition = self._queue.definition(due.run.version)
            state.batch.rows += 1 + min(len(definition.tasks) if definition is not None else 0, CREATED_WITH_RUN)

    def _set_timer(self, entry: DagEntry, now: int) -> None:
        """Let a DAG be examined again when its next run or its oldest queued run is due, or a held back step is tried again."""
        moments = [m for m in (entry.next.run_after if entry.next else None, entry.next_due()) if m is not None and m > now]
        if entry.reply is not None and entry.reply.until is not None:
            moments.append(entry.reply.until)
        if not entry.is_open:
            moments.clear()
        steps = [
            *((step, entry.plan.dag_id) for step in (SCHEDULE, BACKFILL, ASSETS)),
            *((ROWS, run) for run in entry.incomplete),
        ]
        moments += [held.until for step in steps if (held := self._state.quarantine.held_back(step, now)) is not None]
        if moments:
            self._state.timers.add(min(moments), entry.plan.dag_id)

    # --- committing ---------------------------------------------------------------------------------------------------

    def share(self, most_positions: int) -> Share:
        """Return the rows to be written now. A new run is returned once: if it is not written, it is decided again."""
        new, self._new = self._new, []
        self._new_of.clear()
        positions = {dag_id: self._positions[dag_id] for dag_id in islice(self._positions, most_positions)}
        return Share(new, positions, next(iter(self._queue.incomplete), None))

    def written(self, share: Share, written: Written, now: int) -> None:
        """Handle the result of a commit. Rows that the store refused are decided again later, from the store's current rows.

        Raises:
            StoreError: a refused DAG cannot be reloaded.
        """
        committed, state = written.committed, self._state
        for dag_id in share.positions:
            del self._positions[dag_id]
        self._add_created(committed.created)
        for dag_id in sorted(committed.consumers & state.dags.keys()):
            self._assets.mark_dirty(state.dags[dag_id].plan)
        for run, have in committed.rows_created.items():
            self._queue.rows_created(run, have)
        for run, why in written.rows.items():
            state.quarantine.hold_back((ROWS, run), why, now)
            self._queue.mark_dirty(self._queue.incomplete.pop(run))
        for dag_id, why in written.schedules.items():
            state.quarantine.hold_back((SCHEDULE, dag_id), why, now)
            self._reload(dag_id)
        for dag_id in sorted(committed.moved):
            log.warning("the schedule position of a DAG was changed by somebody else; the DAG is reloaded", dag_id=dag_id)
            self._reload(dag_id)

    def _add_created(self, rows: list[RunRow]) -> None:
        """Queue runs that were created in the store."""
        for row in rows:
            self._runs.guarded(row.id, partial(self._add_created_run, row))
            self._queue.mark_dirty(row.dag_id)

    def _add_created_run(self, row: RunRow) -> None:
        state = self._state
        entry = state.dags.get(row.dag_id)
        if entry is not None and row.state is RunState.QUEUED and row.id not in entry.running:
            self._queue.add(entry, row)
            state.notify(Notice("run", row.dag_id, row.run_id, row.state.value, at=row.queued_at))
        if state.waits.watches:
            state.waits.run_changed(row.dag_id, row.logical_date, row.run_id)

    # --- after a commit: steps that write their own transactions --------------------------------------------------------

    def advance_backfills(self) -> None:
        """Do one limited step of each backfill that may continue. If one fails, only its DAG is affected.

        Raises:
            Stale: another scheduler has taken over.
            StoreError: the store cannot be used now.
        """
        for dag_id in list(self._backfilled):
            del self._backfilled[dag_id]
            entry = self._state.dags.get(dag_id)
            if entry is not None and entry.backfill is not None and not entry.backfill.is_paused and entry.is_open:
                self._advance(BACKFILL, dag_id, partial(self._advance_backfill, entry, entry.backfill))

    def _advance_backfill(self, entry: DagEntry, backfill: BackfillRow) -> None:
        changed, row = self._backfills.advance(entry.plan, backfill, self._state.clock.wall())
        entry.backfill = row
        for run in changed:
            self._runs.refresh(run)
        if row != backfill:
            self._queue.mark_dirty(entry.plan.dag_id)

    def advance_watchers(self) -> None:
        """Write the events of asset watchers, and start and stop their triggers.

        Raises:
            Stale: another scheduler has taken over.
            StoreError: the store cannot be used now.
        """
        for dag_id in sorted(self._watchers.advance() & self._state.dags.keys()):
            self._assets.mark_dirty(self._state.dags[dag_id].plan)

    def advance_assets(self) -> None:
        """Create the runs of DAGs whose assets were updated. If one fails, only its DAG is concerned.

        Raises:
            Stale: another scheduler has taken over.
            StoreError: the store cannot be used now.
        """
        for dag_id in list(self._assets.dirty):
            del self._assets.dirty[dag_id]
            entry = self._state.dags.get(dag_id)
            if entry is not None:
                self._advance(ASSETS, dag_id, partial(self._advance_assets, entry))

    def _advance_assets(self, entry: DagEntry) -> None:
        rows = self._assets.advance(entry, self._state.clock.wall())
        if rows:
            self._add_created(rows)

    def _advance(self, what: str, dag_id: str, step: Callable[[], None]) -> None:
        """Do a step that writes its own transaction. A step that fails is held back and tried again later."""
        state, key, now = self._state, (what, dag_id), self._state.clock.wall()
        held = state.quarantine.held_back(key, now)
        if held is not None:
            state.timers.add(held.until, dag_id)
            return
        state.quarantine.release(key)
        try:
            step()
        except Stale:
            raise
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                raise
            log.exception("a step of a DAG failed; it is tried again later", what=what, dag_id=dag_id)
            state.timers.add(state.quarantine.hold_back(key, f"{type(error).__name__}: {error}", now), dag_id)


def _comparable(plan: DagPlan) -> DagPlan:
    """Return a plan without the fields that change by themselves."""
    return plan._replace(last=None, parse_duration=0)
