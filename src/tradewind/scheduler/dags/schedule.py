"""The time when the next run of each DAG is due, and which of its runs are queued or running.

There is one entry per DAG, a few hundred bytes: definitions stay in the store. `timetables.next_run` computes the next run
from the entry.
"""

from __future__ import annotations

import re
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


class Reply(NamedTuple):
    """The answer of a custom timetable."""

    question: Question
    times: RunTimes | None
    """The next run; None: there is none."""
    until: int | None
    """The answer is valid until this moment; None: as long as the question stays the same."""


class DagEntry:
    """One DAG: its schedule, and its queued and running runs."""

    __slots__ = (
        "backfill",
        "backfill_queue",
        "dates",
        "due_queue",
        "incomplete",
        "next",
        "of_backfills",
        "plan",
        "question",
        "reply",
        "running",
        "waiting",
        "waiting_backfills",
    )

    def __init__(self, plan: DagPlan) -> None:
        self.plan = plan
        self.next: RunTimes | None = None
        self.question: Question | None = None
        """The question for a custom timetable, if `next` is not known yet (see `custom_timetables`)."""
        self.reply: Reply | None = None
        """The last answer of the custom timetable."""
        self.running: set[int] = set()
        self.due_queue: list[tuple[int, int]] = []
        """Heap of (run_after, run) of queued runs."""
        self.waiting: dict[int, RunRow] = {}
        """The queued runs, by number. Only `enqueue` and `dequeue` add and remove runs."""
        self.waiting_backfills = 0
        """Number of queued runs that belong to backfills."""
        self.incomplete: set[int] = set()
        """Queued runs whose task-instance rows are still being created."""
        self.backfill: BackfillRow | None = None
        """The unfinished backfill of the DAG."""
        self.backfill_queue: list[tuple[int, int]] = []
        """Heap of (queued_at, run) of queued runs of backfills, which do not count for max_active_runs."""
        self.dates: list[tuple[int, int]] = []
        """Heap of (logical date, run) of queued runs."""
        self.of_backfills: set[int] = set()
        """The unfinished runs of backfills; some of them may have ended already."""

    @property
    def is_open(self) -> bool:
        """Whether runs of the DAG may be created and started: it is active and not paused."""
        return self.plan.is_active and not self.plan.is_paused

    @property
    def is_full(self) -> bool:
        """Whether max_active_runs is reached, not counting runs of backfills."""
        return len(self.running) - self.running_backfills >= self.plan.max_active_runs

    @property
    def running_backfills(self) -> int:
        """Number of running runs of backfills."""
        return len(self.of_backfills & self.running) if self.of_backfills else 0

    @property
    def is_backfill_full(self) -> bool:
        """Whether the backfill's max_active_runs is reached; without a backfill (its run was cleared later), the DAG's."""
        most = self.plan.max_active_runs if self.backfill is None else self.backfill.max_active_runs
        return self.running_backfills >= most

    def remember_backfill(self, row: RunRow) -> None:
        """Remember an unfinished run, if it belongs to a backfill."""
        if row.run_type is RunType.BACKFILL:
            if len(self.of_backfills) > 2 * (len(self.running) + len(self.waiting)) + 64:
                self.of_backfills &= self.running | self.waiting.keys()
            self.of_backfills.add(row.id)

    def may_start(self, run: int, now: int) -> bool:
        """Return whether only the limit of running runs, and their order, can keep this queued run from starting."""
        row = self.waiting.get(run)
        if row is None or not self.is_open or row.run_after > now or run in self.incomplete:
            return False
        return row.run_type is not RunType.BACKFILL or not self.backfill_paused

    def is_kind_full(self, backfill: bool) -> bool:
        """Return whether the limit of running runs of this kind is reached."""
        return self.is_backfill_full if backfill else self.is_full

    @property
    def backfill_paused(self) -> bool:
        return self.backfill is not None and self.backfill.is_paused

    @property
    def unfinished(self) -> int:
        """Number of queued or running runs, not counting runs of backfills."""
        return len(self.running) - self.running_backfills + len(self.waiting) - self.waiting_backfills

    def enqueue(self, row: RunRow) -> None:
        """Add a queued run, or replace its row."""
        self.remember_backfill(row)
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
            self.incomplete.add(row.id)

    def dequeue(self, run: int) -> None:
        """Remove a run that is not queued any more."""
        row = self.waiting.pop(run, None)
        if row is not None and row.run_type is RunType.BACKFILL:
            self.waiting_backfills -= 1

    def start_order(self, backfill: bool) -> Iterator[RunRow]:
        """Yield the queued runs of one kind, in the order in which they start."""
        queue = self.backfill_queue if backfill else self.due_queue
        while queue and queue[0][1] not in self.waiting:
            heappop(queue)
        if queue:
            yield self.waiting[queue[0][1]]
            for _, run in sorted(queue)[1:]:
                if run in self.waiting:
                    yield self.waiting[run]

    def earliest_date(self) -> int | None:
        """Return the earliest logical date of a queued run."""
        while self.dates and self.dates[0][1] not in self.waiting:
            heappop(self.dates)
        return self.dates[0][0] if self.dates else None

    def next_due(self) -> int | None:
        """Return the earliest `run_after` of a queued run."""
        while self.due_queue and self.due_queue[0][1] not in self.waiting:
            heappop(self.due_queue)
        return self.due_queue[0][0] if self.due_queue else None


