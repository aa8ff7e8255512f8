"""Why a run has not started, and why there is no run of a date: blockers outside of the run's tasks, for `why`.

A future run is explained by the same code that creates it: `schedule` and `timetables`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import NamedTuple

from tradewind.kernel.explain import Blocker
from tradewind.model.definition import (
    ContinuousSchedule,
    CustomSchedule,
    NoSchedule,
    OnceSchedule,
    Schedule,
)
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import shown_moment
from tradewind.model.phrases import english, phrase, recognised, then
from tradewind.model.rows import DagPlan, RunRow, Skipped
from tradewind.model.states import FINISHED_RUNS, RunState, RunType
from tradewind.scheduler.assets.answers import missing_assets
from tradewind.scheduler.assets.asset_index import assets_hold
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.dags.dag_registry import ASSETS, BACKFILL, ROWS, SCHEDULE
from tradewind.scheduler.dags.schedule import DagEntry, schedule_of
from tradewind.scheduler.quarantine import HeldBack
from tradewind.scheduler.runs.run_slots import RunSlots
from tradewind.store.port import RowReader
from tradewind.timetables import Bounds, RunTimes, next_run

RUN_SLOT_RULES = frozenset({"max_active_runs", "backfill_max_active_runs"})
"""Rules of blockers whose holders are runs."""

_RUN_REASONS = (
    "run_reason_success",
    "run_reason_fail_fast",
    "run_reason_root",
    "run_reason_task",
    "run_reason_deadlock",
    "run_reason_timeout",
)
"""Phrases of the reasons that the scheduler stores when a run ends."""

_START_RULES = RUN_SLOT_RULES | {"run_order", "previous_run"}

_OTHER_SCHEDULER = Blocker("other_scheduler", phrase("other_scheduler"), phrase("ends_other_scheduler"), by_hand=True)

_NOT_LOADED = Blocker("not_loaded", phrase("not_loaded"), phrase("ends_compared"))


class Ahead(NamedTuple):
    """The queued runs that start before a run."""

    number: int
    first: RunRow | None


def of_run(plan: DagPlan, row: RunRow, scheduler: Scheduler | None) -> list[Blocker]:
    """Return what keeps the whole run from starting or continuing."""
    if row.state in FINISHED_RUNS:
        state, at, why = row.state.value, shown_moment(row.ended_at), (row.reason or "").rstrip(".")
        reason = phrase("run_finished", state=state, at=at)
        if why:
            translatable = recognised(why, _RUN_REASONS)
            reason = phrase("run_finished_because", state=state, at=at, reason=translatable or why)
        command = f"tradewind dags clear {row.dag_id} --run-id {shlex.quote(row.run_id)}"
        return [Blocker("run_finished", reason, phrase("ends_cleared"), command=command, by_hand=True)]
    if row.state is RunState.RUNNING:
        if scheduler is None:
            return []
        if scheduler.is_quarantined(row.id):
            return [_quarantined(row.id, scheduler, starts=False)]
        if not scheduler.schedules.covers(plan):
            return [_OTHER_SCHEDULER]
        active_run = scheduler.active_runs_by_id.get(row.id)
        return [] if active_run is not None and active_run.row.revision == row.revision else [_NOT_LOADED]
    found: list[Blocker] = []
    if plan.is_paused:
        found.append(paused(plan))
    if not plan.is_active:
        found.append(inactive(plan))
    if scheduler is None:
        return found
    now = scheduler.clock.wall()
    if row.rows_created < row.task_count:
        reason = phrase("rows", created=row.rows_created, total=row.task_count)
        held = scheduler.quarantine.held_back((ROWS, row.id), now)
        if held is not None:
            refused = phrase("rows_refused", problem=held.why.rstrip("."), at=shown_moment(held.until))
            reason = then(reason, refused)
        found.append(Blocker("rows", reason, phrase("ends_rows")))
    if row.run_after > now:
        at = shown_moment(row.run_after)
        found.append(Blocker("run_after", phrase("run_after", at=at), phrase("ends_at", at=at), row.run_after))
    if scheduler.is_quarantined(row.id):
        found.append(_quarantined(row.id, scheduler, starts=True))
        return found
    entry = scheduler.dags.get(row.dag_id)
    if not scheduler.schedules.covers(plan):
        found.append(_OTHER_SCHEDULER)
    elif entry is None or (row.id not in entry.waiting and row.id not in entry.running):
        found.append(_NOT_LOADED)
    else:
        found += _of_backfill(entry) if row.run_type is RunType.BACKFILL else _run_slots(entry)
        found += _order(scheduler.slots, entry, row, now)
        if row.started_at is not None:
            again = phrase("requeued")
            found = [one._replace(reason=then(one.reason, again)) if one.rule in _START_RULES else one for one in found]
    return found


def paused(plan: DagPlan) -> Blocker:
    command = f"tradewind dags unpause {plan.dag_id}"
    return Blocker("paused", phrase("paused"), phrase("ends_unpaused"), command=command, by_hand=True)


def inactive(plan: DagPlan) -> Blocker:
    return Blocker("inactive", phrase("inactive", file=plan.file), phrase("ends_file_again"), by_hand=True)


def _quarantined(run: int, scheduler: Scheduler, *, starts: bool) -> Blocker:
    """Return the blocker of a quarantined run.

    Args:
        starts: its start has failed; otherwise a decision on the running run.
    """
    times, until = scheduler.quarantine.failures(run), scheduler.quarantine.until(run)
    at = shown_moment(until)
    if times < 2:
        reason = phrase("start_failed", at=at) if starts else phrase("decision_failed", at=at)
    elif starts:
        reason = phrase("start_failed_often", times=times, at=at)
    else:
        reason = phrase("decision_failed_often", times=times, at=at)
    return Blocker("quarantined", reason, phrase("ends_at_success", at=at), until)


def _held_back(step: str, held: HeldBack) -> Blocker:
    problem, at = held.why.rstrip("."), shown_moment(held.until)
    if step == SCHEDULE:
        reason = phrase("held_back_schedule", problem=problem, at=at)
    elif step == BACKFILL:
        reason = phrase("held_back_backfill", problem=problem, at=at)
    else:
        assert step == ASSETS, step
        reason = phrase("held_back_assets", problem=problem, at=at)
    return Blocker("quarantined", reason, phrase("ends_at_success", at=at), held.until)


def _run_slots(entry: DagEntry) -> list[Blocker]:
    if not entry.is_full:
        return []
    running = len(entry.running) - entry.running_backfills
    reason = phrase("max_active_runs", count=running, most=entry.plan.max_active_runs)
    return [Blocker("max_active_runs", reason, phrase("ends_one_ends"))]


def _of_backfill(entry: DagEntry) -> list[Blocker]:
    """Return why a queued run of a backfill waits."""
    found = []
    backfill = entry.backfill
    if backfill is not None and backfill.is_paused:
        command = f"tradewind backfill unpause {backfill.id}"
        reason, ends = phrase("backfill_paused", command=command), phrase("ends_backfill_unpaused")
        found.append(Blocker("backfill_paused", reason, ends, command=command, by_hand=True))
    if entry.is_backfill_full:
        most = entry.plan.max_active_runs if backfill is None else backfill.max_active_runs
        reason = phrase("backfill_max_active_runs", count=entry.running_backfills, most=most)
        found.append(Blocker("backfill_max_active_runs", reason, phrase("ends_one_ends")))
    return found


def _order(slots: RunSlots, entry: DagEntry, row: RunRow, now: int) -> list[Blocker]:
    """Return blockers that come from the order in which runs start.

    The first queued run blocks the others while its rows are being created, and no run starts before its previous run.
    """
    found: list[Blocker] = []
    late, earlier = slots.waits_for_run(entry, row, now), slots.must_start_before(entry, row, now)
    if late is not None:
        creating = late.id in entry.incomplete
        reason = phrase("run_order_creating", run=late.run_id) if creating else phrase("run_order_not_due", run=late.run_id)
        found.append(Blocker("run_order", reason, phrase("ends_that_starts")))
    if earlier is not None:
        found.append(Blocker("previous_run", phrase("previous_run", run=earlier.run_id), phrase("ends_that_starts")))
    if found or not entry.may_start(row.id, now):
        return found
    if row.run_type is RunType.BACKFILL:
        most = entry.plan.max_active_runs if entry.backfill is None else entry.backfill.max_active_runs
        free = most - entry.running_backfills
    else:
        free = entry.plan.max_active_runs - (len(entry.running) - entry.running_backfills)
    if free > 0 and free <= (number := len(slots.ahead_of(entry, row, now))):
        found.append(Blocker("run_order", phrase("run_order_slots", count=number), phrase("ends_one_ends")))
    return found


def ahead(scheduler: Scheduler, entry: DagEntry, row: RunRow) -> Ahead:
    """Return the queued runs that start before this one."""
    before = scheduler.slots.ahead_of(entry, row, scheduler.clock.wall())
    return Ahead(len(before), before[0] if before else None)


# --- runs that do not exist -----------------------------------------------------------------------------------------------


class NextRun(NamedTuple):
    """The next scheduled run of a DAG: when it is due, and what keeps it from being created now."""

    times: RunTimes | None
    blockers: list[Blocker]
    notes: list[str]
    """Further sentences for people."""


def next_of(store: RowReader, plan: DagPlan, scheduler: Scheduler | None, now: int) -> NextRun:
    """Return the next run of a DAG; without a scheduler, from the DAG's row alone."""
    entry = scheduler.dags.get(plan.dag_id) if scheduler is not None else None
    found: list[Blocker] = []
    if plan.is_paused:
        found.append(paused(plan))
    if not plan.is_active:
        found.append(inactive(plan))
    times, of_schedule = _times(plan, entry, scheduler, now)
    notes = []
    waits = missing_assets(store, plan)
    holds = plan.assets is not None and assets_hold(store, plan.dag_id, plan.assets)
    if waits is not None:
        of_schedule = [one for one in of_schedule if one.rule != "no_schedule"]
        reason = phrase("assets_too", progress=waits) if times is not None else phrase("assets", progress=waits)
        if times is None and not holds:
            command = f"tradewind assets queued {plan.dag_id}"
            found.append(Blocker("assets", reason, phrase("ends_assets"), command=command))
        else:  # a DAG with a calendar and assets does not need the assets for its next run
            notes.append(english(reason))
    found += of_schedule
    if scheduler is not None:
        found += [_held_back(step, held) for step, held in scheduler.schedules.held_back(plan, now)]
    due = times is not None or holds
    if entry is not None and due and entry.unfinished >= plan.max_active_runs:
        reason = phrase("max_active_runs_next", count=entry.unfinished, most=plan.max_active_runs)
        found.append(Blocker("max_active_runs", reason, phrase("ends_one_ends")))
    if times is not None and times.run_after > now:
        at = shown_moment(times.run_after)
        found.append(Blocker("not_due", phrase("not_due", at=at), phrase("ends_at", at=at), times.run_after))
    problem = store.import_problems().get((plan.bundle, plan.file))
    if problem is not None:
        line = f", line {problem.line}" if problem.line else ""
        notes.append(f"Its file {plan.file}{line} cannot be imported now; its last good version is used: {problem.message}")
    if times is not None and not plan.catchup and plan.start_date is not None and plan.start_date < now:
        notes.append("catchup is off: only the latest interval gets a run. For earlier ones: tradewind backfill create")
    return NextRun(times, found, notes)


