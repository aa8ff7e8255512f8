"""DAGs: their schedules, the runs that these make, and the queued runs that may begin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tradewind.kernel.admission import UNLIMITED
from tradewind.model.definition import DagDefinition
from tradewind.model.errors import NotFound, Stale, StoreError, StoreRefused
from tradewind.model.rows import BackfillRow, DagPlan, RunRow, ScheduledRun, SchedulePosition
from tradewind.model.states import RunState
from tradewind.observe.log import Log
from tradewind.scheduler.dags.backfills import BackfillPlanner
from tradewind.scheduler.dags.schedule import DagEntry, plan_next, take_due, times_of
from tradewind.scheduler.group_commit import Written
from tradewind.scheduler.quarantine import HeldBack
from tradewind.wire.messages import Notice, TimetableAnswer

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler

log = Log("scheduler")

SCHEDULE, BACKFILL, ASSETS, ROWS = "schedule", "backfill", "assets", "rows"
"""Steps that are held back for a while when they fail: each with the DAG's id, the last one with the number of the run."""

CREATED_WITH_RUN = 2000
"""Task-instance rows that a store writes with a run; those of a huge one follow by and by."""


class Share(NamedTuple):
    """What schedules add to a transaction."""

    new: list[ScheduledRun]
    positions: dict[str, SchedulePosition]
    rows_of: int | None
    """The queued run of which more rows are written."""

    def __bool__(self) -> bool:
        return bool(self.new or self.positions or self.rows_of is not None)