def plan_next(entry: DagEntry, now: int) -> None:
    """Compute the next scheduled run of a DAG. If its schedule fails, the error is logged and there is no next run."""
    plan = entry.plan
    entry.next = entry.question = None
    if not entry.is_open:
        entry.reply = None
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
    """Set the next run if the last answer is valid, otherwise the question for the timetable."""
    plan = entry.plan
    if schedule.manual_only:
        return
    question = Question(plan.schedule, plan.last, plan.start_date, plan.end_date, plan.catchup)
    reply = entry.reply
    if reply is not None and reply.question == question and (reply.until is None or now < reply.until):
        entry.next = reply.times
    else:
        entry.question = question


def schedule_name(plan: DagPlan) -> str:
    """Return the name of a DAG's custom timetable."""
    schedule = schedule_of(plan)
    return schedule.name if isinstance(schedule, CustomSchedule) else type(schedule).__name__


def schedule_of(plan: DagPlan) -> Schedule:
    return decode_schedule(plan.schedule)


def take_due(entry: DagEntry, now: int, pending: int) -> ScheduledRun | None:
    """Return the scheduled run that is due now and allowed by max_active_runs, and plan the run after it.

    Args:
        pending: number of runs of this DAG that are being created and not counted as unfinished yet.
    """
    times = entry.next
    if times is None or times.run_after > now or not entry.is_open:
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
        partition_key=times.partition_key,
        partition_date=times.partition_date,
    )
    skipped, before = _skipped_runs(entry.plan, times, now), entry.plan.last
    entry.plan = entry.plan._replace(last=times_of(times))
    plan_next(entry, now)
    plan = entry.plan
    return ScheduledRun(new, SchedulePosition(plan.dag_id, before, plan.last, times_of(entry.next), skipped))


def _skipped_runs(plan: DagPlan, times: RunTimes, now: int) -> Skipped | None:
    """Return the runs that are skipped: without catchup, a schedule jumps to its latest run."""
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


SKIPPED_WITHOUT_CATCHUP = "catchup is off: of the intervals that have passed only the latest gets a run"


def times_of(times: RunTimes | None) -> tuple[int | None, int | None, int | None, int] | None:
    """Return the times of a run in the form of rows."""
    return None if times is None else (times.logical_date, times.start, times.end, times.run_after)


_NOT_IN_RUN_IDS = re.compile(r"[^A-Za-z0-9_.~:+-]")


def scheduled_run_id(times: RunTimes) -> str:
    """Return the run id in the form of Airflow 3: the moment from which the run may start, which is the end of a data interval.

    The same moment of a schedule always gives the same id. A custom timetable may give another id.
    """
    if times.run_id is not None:
        return times.run_id
    text = f"scheduled__{(iso(times.run_after) or '').replace('Z', '+00:00')}"
    return text if times.partition_key is None else f"{text}__{text_for_run_id(times.partition_key)}"


def text_for_run_id(text: str) -> str:
    """Return a text with `_` in place of the characters that run ids cannot have."""
    return _NOT_IN_RUN_IDS.sub("_", text)