def _times(
    plan: DagPlan, entry: DagEntry | None, scheduler: Scheduler | None, now: int
) -> tuple[RunTimes | None, list[Blocker]]:
    """Return when the next run is due, or why that is not known."""
    try:
        schedule = schedule_of(plan)
    except Exception as error:  # for example written by a newer release
        return None, [Blocker("schedule", phrase("schedule_unreadable", problem=str(error)), by_hand=True)]
    if isinstance(schedule, NoSchedule) or (isinstance(schedule, CustomSchedule) and schedule.manual_only):
        command = f"tradewind dags trigger {plan.dag_id}"
        return None, [Blocker("no_schedule", phrase("no_schedule"), phrase("ends_triggered"), command=command, by_hand=True)]
    if isinstance(schedule, CustomSchedule):
        return _times_of_custom(schedule, entry, scheduler)
    times = entry.next if entry is not None and entry.is_open else None
    if times is None:
        last = None if plan.last is None else RunTimes(*plan.last)
        try:
            times = next_run(schedule, last, Bounds(plan.start_date, plan.end_date, plan.catchup), now)
        except (ScheduleError, ValueError, OverflowError) as error:
            return None, [Blocker("schedule", phrase("schedule_wrong", problem=str(error)), by_hand=True)]
    return times, [] if times is not None else [_ended(plan, schedule)]