class DagRegistry:
    """See the module."""

    def __init__(self, owner: Scheduler) -> None:
        self._owner = owner
        self._book = BackfillPlanner(owner.store, owner.epoch, owner.config.batch_max_rows)
        self._looked_at: dict[str, None] = {}
        """DAGs whose runs have to be looked at, in turn: something started, ended or came due."""
        self._queued: dict[int, str] = {}
        """Queued run → its DAG."""
        self._new: list[ScheduledRun] = []
        self._new_of: dict[str, int] = {}
        """DAG → how many of `_new` are its runs."""
        self._positions: dict[str, SchedulePosition] = {}
        """Schedules that moved without a run: shown to people as the next run."""
        self._wanted: dict[int, str] = {}
        """Queued runs with rows still to be written → their DAG, in turn."""
        self._backfilled: dict[str, None] = {}
        """DAGs whose backfill may give the next run its turn."""

    def clear(self) -> None:
        """All is read anew."""
        self._queued.clear()
        self._new.clear()
        self._new_of.clear()
        self._positions.clear()
        self._wanted.clear()
        self._backfilled.clear()
        self._book.clear()

    @property
    def busy(self) -> bool:
        """Is there something to do now?"""
        return bool(self._looked_at or self._wanted or self._positions or self._backfilled)

    # --- from the store ---------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Every DAG and its backfill, and every unfinished run."""
        owner = self._owner
        for plan in self._plans():
            owner.dags[plan.dag_id] = DagEntry(plan)
            self._open_or_close(plan.dag_id)
        for backfill in owner.store.backfills():
            if backfill.dag_id in owner.dags:
                owner.dags[backfill.dag_id].backfill = backfill
        for row in owner.store.active_runs():
            entry = owner.dags.get(row.dag_id)
            if row.state is RunState.QUEUED and entry is not None:
                owner.guarded(row.id, partial(self.enqueue, entry, row))
            elif row.state is RunState.RUNNING and entry is not None:
                owner.runs.load_running(row)
        now = owner.clock.wall()
        for entry in owner.dags.values():
            self._plan(entry, now)

    def covers(self, plan: DagPlan) -> bool:
        """Does this scheduler look after the DAG?"""
        return self._owner.config.scope.covers(plan.dag_id, plan.bundle, plan.file)

    def _plans(self) -> list[DagPlan]:
        return [plan for plan in self._owner.store.plans() if self.covers(plan)]

    def refresh(self, dag_id: str, created: Iterable[RunRow] | None = None) -> None:
        """A DAG was parsed anew, paused, unpaused, deleted, or has a new run: what was held back of it is tried again now.

        Args:
            created: its new runs, where nothing else of it has changed; None: all its unfinished runs are read.

        Raises:
            StoreError: it cannot be read.
        """
        for step in (SCHEDULE, BACKFILL, ASSETS):
            self._owner.quarantine.release((step, dag_id))
        self._reload_runs(dag_id, created)

    def _reload_runs(self, dag_id: str, created: Iterable[RunRow] | None = None) -> None:
        owner = self._owner
        plan = owner.store.dag(dag_id)
        if plan is None or not self.covers(plan):
            if plan is None:
                owner.waits.dag_deleted(dag_id)
            gone = owner.dags.pop(dag_id, None)
            if gone is not None:  # deleted, with all its runs
                for run in gone.waiting:
                    self._queued.pop(run, None)
                self._positions.pop(dag_id, None)
                owner.admission.set_capacity(("dag", dag_id, 0), None)
            return
        entry = owner.dags.get(dag_id)
        if entry is None:
            entry, created = DagEntry(plan), None
            owner.dags[dag_id] = entry
        elif entry.plan.version != plan.version:
            created = None  # something else has changed, too
        if entry.plan.file != plan.file:
            owner.timetables.reset_backoff(entry.plan, owner.clock.wall(), custom=False)
        entry.plan = plan
        entry.backfill = next(iter(owner.store.backfills(dag_id)), None)
        for row in owner.store.active_runs(dag_id) if created is None else created:
            if row.state is RunState.QUEUED and row.id not in entry.running:
                owner.guarded(row.id, partial(self.enqueue, entry, row))
        self._open_or_close(dag_id)
        self._plan(entry, owner.clock.wall())
        if created is None:
            owner.runs.follow(plan)

    def compare_with_store(self) -> int:
        """Does memory stand as the store does? What differs is read anew; how many DAGs and backfills did."""
        owner, found, plans = self._owner, 0, self._plans()
        for dag_id in sorted(owner.dags.keys() - {plan.dag_id for plan in plans}):
            self._refresh_alone(dag_id)
            found += 1
        for plan in plans:
            entry = owner.dags.get(plan.dag_id)
            if entry is None or _lasting(entry.plan) != _lasting(plan):
                self._refresh_alone(plan.dag_id)
                found += 1
        for backfill in owner.store.backfills():
            entry = owner.dags.get(backfill.dag_id)
            if entry is not None and (
                entry.backfill is None or entry.backfill._replace(handled=0) != backfill._replace(handled=0)
            ):
                self._refresh_alone(backfill.dag_id)
                found += 1
            self.look_at(backfill.dag_id)
        for entry in owner.dags.values():
            owner.assets.look_at(entry.plan)
        return found

    def _refresh_alone(self, dag_id: str) -> None:
        """Whatever one DAG throws stays with it: the next look comes to it again."""
        try:
            self.refresh(dag_id)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                raise
            log.exception("a DAG cannot be read anew; it is tried again later", dag_id=dag_id)

    def _open_or_close(self, dag_id: str) -> None:
        """A paused DAG's tasks are not admitted."""
        entry = self._owner.dags[dag_id]
        self._owner.admission.set_capacity(("dag", dag_id, 0), UNLIMITED if not entry.plan.is_paused else 0)

    def _plan(self, entry: DagEntry, now: int) -> None:
        """Its next run may be another one."""
        plan_next(entry, now)
        dag_id = entry.plan.dag_id
        if entry.wants is None and entry.told is None:
            self._owner.timetables.reset_backoff(entry.plan, now, custom=False)
        # else what is shown stays: until the timetable has answered, or the store takes the position
        if entry.wants is None and self._owner.quarantine.held_back((SCHEDULE, dag_id), now) is None:
            self._positions[dag_id] = SchedulePosition(dag_id, entry.plan.last, entry.plan.last, times_of(entry.next))
        self.look_at(dag_id)

    # --- custom timetables --------------------------------------------------------------------------------------------

    def file_read(self, dag_id: str) -> None:
        """Its file was read anew: the code of a custom timetable may be another one, though the DAG looks the same."""
        entry, desk = self._owner.dags.get(dag_id), self._owner.timetables
        if entry is None or (entry.told is None and entry.wants is None and dag_id not in desk.troubles):
            return
        now = self._owner.clock.wall()
        entry.told = None
        plan_next(entry, now)
        desk.reset_backoff(entry.plan, now, custom=entry.wants is not None)
        self.look_at(dag_id)

    def on_timetable_answer(self, told: TimetableAnswer) -> None:
        """A custom timetable has answered, or could not."""
        now = self._owner.clock.wall()
        entry = self._owner.timetables.take(told, self._owner.dags, now)
        if entry is not None:
            self._plan(entry, now)

    # --- deciding -----------------------------------------------------------------------------------------------------

    def held_back(self, plan: DagPlan, now: int) -> list[tuple[str, HeldBack]]:
        """Which steps of a DAG failed a moment ago and are tried again later."""
        found = ((step, self._owner.quarantine.held_back((step, plan.dag_id), now)) for step in (SCHEDULE, BACKFILL, ASSETS))
        return [(step, held) for step, held in found if held is not None]

    def look_at(self, dag_id: str) -> None:
        """Something happened to this DAG."""
        self._looked_at[dag_id] = None

    def decide(self, now: int) -> None:
        """Look at DAGs while the transaction has room. Whatever one of them throws stays with it."""
        while self._looked_at and self._owner.room():
            dag_id = next(iter(self._looked_at))
            del self._looked_at[dag_id]
            try:
                self._schedule(dag_id, now)
            except Exception as error:
                if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                    raise
                log.exception("a DAG cannot be scheduled; it is tried again later", dag_id=dag_id)
                self._owner.timers.add(self._owner.quarantine.failed(dag_id, now), dag_id)

    def _schedule(self, dag_id: str, now: int) -> None:
        """Create the runs of a DAG that are due, and start those that may start."""
        owner = self._owner
        entry = owner.dags.get(dag_id)
        if entry is None:
            return
        self._make_due_runs(entry, now)
        while owner.room() and (row := owner.places.next_run(entry, now)) is not None:
            self.dequeue(row.id)
            entry.running.add(row.id)
            owner.guarded(row.id, lambda row=row: owner.runs.begin(row, now))  # type: ignore[misc]
        if entry.waiting and (active_run := owner.places.run_to_requeue(entry, now)) is not None:
            active_run.state = RunState.QUEUED  # its place is free when that is committed
            owner.touch(active_run)
        elif entry.waiting and (moment := owner.places.requeue_moment(entry, now)) is not None:
            owner.timers.add(moment, dag_id)
        if not owner.room():
            self.look_at(dag_id)
        if entry.told is not None and entry.told.until is not None and entry.told.until <= now:
            entry.told = None
            plan_next(entry, now)
        again = owner.timetables.consult(entry, now)
        if again is not None:
            owner.timers.add(again, dag_id)
        if entry.backfill is not None:
            self._backfilled[dag_id] = None
        owner.assets.look_at(entry.plan)
        for run in sorted(run for run in entry.wants_rows & entry.waiting.keys() if run not in self._wanted):
            if owner.quarantine.held_back((ROWS, run), now) is None:
                self._wanted[run] = dag_id
        self._wake_for(entry, now)

    def _make_due_runs(self, entry: DagEntry, now: int) -> None:
        """The runs that the schedule makes now, unless the last one was refused a moment ago."""
        owner, dag_id = self._owner, entry.plan.dag_id
        if owner.quarantine.held_back((SCHEDULE, dag_id), now) is not None:
            return
        if owner.quarantine.release((SCHEDULE, dag_id)):
            self._plan(entry, now)
        while owner.room() and (due := take_due(entry, now, self._new_of.get(dag_id, 0))) is not None:
            self._new.append(due)
            self._new_of[dag_id] = self._new_of.get(dag_id, 0) + 1
            self._positions.pop(dag_id, None)  # one that waits for its turn would take the schedule back to before this run
            definition = self._definition(due.run.version)
            owner.rows += 1 + min(len(definition.tasks) if definition is not None else 0, CREATED_WITH_RUN)

    def _definition(self, version: int) -> DagDefinition | None:
        """None: it has given way to another one."""
        try:
            return self._owner.store.definition(version)
        except NotFound:
            return None

    def _wake_for(self, entry: DagEntry, now: int) -> None:
        """Look at this DAG again when its next run is due, or its oldest queued one."""
        moments = [m for m in (entry.next.run_after if entry.next else None, entry.next_wait()) if m is not None and m > now]
        if entry.told is not None and entry.told.until is not None:
            moments.append(entry.told.until)
        if not entry.open:
            moments.clear()
        wanted = [
            *((step, entry.plan.dag_id) for step in (SCHEDULE, BACKFILL, ASSETS)),
            *((ROWS, run) for run in entry.wants_rows),
        ]
        moments += [held.until for what in wanted if (held := self._owner.quarantine.held_back(what, now)) is not None]
        if moments:
            self._owner.timers.add(min(moments), entry.plan.dag_id)

    def enqueue(self, entry: DagEntry, row: RunRow) -> None:
        """A queued run waits, and is the past of runs with a later date."""
        known = row.id in entry.waiting
        entry.enqueue(row)
        self._queued[row.id] = row.dag_id
        if row.rows_created < row.task_count:
            self._wanted.setdefault(row.id, row.dag_id)
        if not known:
            definition = self._definition(row.version)
            if definition is not None and (definition.slas or definition.deadlines):
                self._owner.callbacks.ring()  # they are among the posts, and the first may be due soon
            self._owner.past.appeared(row, self._owner.active_runs_by_id, self._owner.push_event)

    def _entry_of(self, run: int) -> DagEntry | None:
        """Where a queued run waits."""
        return self._owner.dags.get(self._queued.get(run, ""))

    def queued(self, run: int) -> RunRow | None:
        """A queued run."""
        entry = self._entry_of(run)
        return None if entry is None else entry.waiting.get(run)

    def dequeue(self, run: int) -> None:
        """A run is not queued any more. Where it was not, nothing happens."""
        entry = self._entry_of(run)
        self._queued.pop(run, None)
        if entry is not None:
            entry.dequeue(run)

    def noted(self, run: int, note: str | None) -> None:
        """A person wrote a note on a run, which may be queued."""
        entry, row = self._entry_of(run), self.queued(run)
        if entry is not None and row is not None:
            entry.waiting[run] = row._replace(note=note)

    # --- committing ---------------------------------------------------------------------------------------------------

    def share(self, most_positions: int) -> Share:
        """What is to be written now. New runs are handed over once: what fails is decided anew."""
        new, self._new = self._new, []
        self._new_of.clear()
        positions = {dag_id: self._positions[dag_id] for dag_id in islice(self._positions, most_positions)}
        return Share(new, positions, next(iter(self._wanted), None))

    def written(self, share: Share, written: Written, now: int) -> None:
        """It was, besides what the store refused: that is tried again later, from where the store stands.

        Raises:
            StoreError: what was refused cannot be read anew.
        """
        committed = written.committed
        for dag_id in share.positions:
            del self._positions[dag_id]
        self.created(committed.created)
        for dag_id in sorted(committed.consumers & self._owner.dags.keys()):
            self._owner.assets.look_at(self._owner.dags[dag_id].plan)
        for run, have in committed.rows_created.items():
            self._rows_created(run, have)
        for run, why in written.rows.items():
            self._owner.quarantine.hold_back((ROWS, run), why, now)
            self.look_at(self._wanted.pop(run))
        for dag_id, why in written.schedules.items():
            self._owner.quarantine.hold_back((SCHEDULE, dag_id), why, now)
            self._reload_runs(dag_id)
        for dag_id in sorted(committed.moved):
            log.warning("the schedule of a DAG stands elsewhere than expected; it is read anew", dag_id=dag_id)
            self._reload_runs(dag_id)

    def created(self, rows: list[RunRow]) -> None:
        """Runs that are new in the store."""
        owner = self._owner
        for row in rows:
            owner.guarded(row.id, partial(self._created, row))
            self.look_at(row.dag_id)

    def _created(self, row: RunRow) -> None:
        owner = self._owner
        entry = owner.dags.get(row.dag_id)
        if entry is not None and row.state is RunState.QUEUED and row.id not in entry.running:
            self.enqueue(entry, row)
            owner.notify(Notice("run", row.dag_id, row.run_id, row.state.value, at=row.queued_at))
        if owner.waits.watches:
            owner.waits.run_changed(row.dag_id, row.logical_date, row.run_id)

    def _rows_created(self, run: int, have: int) -> None:
        """A part of a huge run's rows was written; the next one waits for its turn behind other huge runs."""
        dag_id = self._wanted.pop(run)
        entry = self._owner.dags.get(dag_id)
        row = entry.waiting.get(run) if entry is not None else None
        if entry is None or row is None or not have:
            return
        if have >= row.task_count:
            entry.wants_rows.discard(run)
            entry.waiting[run] = row._replace(rows_created=have)
            self.look_at(dag_id)
        else:
            self._wanted[run] = dag_id

    # --- after a commit: steps that write transactions of their own ---------------------------------------------------

    def advance_backfills(self) -> None:
        """One bounded step of the backfills that something happened to; whatever one throws stays with it."""
        owner = self._owner
        for dag_id in list(self._backfilled):
            if owner.paused or owner.superseded:
                return
            del self._backfilled[dag_id]
            entry = owner.dags.get(dag_id)
            if entry is not None and entry.backfill is not None and not entry.backfill.is_paused and entry.open:
                self._advance(BACKFILL, dag_id, partial(self._advance_backfill, entry, entry.backfill))

    def _advance_backfill(self, entry: DagEntry, backfill: BackfillRow) -> None:
        changed, row = self._book.advance(entry.plan, backfill, self._owner.clock.wall())
        entry.backfill = row
        for run in changed:
            self._owner.runs.refresh(run)
        if row != backfill:
            self.look_at(entry.plan.dag_id)

    def advance_assets(self) -> None:
        """The runs of DAGs whose assets were updated; whatever one throws stays with it."""
        owner = self._owner
        for dag_id in list(owner.assets.wanted):
            if owner.paused or owner.superseded:
                return
            del owner.assets.wanted[dag_id]
            entry = owner.dags.get(dag_id)
            if entry is not None:
                self._advance(ASSETS, dag_id, partial(self._advance_assets, entry))

    def _advance_assets(self, entry: DagEntry) -> None:
        row = self._owner.assets.advance(entry, self._owner.clock.wall())
        if row is not None:
            self.created([row])

    def _advance(self, what: str, dag_id: str, step: Callable[[], None]) -> None:
        """One step that writes a transaction of its own. One that failed is held back: it is tried again after its wait."""
        owner, key, now = self._owner, (what, dag_id), self._owner.clock.wall()
        held = owner.quarantine.held_back(key, now)
        if held is not None:
            owner.timers.add(held.until, dag_id)
            return
        owner.quarantine.release(key)
        try:
            step()
        except Stale as error:
            owner.stop_superseded(error)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                owner.commit_failed(error, [])
                return
            log.exception("a DAG's step cannot be taken; it is tried again later", what=what, dag_id=dag_id)
            owner.timers.add(owner.quarantine.hold_back(key, f"{type(error).__name__}: {error}", now), dag_id)


def _lasting(plan: DagPlan) -> DagPlan:
    """A plan without what moves by itself."""
    return plan._replace(last=None, parse_duration=0)
