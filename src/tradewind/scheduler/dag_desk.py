"""DAGs: their schedules, the runs that these make, and the queued runs that may begin."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tradewind.kernel.admission import UNLIMITED
from tradewind.model.definition import DagDefinition
from tradewind.model.errors import NotFound, Stale, StoreError, StoreRefused
from tradewind.model.states import RunState
from tradewind.observe.log import Log
from tradewind.scheduler.backfills import BackfillBook
from tradewind.scheduler.schedule_book import DagEntry, plan_next, take_due, times_of
from tradewind.store.nouns import Committed, DagPlan, NewRun, RunRow, SchedulePosition
from tradewind.wire.messages import Notice, TimetableTold

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler

log = Log("scheduler")
T = TypeVar("T")

CREATED_WITH_RUN = 2000
"""Task-instance rows that a store writes with a run; those of a huge one follow by and by."""


class Share(NamedTuple):
    """What schedules add to a transaction."""

    new: list[tuple[NewRun, SchedulePosition]]
    positions: dict[str, SchedulePosition]
    rows_of: int | None
    """The queued run of which more rows are written."""

    def __bool__(self) -> bool:
        return bool(self.new or self.positions or self.rows_of is not None)


class DagDesk:
    """See the module."""

    def __init__(self, owner: Scheduler) -> None:
        self._owner = owner
        self._book = BackfillBook(owner.store, owner.epoch, owner.config.batch_max_rows)
        self._looked_at: dict[str, None] = {}
        """DAGs whose runs have to be looked at, in turn: something started, ended or came due."""
        self._new: list[tuple[NewRun, SchedulePosition]] = []
        self._positions: dict[str, SchedulePosition] = {}
        """Schedules that moved without a run: shown to people as the next run."""
        self._wanted: dict[int, str] = {}
        """Queued runs with rows still to be written → their DAG, in turn."""
        self._backfilled: dict[str, None] = {}
        """DAGs whose backfill may give the next run its turn."""

    def clear(self) -> None:
        """All is read anew."""
        self._new.clear()
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
        for plan in owner.store.plans():
            owner.dags[plan.dag_id] = DagEntry(plan)
            self._open_or_close(plan.dag_id)
        for backfill in owner.store.backfills():
            if backfill.dag_id in owner.dags:
                owner.dags[backfill.dag_id].backfill = backfill
        for row in owner.store.active_runs():
            entry = owner.dags.get(row.dag_id)
            if row.state is RunState.QUEUED and entry is not None:
                self.enqueue(entry, row)
            elif row.state is RunState.RUNNING:
                owner.runs.bring_back(row)
        now = owner.clock.wall()
        for entry in owner.dags.values():
            self._plan(entry, now)

    def refresh(self, dag_id: str) -> None:
        """A DAG was parsed anew, paused, unpaused, deleted, or has a new run.

        Raises:
            StoreError: it cannot be read.
        """
        owner = self._owner
        plan = owner.store.dag(dag_id)
        if plan is None:
            owner.waits.notice_all()
            if owner.dags.pop(dag_id, None) is not None:  # deleted, with all its runs
                self._positions.pop(dag_id, None)
                owner.admission.set_capacity(("dag", dag_id, 0), None)
            return
        entry = owner.dags.get(dag_id)
        if entry is None:
            entry = owner.dags[dag_id] = DagEntry(plan)
        elif entry.plan.file != plan.file:
            owner.timetables.pardon(entry.plan, owner.clock.wall(), custom=False)
        entry.plan = plan
        entry.backfill = next(iter(owner.store.backfills(dag_id)), None)
        for row in owner.store.active_runs(dag_id):
            if row.state is RunState.QUEUED and row.id not in entry.running:
                self.enqueue(entry, row)
        self._open_or_close(dag_id)
        self._plan(entry, owner.clock.wall())

    def look_again(self) -> int:
        """Does memory stand as the store does? What differs is read anew; how many DAGs and backfills did."""
        owner, found, plans = self._owner, 0, self._owner.store.plans()
        for dag_id in sorted(owner.dags.keys() - {plan.dag_id for plan in plans}):
            self.refresh(dag_id)
            found += 1
        for plan in plans:
            entry = owner.dags.get(plan.dag_id)
            if entry is None or _lasting(entry.plan) != _lasting(plan):
                self.refresh(plan.dag_id)
                found += 1
        for backfill in owner.store.backfills():
            entry = owner.dags.get(backfill.dag_id)
            if entry is not None and (
                entry.backfill is None or entry.backfill._replace(handled=0) != backfill._replace(handled=0)
            ):
                self.refresh(backfill.dag_id)
                found += 1
            self.look_at(backfill.dag_id)
        for entry in owner.dags.values():
            owner.assets.look_at(entry.plan)
        return found

    def _open_or_close(self, dag_id: str) -> None:
        """A paused DAG's tasks are not admitted."""
        entry = self._owner.dags[dag_id]
        self._owner.admission.set_capacity(("dag", dag_id, 0), UNLIMITED if not entry.plan.is_paused else 0)

    def _plan(self, entry: DagEntry, now: int) -> None:
        """Its next run may be another one."""
        plan_next(entry, now)
        dag_id = entry.plan.dag_id
        if entry.wants is None and entry.told is None:
            self._owner.timetables.pardon(entry.plan, now, custom=False)
        if entry.wants is None:  # else what is shown stays until the timetable has answered
            self._positions[dag_id] = SchedulePosition(dag_id, entry.plan.last, times_of(entry.next))
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
        desk.pardon(entry.plan, now, custom=entry.wants is not None)
        self.look_at(dag_id)

    def timetable_told(self, told: TimetableTold) -> None:
        """A custom timetable has answered, or could not."""
        now = self._owner.clock.wall()
        entry = self._owner.timetables.take(told, self._owner.dags, now)
        if entry is not None:
            self._plan(entry, now)

    # --- deciding -----------------------------------------------------------------------------------------------------

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
        pending = sum(1 for new, _ in self._new if new.dag_id == dag_id)
        while owner.room() and (due := take_due(entry, now, pending)) is not None:
            self._new.append(due)
            self._positions.pop(dag_id, None)  # one that waits for its turn would take the schedule back to before this run
            definition = self._definition(due[0].version)
            owner.rows += 1 + min(len(definition.tasks) if definition is not None else 0, CREATED_WITH_RUN)
            pending += 1
        while owner.room() and (row := owner.places.next_run(entry, now)) is not None:
            del entry.waiting[row.id]
            entry.running.add(row.id)
            owner.guarded(row.id, lambda row=row: owner.runs.begin(row, now))  # type: ignore[misc]
        if entry.waiting and (box := owner.places.gives_way(entry, now)) is not None:
            box.state = RunState.QUEUED  # its place is free when that is committed
            owner.touch(box)
        elif entry.waiting and (moment := owner.places.gives_way_at(entry, now)) is not None:
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
        self._wake_for(entry, now)

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
        if moments and entry.open:
            self._owner.timers.add(min(moments), entry.plan.dag_id)

    def enqueue(self, entry: DagEntry, row: RunRow) -> None:
        """A queued run waits, and is the past of runs with a later date."""
        known = row.id in entry.waiting
        entry.enqueue(row)
        if row.rows_created < row.task_count:
            self._wanted.setdefault(row.id, row.dag_id)
        if not known:
            definition = self._definition(row.version)
            if definition is not None and (definition.slas or definition.deadlines):
                self._owner.callbacks.ring()  # they are among the posts, and the first may be due soon
            self._owner.past.appeared(row, self._owner.boxes, self._owner.push_event)

    # --- committing ---------------------------------------------------------------------------------------------------

    def share(self, most_positions: int) -> Share:
        """What is to be written now. New runs are handed over once: what fails is decided anew."""
        new, self._new = self._new, []
        positions = {dag_id: self._positions[dag_id] for dag_id in islice(self._positions, most_positions)}
        return Share(new, positions, next(iter(self._wanted), None))

    def written(self, share: Share, committed: Committed) -> None:
        """It was."""
        for dag_id in share.positions:
            del self._positions[dag_id]
        self.created(committed.created)
        for dag_id in sorted(committed.consumers & self._owner.dags.keys()):
            self._owner.assets.look_at(self._owner.dags[dag_id].plan)
        for run, have in committed.rows_created.items():
            self._rows_created(run, have)

    def created(self, rows: list[RunRow]) -> None:
        """Runs that are new in the store."""
        owner = self._owner
        for row in rows:
            entry = owner.dags.get(row.dag_id)
            if entry is not None and row.state is RunState.QUEUED and row.id not in entry.running:
                self.enqueue(entry, row)
                owner.notify(Notice("run", row.dag_id, row.run_id, row.state.value, at=row.queued_at))
            if owner.waits.watches:
                owner.waits.run_changed(row.dag_id, row.logical_date, row.run_id)
            self.look_at(row.dag_id)

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
            entry, now = owner.dags.get(dag_id), owner.clock.wall()
            if entry is None or entry.backfill is None or entry.backfill.is_paused or not entry.open:
                continue
            step = partial(self._book.advance, entry.plan, entry.backfill, now)
            done = self._advance("backfill", dag_id, step)
            if done is None:
                continue
            changed, row = done
            moved, entry.backfill = row != entry.backfill, row
            for run in changed:
                owner.runs.refresh(run)
            if moved:
                self.look_at(dag_id)

    def advance_assets(self) -> None:
        """The runs of DAGs whose assets were updated; whatever one throws stays with it."""
        owner = self._owner
        for dag_id in list(owner.assets.wanted):
            if owner.paused or owner.superseded:
                return
            del owner.assets.wanted[dag_id]
            entry, now = owner.dags.get(dag_id), owner.clock.wall()
            row = self._advance("assets", dag_id, partial(owner.assets.advance, entry, now)) if entry is not None else None
            if row is not None:
                self.created([row])

    def _advance(self, what: str, dag_id: str, step: Callable[[], T]) -> T | None:
        """One step that writes a transaction of its own. None when it failed: whether others may go on, the loop's head asks."""
        owner = self._owner
        try:
            return step()
        except Stale as error:
            owner.stop_superseded(error)
        except StoreError as error:
            owner.commit_failed(error, [])
        except Exception:
            log.exception("a DAG's step cannot be taken; it is tried again later", what=what, dag_id=dag_id)
            owner.timers.add(owner.quarantine.failed((what, dag_id), owner.clock.wall()), dag_id)
        return None


def _lasting(plan: DagPlan) -> DagPlan:
    """A plan without what moves by itself."""
    return plan._replace(last=None, parse_duration=0)
