"""Backfills: runs for a span of the past, created a few at a time.

A backfill has a plan (the schedule's runs between two dates), a limit of unfinished runs, and a rule for dates that already have a
run. The scheduler handles the planned runs in order: whenever a run of the backfill ends, the next one is created, run
again, or skipped with a reason. So a backfill of ten years does not fill the queue; it can be paused or cancelled between any
two runs, and it continues after a restart.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    CustomSchedule,
    NoSchedule,
    OnceSchedule,
    Schedule,
    decode_schedule,
)
from tradewind.model.errors import Conflict, NoDates
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import BackfillOutcome, BackfillRow, DagPlan, NewRun, RunRow
from tradewind.model.states import RunState, RunType
from tradewind.scheduler.epoch import must_be_newest
from tradewind.store.port import RowReader, Store
from tradewind.timetables import Bounds, RunTimes, next_run

REPROCESS = ("none", "failed", "completed")
PLANNED_MAX = 100_000
TURNS_AT_ONCE = 100
"""Maximum number of planned runs that one transaction handles."""

NEW, RERUN = "new", "rerun"


class Turn(NamedTuple):
    """The treatment of a planned run: `outcome` as in `BackfillOutcome`, and the run that already exists."""

    times: RunTimes
    outcome: str
    existing: RunRow | None


def plan_runs(schedule: Schedule, start: int, end: int, backwards: bool) -> list[RunTimes]:
    """Return the runs of a schedule whose logical date is in [start, end], in the order in which they are handled.

    Raises:
        Conflict: this kind of schedule has no planned runs, or there are too many.
    """
    if isinstance(schedule, NoSchedule | OnceSchedule | ContinuousSchedule):
        raise NoDates(english(phrase("error_no_fixed_dates")))
    if isinstance(schedule, CustomSchedule):
        raise Conflict(english(phrase("error_custom_timetable")))
    if isinstance(schedule, CronSchedule) and schedule.partition is not None:
        raise Conflict(english(phrase("error_backfill_partitions")))
    found: list[RunTimes] = []
    last: RunTimes | None = None
    while True:
        times = next_run(schedule, last, Bounds(start, end, True), end)
        if times is None or times == last or times.logical_date is None or times.logical_date > end:
            break
        found.append(times)
        last = times
        if len(found) > PLANNED_MAX:
            raise Conflict(english(phrase("error_backfill_many", most=f"{PLANNED_MAX:,}")))
    return found[::-1] if backwards else found


def turn_of(store: RowReader, dag_id: str, times: RunTimes, behavior: str) -> Turn:
    """Return how a planned run is to be treated now.

    Args:
        behavior: Airflow's reprocess behavior: `none`, `failed` or `completed`.
    """
    assert times.logical_date is not None
    existing = store.previous_run(dag_id, times.logical_date + 1, scheduled_only=False)
    if existing is None or existing.logical_date != times.logical_date:
        return Turn(times, NEW, None)
    if existing.state in (RunState.QUEUED, RunState.RUNNING):
        return Turn(times, "skipped: its run is queued or running", existing)
    if behavior == "completed" or (behavior == "failed" and existing.state is RunState.FAILED):
        return Turn(times, RERUN, existing)
    return Turn(times, f"skipped: its run exists ({existing.state.value})", existing)


def backfill_run_id(times: RunTimes) -> str:
    """Return the run id in the form of Airflow 3: the moment from which a scheduled run would have started."""
    return f"backfill__{(iso(times.run_after) or '').replace('Z', '+00:00')}"


class BackfillPlanner:
    """Advances backfills. Their plans are computed once and kept in memory."""

    def __init__(self, store: Store, epoch: int, most_rows: int) -> None:
        self._store = store
        self._epoch = epoch
        self._most_rows = most_rows
        self._plans: dict[int, list[RunTimes]] = {}

    def clear(self) -> None:
        self._plans.clear()

    def advance(self, plan: DagPlan, row: BackfillRow, now: int) -> tuple[set[int], BackfillRow | None]:
        """Handle the next planned runs of a backfill, in one transaction of bounded size.

        Returns:
            The runs that were created or cleared, and the new row of the backfill; None: the backfill has ended.

        Raises:
            StoreError, Stale: nothing was written.
        """
        store, changed, rows = self._store, set[int](), 0
        times = self._plan(row)
        size = max(1, len(store.definition(plan.version).tasks))
        with store.transaction():
            must_be_newest(store, self._epoch)
            current = store.backfill(row.id)  # memory may lack the last change of a person
            if current is None or current.completed_at is not None:
                return changed, None
            if current.is_paused:
                return changed, current
            row = current
            active = store.active_backfill_runs(row.dag_id, row.id)
            turns = times[row.handled : row.handled + TURNS_AT_ONCE]
            for ordinal, one in enumerate(turns, row.handled + 1):
                if active >= row.max_active_runs or (changed and rows + size > self._most_rows):
                    break
                turn = turn_of(store, row.dag_id, one, row.reprocess_behavior)
                outcome, run = self._take(plan, row, turn, now)
                if run is not None:
                    changed.add(run.id)
                    active += 1
                    rows += size
                run_id = run.run_id if run is not None else (turn.existing.run_id if turn.existing is not None else None)
                store.record_backfill_outcome(row.id, BackfillOutcome(ordinal, one.logical_date or 0, run_id, outcome))
                row = row._replace(handled=ordinal)
            ended = row.handled >= len(times) and not active
            if ended:
                store.complete_backfill(row.id, now)
                self._plans.pop(row.id, None)
        return changed, None if ended else row

    def _plan(self, row: BackfillRow) -> list[RunTimes]:
        found = self._plans.get(row.id)
        if found is None:
            schedule = decode_schedule(row.schedule)
            found = self._plans[row.id] = plan_runs(schedule, row.from_date, row.to_date, row.run_backwards)
        return found

    def _take(self, plan: DagPlan, row: BackfillRow, turn: Turn, now: int) -> tuple[str, RunRow | None]:
        store, times = self._store, turn.times
        if turn.outcome == RERUN and turn.existing is not None:
            run = turn.existing
            everything = [task.task_id for task in store.definition(run.version).tasks]
            slots = [slot for slot, *_ in store.clearable(run, everything)]
            # in this order: the clear then creates the deadlines of a backfill's run, which has no sla
            store.move_run_to_backfill(run.id, row.id, row.conf if row.conf is not None else run.conf, row.created_by)
            latest = store.definition(plan.version).rerun_with_latest_version is not False
            return RERUN, store.clear(run.id, slots, row.created_by, now, f"backfill {row.id}", to_latest=latest)
        if turn.outcome != NEW:
            return turn.outcome, None
        new = NewRun(
            row.dag_id,
            backfill_run_id(times),
            RunType.BACKFILL,
            plan.version,
            times.logical_date,
            times.start,
            times.end,
            times.run_after,
            now,
            "backfill",
            row.created_by,
            row.conf,
            backfill=row.id,
            partition_key=times.partition_key,
            partition_date=times.partition_date,
        )
        try:
            return NEW, store.create_run(new)
        except Conflict as error:  # another run has this id
            return f"skipped: {error}", None
