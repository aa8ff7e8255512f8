"""Backfills: runs for a span of the past, created a few at a time.

A backfill has a plan (the schedule's runs between two dates), a limit of unfinished runs, and a rule for dates that already have a
run. The scheduler handles the planned runs in order: whenever a run of the backfill ends, the next one is created, run
again, or skipped with a reason. So a backfill of ten years does not fill the queue; it can be paused or cancelled between any
two runs, and it continues after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    CustomSchedule,
    NoSchedule,
    OnceSchedule,
    PlannedRuns,
    Schedule,
    decode_plan,
)
from tradewind.model.errors import Conflict, NoDates
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import BackfillOutcome, BackfillRow, DagPlan, NewRun, RunRow
from tradewind.model.states import RunState, RunType
from tradewind.scheduler.dags.schedule import text_for_run_id
from tradewind.scheduler.epoch import must_be_newest
from tradewind.store.port import RowReader, Store
from tradewind.timetables import Bounds, RunTimes, next_run
from tradewind.timetables.runs import partitions_between

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


class Span(NamedTuple):
    """The dates of a backfill in microseconds: logical dates, or partition dates of a DAG with partitions. Both are included."""

    start: int
    end: int
    now: int
    """When the backfill was created. Runs that were not due then are left out."""


def plan_runs(schedule: Schedule | PlannedRuns, span: Span, backwards: bool) -> list[RunTimes]:
    """Return the runs of a schedule for the dates of a span, in the order in which they are handled.

    Raises:
        NoDates: this kind of schedule has no planned runs.
        Conflict: there are too many, or the runs of a custom timetable are not known.
    """
    if isinstance(schedule, NoSchedule | OnceSchedule | ContinuousSchedule):
        raise NoDates(english(phrase("error_no_fixed_dates")))
    if isinstance(schedule, CustomSchedule):
        raise Conflict(f"only the code of the timetable {schedule.name} knows its runs")
    found: list[RunTimes] = []
    for times in _runs_of(schedule, span):
        if times.run_after <= span.now and (times.end is None or times.end <= span.now):
            found.append(times)
        if len(found) > PLANNED_MAX:
            raise Conflict(english(phrase("error_backfill_many", most=f"{PLANNED_MAX:,}")))
    return found[::-1] if backwards else found


def _runs_of(schedule: Schedule | PlannedRuns, span: Span) -> Iterator[RunTimes]:
    if isinstance(schedule, PlannedRuns):
        yield from (RunTimes(*fields) for fields in schedule.runs)
        return
    if isinstance(schedule, CronSchedule) and schedule.partition is not None:
        yield from partitions_between(schedule, schedule.partition, span.start, span.end)
        return
    last: RunTimes | None = None
    while True:
        times = next_run(schedule, last, Bounds(span.start, span.end, True), span.end)
        if times is None or times == last or times.logical_date is None or times.logical_date > span.end:
            return
        yield times
        last = times


def turn_of(store: RowReader, dag_id: str, times: RunTimes, behavior: str) -> Turn:
    """Return how a planned run is to be treated now.

    Args:
        behavior: Airflow's reprocess behavior: `none`, `failed` or `completed`.
    """
    existing = _existing_run(store, dag_id, times)
    if existing is None:
        return Turn(times, NEW, None)
    if existing.state in (RunState.QUEUED, RunState.RUNNING):
        return Turn(times, "skipped: its run is queued or running", existing)
    if behavior == "completed" or (behavior == "failed" and existing.state is RunState.FAILED):
        return Turn(times, RERUN, existing)
    return Turn(times, f"skipped: its run exists ({existing.state.value})", existing)


def _existing_run(store: RowReader, dag_id: str, times: RunTimes) -> RunRow | None:
    """Return the run that exists for a planned run: the newest one with its partition date, or the one with its logical date."""
    if times.logical_date is not None:
        found = store.previous_run(dag_id, times.logical_date + 1, scheduled_only=False)
        return found if found is not None and found.logical_date == times.logical_date else None
    return store.run_of_partition(dag_id, _date(times))


def _date(times: RunTimes) -> int:
    """Return the date of a planned run: its logical date, or its partition date."""
    if times.logical_date is not None:
        return times.logical_date
    return times.run_after if times.partition_date is None else times.partition_date


def backfill_run_id(times: RunTimes, number: int) -> str:
    """Return the run id in the form of Airflow 3: the moment from which a scheduled run would have started.

    The id of a run with a partition key ends with the number of its backfill, because a later backfill may repeat the partition in
    another run. A custom timetable may give another id.
    """
    if times.run_id is not None:
        return times.run_id
    text = f"backfill__{(iso(times.run_after) or '').replace('Z', '+00:00')}"
    return text if times.partition_key is None else f"{text}__{text_for_run_id(times.partition_key)}__{number}"


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
                date, key = _date(one), one.partition_key
                store.record_backfill_outcome(row.id, BackfillOutcome(ordinal, date, run_id, outcome, key))
                row = row._replace(handled=ordinal)
            ended = row.handled >= len(times) and not active
            if ended:
                store.complete_backfill(row.id, now)
                self._plans.pop(row.id, None)
        return changed, None if ended else row

    def _plan(self, row: BackfillRow) -> list[RunTimes]:
        found = self._plans.get(row.id)
        if found is None:
            span = Span(row.from_date, row.to_date, row.created_at)
            found = self._plans[row.id] = plan_runs(decode_plan(row.schedule), span, row.run_backwards)
        return found

    def _take(self, plan: DagPlan, row: BackfillRow, turn: Turn, now: int) -> tuple[str, RunRow | None]:
        """Create or clear the run. As in Airflow, a partition is repeated in a new run, and the earlier run stays as it is."""
        store, times = self._store, turn.times
        if turn.outcome == RERUN and turn.existing is not None and times.partition_key is None:
            run = turn.existing
            everything = [task.task_id for task in store.definition(run.version).tasks]
            slots = [slot for slot, *_ in store.clearable(run, everything)]
            # in this order: the clear then creates the deadlines of a backfill's run, which has no sla
            store.move_run_to_backfill(run.id, row.id, row.conf if row.conf is not None else run.conf, row.created_by)
            latest = row.run_on_latest_version
            if latest is None:
                latest = store.definition(plan.version).rerun_with_latest_version is not False
            return RERUN, store.clear(run.id, slots, row.created_by, now, f"backfill {row.id}", to_latest=latest)
        if turn.outcome not in (NEW, RERUN):
            return turn.outcome, None
        new = NewRun(
            row.dag_id,
            backfill_run_id(times, row.id),
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
            return turn.outcome, store.create_run(new)
        except Conflict as error:  # another run has this id
            return f"skipped: {error}", None
