"""When each DAG's next run is due, and which of its runs wait or run.

One entry a DAG, a few hundred bytes: definitions stay in the store. Planning is pure: `timetables.next_run` over what the entry
holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from tradewind.model.definition import (
    CronSchedule,
    CustomSchedule,
    DeltaSchedule,
    EventsSchedule,
    Schedule,
    decode_schedule,
)
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import iso
from tradewind.model.rows import BackfillRow, DagPlan, NewRun, RunRow, ScheduledRun, SchedulePosition, Skipped
from tradewind.model.states import RunType
from tradewind.observe.log import Log
from tradewind.timetables import Bounds, RunTimes, next_run

log = Log("schedule")


class Question(NamedTuple):
    """Everything that the next run of a DAG with a custom timetable depends on."""

    schedule: bytes
    last: tuple[int | None, int | None, int | None, int] | None
    earliest: int | None
    latest: int | None
    catchup: bool


class Told(NamedTuple):
    """A custom timetable's answer. `until`: ask again then."""

    question: Question
    times: RunTimes | None
    until: int | None


class DagEntry:
    """One DAG."""

    __slots__ = (
        "backfill",
        "backfill_queue",
        "dates",
        "due_queue",
        "next",
        "of_backfills",
        "plan",
        "running",
        "told",
        "waiting",
        "waiting_backfills",
        "wants",
        "wants_rows",
    )

    def __init__(self, plan: DagPlan) -> None:
        self.plan = plan
        self.next: RunTimes | None = None
        self.wants: Question | None = None
        """What a custom timetable has to be asked before `next` is known (see `timetable_desk`)."""
        self.told: Told | None = None
        """What it answered last."""
        self.running: set[int] = set()
        self.due_queue: list[tuple[int, int]] = []
        """Heap of (run_after, run) of queued runs."""
        self.waiting: dict[int, RunRow] = {}
        """The queued runs, by number. `enqueue` and `dequeue` change which there are."""
        self.waiting_backfills = 0
        """How many of them are of backfills."""
        self.wants_rows: set[int] = set()
        """Queued runs whose task-instance rows are still being written."""
        self.backfill: BackfillRow | None = None
        """The backfill under way."""
        self.backfill_queue: list[tuple[int, int]] = []
        """Heap of (queued_at, run) of queued runs of backfills: they take no place among max_active_runs."""
        self.dates: list[tuple[int, int]] = []
        """Heap of (logical date, run) of queued runs."""
        self.of_backfills: set[int] = set()
        """Runs of backfills, as far as they are unfinished; some that have ended may still be among them."""

    @property
    def open(self) -> bool:
        """May its runs start and its schedule go on?"""
        return self.plan.is_active and not self.plan.is_paused

    @property
    def full(self) -> bool:
        """Do as many of its runs run as may, backfills aside?"""
        return len(self.running) - self.backfilling >= self.plan.max_active_runs

    @property
    def backfilling(self) -> int:
        """How many runs of backfills are running."""
        return len(self.of_backfills & self.running) if self.of_backfills else 0

    @property
    def backfill_full(self) -> bool:
        """Do as many runs of backfills run as may? Those of an ended one, run again by hand, are bound as other runs are."""
        places = self.plan.max_active_runs if self.backfill is None else self.backfill.max_active_runs
        return self.backfilling >= places

    def note_kind(self, row: RunRow) -> None:
        """A run is unfinished: is it of a backfill?"""
        if row.run_type is RunType.BACKFILL:
            if len(self.of_backfills) > 2 * (len(self.running) + len(self.waiting)) + 64:
                self.of_backfills &= self.running | self.waiting.keys()
            self.of_backfills.add(row.id)

    def may_start(self, run: int, now: int) -> bool:
        """Is this queued run kept only by a limit of runs, and the order in which they begin?"""
        row = self.waiting.get(run)
        if row is None or not self.open or row.run_after > now or run in self.wants_rows:
            return False
        return row.run_type is not RunType.BACKFILL or not self.backfill_paused

    def is_full(self, of_backfill: bool) -> bool:
        """Do as many runs of this kind run as may?"""
        return self.backfill_full if of_backfill else self.full

    @property
    def backfill_paused(self) -> bool:
        return self.backfill is not None and self.backfill.is_paused

    @property
    def unfinished(self) -> int:
        """Queued and running runs, backfills aside."""
        return len(self.running) - self.backfilling + len(self.waiting) - self.waiting_backfills

    def enqueue(self, row: RunRow) -> None:
        """A queued run."""
        self.note_kind(row)
        if row.id not in self.waiting:
            if row.run_type is RunType.BACKFILL:
                self.waiting_backfills += 1
                heappush(self.backfill_queue, (row.queued_at, row.id))
            else:
                heappush(self.due_queue, (row.run_after, row.id))
            if row.logical_date is not None:
                heappush(self.dates, (row.logical_date, row.id))
        self.waiting[row.id] = row
        if row.rows_created < row.task_count:
            self.wants_rows.add(row.id)

    def dequeue(self, run: int) -> None:
        """A run is not queued any more."""
        row = self.waiting.pop(run, None)
        if row is not None and row.run_type is RunType.BACKFILL:
            self.waiting_backfills -= 1

    def in_turn(self, of_backfill: bool) -> Iterator[RunRow]:
        """The queued runs of one kind, in the order in which they are to begin."""
        queue = self.backfill_queue if of_backfill else self.due_queue
        while queue and queue[0][1] not in self.waiting:
            heappop(queue)
        if queue:
            yield self.waiting[queue[0][1]]
            for _, run in sorted(queue)[1:]:
                if run in self.waiting:
                    yield self.waiting[run]

    def earliest(self) -> int | None:
        """The first logical date among the queued runs."""
        while self.dates and self.dates[0][1] not in self.waiting:
            heappop(self.dates)
        return self.dates[0][0] if self.dates else None

    def next_wait(self) -> int | None:
        """The moment for which its oldest queued run waits."""
        while self.due_queue and self.due_queue[0][1] not in self.waiting:
            heappop(self.due_queue)
        return self.due_queue[0][0] if self.due_queue else None