def _times_of_custom(
    schedule: CustomSchedule, entry: DagEntry | None, scheduler: Scheduler | None
) -> tuple[RunTimes | None, list[Blocker]]:
    if entry is None or scheduler is None or not entry.is_open:
        return None, []
    trouble = scheduler.timetables.why(entry)
    if trouble is not None:
        return None, [Blocker("timetable", phrase("timetable_problem", problem=trouble), phrase("ends_timetable"))]
    if entry.question is not None:
        reason = phrase("timetable_asked", timetable=schedule.name)
        return None, [Blocker("timetable", reason, phrase("ends_timetable"))]
    if entry.next is None:
        until = entry.reply.until if entry.reply is not None else None
        at = shown_moment(until)
        reason = phrase("timetable_ended", timetable=schedule.name, at=at)
        return None, [Blocker("schedule_ended", reason, phrase("ends_at", at=at), until)]
    return entry.next, []


def _ended(plan: DagPlan, schedule: Schedule) -> Blocker:
    """Return why there is no further run."""
    if isinstance(schedule, OnceSchedule) and plan.last is not None:
        reason = phrase("schedule_once_done")
    elif plan.end_date is not None:
        reason = phrase("schedule_ended", end=shown_moment(plan.end_date))
    else:
        reason = phrase("schedule_no_more")
    command = f"tradewind dags trigger {plan.dag_id}"
    return Blocker("schedule_ended", reason, phrase("ends_triggered"), command=command, by_hand=True)