def plan_next(entry: DagEntry, now: int) -> None:
    """Work out the next scheduled run of a DAG; a schedule that cannot be followed is logged and has none."""
    plan = entry.plan
    entry.next = entry.wants = None
    if not entry.open:
        entry.told = None
        return
    last = None if plan.last is None else RunTimes(*plan.last)
    try:
        schedule = schedule_of(plan)
        if isinstance(schedule, CustomSchedule):
            _plan_custom(entry, schedule, now)
            return
        entry.next = next_run(schedule, last, Bounds(plan.start_date, plan.end_date, plan.catchup), now)
    except (ScheduleError, ValueError, OverflowError) as error:
        log.error("the schedule of a DAG cannot be followed", dag_id=plan.dag_id, error=str(error))
    except Exception:
        log.exception("the schedule of a DAG cannot be followed", dag_id=plan.dag_id)


def _plan_custom(entry: DagEntry, schedule: CustomSchedule, now: int) -> None:
    """The next run where it is known, else the question."""
    plan = entry.plan
    if schedule.manual_only:
        return
    question = Question(plan.schedule, plan.last, plan.start_date, plan.end_date, plan.catchup)
    told = entry.told
    if told is not None and told.question == question and (told.until is None or now < told.until):
        entry.next = told.times
    else:
        entry.wants = question


def schedule_name(plan: DagPlan) -> str:
    """Name of a DAG's custom timetable."""
    schedule = schedule_of(plan)
    return schedule.name if isinstance(schedule, CustomSchedule) else type(schedule).__name__


def schedule_of(plan: DagPlan) -> Schedule:
    return decode_schedule(plan.schedule)


def take_due(entry: DagEntry, now: int, pending: int) -> ScheduledRun | None:
    """The scheduled run that is due now and allowed by max_active_runs; the entry moves on to the one after it.

    Args:
        pending: runs of this DAG that are being created and not among the unfinished ones yet.
    """
    times = entry.next
    if times is None or times.run_after > now or not entry.open:
        return None
    if entry.unfinished + pending >= entry.plan.max_active_runs:
        return None
    new = NewRun(
        dag_id=entry.plan.dag_id,
        run_id=scheduled_run_id(times),
        run_type=RunType.SCHEDULED,
        version=entry.plan.version,
        logical_date=times.logical_date,
        interval_start=times.start,
        interval_end=times.end,
        run_after=times.run_after,
        at=now,
        triggered_by="timetable",
    )
    skipped, before = _passed_over(entry.plan, times, now), entry.plan.last
    entry.plan = entry.plan._replace(last=times_of(times))
    plan_next(entry, now)
    plan = entry.plan
    return ScheduledRun(new, SchedulePosition(plan.dag_id, before, plan.last, times_of(entry.next), skipped))


def _passed_over(plan: DagPlan, times: RunTimes, now: int) -> Skipped | None:
    """Without catch-up a schedule jumps to its latest moment: what lies between the last run and this one is never made."""
    if plan.catchup or times.logical_date is None or (plan.last is None and plan.start_date is None):
        return None
    schedule = schedule_of(plan)
    if not isinstance(schedule, CronSchedule | DeltaSchedule | EventsSchedule):
        return None
    last = None if plan.last is None else RunTimes(*plan.last)
    first = next_run(schedule, last, Bounds(plan.start_date, plan.end_date, True), now)
    if first is None or first.logical_date is None or first.logical_date >= times.logical_date:
        return None
    return Skipped(first.logical_date, times.logical_date, SKIPPED_WITHOUT_CATCHUP, now)


SKIPPED_WITHOUT_CATCHUP = "catchup is off: of the moments that have passed only the latest has its run"


def times_of(times: RunTimes | None) -> tuple[int | None, int | None, int | None, int] | None:
    """As rows hold it."""
    return None if times is None else (times.logical_date, times.start, times.end, times.run_after)


def scheduled_run_id(times: RunTimes) -> str:
    """Deterministic: the same tick gives the same id (Airflow's form)."""
    moment = times.logical_date if times.logical_date is not None else times.run_after
    return f"scheduled__{(iso(moment) or '').replace('Z', '+00:00')}"