def of_date(plan: DagPlan, date: int, now: int, skipped: Iterable[Skipped] = ()) -> list[Blocker]:
    """Return why there is no run of this logical date."""
    schedule, shown, ends = schedule_of(plan), shown_moment(date), phrase("ends_triggered")
    by_hand = f"tradewind dags trigger {plan.dag_id} --logical-date {shown}"
    if isinstance(schedule, NoSchedule | OnceSchedule | ContinuousSchedule | CustomSchedule):
        return [Blocker("no_such_date", phrase("no_fixed_dates", date=shown), ends, command=by_hand, by_hand=True)]
    if plan.start_date is not None and date < plan.start_date:
        reason = phrase("before_start", date=shown, start=shown_moment(plan.start_date))
        return [Blocker("before_start", reason, ends, command=by_hand, by_hand=True)]
    if plan.end_date is not None and date > plan.end_date:
        reason = phrase("after_end", date=shown, end=shown_moment(plan.end_date))
        return [Blocker("schedule_ended", reason, ends, command=by_hand, by_hand=True)]
    times = next_run(schedule, None, Bounds(date, plan.end_date, True), now)
    if times is None or times.logical_date != date:
        reason = phrase("no_such_date", date=shown)
        if times is not None:
            reason = phrase("no_such_date_next", date=shown, next=shown_moment(times.logical_date))
        return [Blocker("no_such_date", reason, ends, command=by_hand, by_hand=True)]
    if times.run_after > now:
        at = shown_moment(times.run_after)
        return [Blocker("not_due", phrase("date_not_due", date=shown, at=at), phrase("ends_at", at=at), times.run_after)]
    last = plan.last[0] if plan.last is not None else None
    fill = f"tradewind backfill create --dag-id {plan.dag_id} --from-date {shown} --to-date {shown}"
    fill += " --reprocess-behavior failed"  # needed if a task depends on the past
    ends = phrase("ends_backfilled")
    if not plan.catchup:
        reason = phrase("catchup")
        passed = next((one for one in skipped if one.from_date <= date < one.to_date), None)
        if passed is not None:
            skip = phrase("catchup_skipped", at=shown_moment(passed.at), date=shown_moment(passed.to_date))
            reason = then(reason, skip)
        return [Blocker("catchup", reason, ends, command=fill, by_hand=True)]
    if last is not None and date <= last:
        reason = phrase("passed", last=shown_moment(last))
        return [Blocker("passed", reason, ends, command=fill, by_hand=True)]
    return []
