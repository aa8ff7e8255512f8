"""Why a run has not started, and why there is no run of a date: blockers outside of a run's tasks, for `why`.

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
from tradewind.model.moments import iso
from tradewind.model.rows import DagPlan, RunRow, Skipped
from tradewind.model.states import FINISHED_RUNS, RunState, RunType
from tradewind.scheduler.assets.answers import waits_for_assets
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

_START_RULES = RUN_SLOT_RULES | {"run_order", "previous_run"}
_REQUEUED = "It has run before, and was queued again while it waited for its previous run."

_OTHER_SCHEDULER = Blocker(
    "other_scheduler",
    "The running scheduler handles other DAGs: it was started with --subdir or --dag-id. Start one without these options.",
    "a scheduler is started that handles this DAG",
    by_hand=True,
)

_NOT_LOADED = Blocker(
    "not_loaded",
    "The scheduler has not loaded its run, or the last change of its run, yet. It compares its memory with the database regularly.",
    "the scheduler compares its memory with the database",
)


class Ahead(NamedTuple):
    """The queued runs that start before a run."""

    number: int
    first: RunRow | None


def of_run(plan: DagPlan, row: RunRow, scheduler: Scheduler | None) -> list[Blocker]:
    """Return what keeps the whole run from starting or continuing."""
    if row.state in FINISHED_RUNS:
        text = f"Its run is {row.state.value} since {iso(row.ended_at)}: {(row.reason or '').rstrip('.')}."
        command = f"tradewind dags clear {row.dag_id} --run-id {shlex.quote(row.run_id)}"
        return [Blocker("run_finished", text, "it is cleared", command=command, by_hand=True)]
    if row.state is RunState.RUNNING:
        if scheduler is None:
            return []
        if scheduler.is_quarantined(row.id):
            return [_quarantined("A decision on", row.id, scheduler)]
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
        text = f"{row.rows_created} of its run's {row.task_count} task instances are created so far."
        held = scheduler.quarantine.held_back((ROWS, row.id), now)
        if held is not None:
            text += f" The others were refused ({held.why.rstrip('.')}); they are tried again at {iso(held.until)}."
        found.append(Blocker("rows", text, "all of them are created"))
    if row.run_after > now:
        text = f"Its run starts at {iso(row.run_after)}, not before."
        found.append(Blocker("run_after", text, f"it is {iso(row.run_after)}", row.run_after))
    if scheduler.is_quarantined(row.id):
        found.append(_quarantined("The start of", row.id, scheduler))
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
            found = [one._replace(sentence=f"{one.sentence} {_REQUEUED}") if one.rule in _START_RULES else one for one in found]
    return found


def paused(plan: DagPlan) -> Blocker:
    command = f"tradewind dags unpause {plan.dag_id}"
    return Blocker("paused", "Its DAG is paused: unpause it.", "the DAG is unpaused", command=command, by_hand=True)


def inactive(plan: DagPlan) -> Blocker:
    text = f"Its DAG is not in the DAG folder any more (it was in {plan.file})."
    return Blocker("inactive", text, "a file with the DAG is there again", by_hand=True)


def _quarantined(what: str, run: int, scheduler: Scheduler) -> Blocker:
    times = scheduler.quarantine.failures(run)
    often = "" if times < 2 else f" {times} times in a row"
    until = scheduler.quarantine.until(run)
    text = f"{what} its run failed{often} (see the scheduler's log); it is tried again at {iso(until)}."
    return Blocker("quarantined", text, f"it is {iso(until)}, and it succeeds", until)


_STEPS = {
    SCHEDULE: "The next run of its schedule cannot be created",
    BACKFILL: "Its backfill cannot continue",
    ASSETS: "The run for its updated assets cannot be created",
}


def _held_back(step: str, held: HeldBack) -> Blocker:
    text = f"{_STEPS[step]} ({held.why.rstrip('.')}; see the scheduler's log). It is tried again at {iso(held.until)}."
    return Blocker("quarantined", text, f"it is {iso(held.until)}, and it succeeds", held.until)


def _run_slots(entry: DagEntry) -> list[Blocker]:
    if not entry.is_full:
        return []
    running = len(entry.running) - entry.running_backfills
    text = f"{running} runs of the DAG are running; its max_active_runs is {entry.plan.max_active_runs}."
    return [Blocker("max_active_runs", text, "one of them ends")]


def _of_backfill(entry: DagEntry) -> list[Blocker]:
    """Return why a queued run of a backfill waits."""
    found = []
    backfill = entry.backfill
    if backfill is not None and backfill.is_paused:
        command = f"tradewind backfill unpause {backfill.id}"
        text = f"Its backfill is paused. Unpause it: {command}"
        found.append(Blocker("backfill_paused", text, "the backfill is unpaused", command=command, by_hand=True))
    if entry.is_backfill_full:
        most = entry.plan.max_active_runs if backfill is None else backfill.max_active_runs
        text = f"{entry.running_backfills} runs of the backfill are running; its max_active_runs is {most}."
        found.append(Blocker("backfill_max_active_runs", text, "one of them ends"))
    return found


def _order(slots: RunSlots, entry: DagEntry, row: RunRow, now: int) -> list[Blocker]:
    """Return blockers by the order in which runs start.

    The first queued run blocks the others while its rows are being created, and no run starts before its previous run.
    """
    found: list[Blocker] = []
    late, earlier = slots.waits_for_run(entry, row, now), slots.must_start_before(entry, row, now)
    if late is not None:
        why = "whose task instances are still being created" if late.id in entry.incomplete else "which is not due yet"
        text = f"Runs start in order, and {late.run_id} comes first, {why}."
        found.append(Blocker("run_order", text, "that one starts"))
    if earlier is not None:
        text = f"Its tasks depend on the previous run, and {earlier.run_id} is queued: that one starts first."
        found.append(Blocker("previous_run", text, "that one starts"))
    if found or not entry.may_start(row.id, now):
        return found
    if row.run_type is RunType.BACKFILL:
        most = entry.plan.max_active_runs if entry.backfill is None else entry.backfill.max_active_runs
        free = most - entry.running_backfills
    else:
        free = entry.plan.max_active_runs - (len(entry.running) - entry.running_backfills)
    if free > 0 and free <= (number := len(slots.ahead_of(entry, row, now))):
        found.append(Blocker("run_order", f"{number} runs start before it and take the free run slots.", "one of them ends"))
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
    waits = waits_for_assets(store, plan)
    holds = plan.assets is not None and assets_hold(store, plan.dag_id, plan.assets)
    if waits is not None:
        of_schedule = [one for one in of_schedule if one.rule != "no_schedule"]
        text = f"It {'also ' if times is not None else ''}runs when assets are updated: {waits}."
        if times is None and not holds:
            found.append(Blocker("assets", text, "they are updated", command=f"tradewind assets queued {plan.dag_id}"))
        else:  # a DAG with a calendar and assets does not need the assets for its next run
            notes.append(text)
    found += of_schedule
    if scheduler is not None:
        found += [_held_back(step, held) for step, held in scheduler.schedules.held_back(plan, now)]
    due = times is not None or holds
    if entry is not None and due and entry.unfinished >= plan.max_active_runs:
        text = f"{entry.unfinished} runs of the DAG have not ended; its max_active_runs is {plan.max_active_runs}."
        found.append(Blocker("max_active_runs", text, "one of them ends"))
    if times is not None and times.run_after > now:
        text = f"The next run of the DAG starts at {iso(times.run_after)}."
        found.append(Blocker("not_due", text, f"it is {iso(times.run_after)}", times.run_after))
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
        return None, [Blocker("schedule", f"Its schedule cannot be read: {error}", by_hand=True)]
    if isinstance(schedule, NoSchedule) or (isinstance(schedule, CustomSchedule) and schedule.manual_only):
        command = f"tradewind dags trigger {plan.dag_id}"
        text = "It has no schedule: it runs when it is triggered."
        return None, [Blocker("no_schedule", text, "it is triggered", command=command, by_hand=True)]
    if isinstance(schedule, CustomSchedule):
        return _times_of_custom(schedule, entry, scheduler)
    times = entry.next if entry is not None and entry.is_open else None
    if times is None:
        last = None if plan.last is None else RunTimes(*plan.last)
        try:
            times = next_run(schedule, last, Bounds(plan.start_date, plan.end_date, plan.catchup), now)
        except (ScheduleError, ValueError, OverflowError) as error:
            return None, [Blocker("schedule", f"Its schedule cannot be followed: {error}", by_hand=True)]
    return times, [] if times is not None else [_ended(plan, schedule)]


def _times_of_custom(
    schedule: CustomSchedule, entry: DagEntry | None, scheduler: Scheduler | None
) -> tuple[RunTimes | None, list[Blocker]]:
    if entry is None or scheduler is None or not entry.is_open:
        return None, []
    trouble = scheduler.timetables.why(entry)
    if trouble is not None:
        return None, [Blocker("timetable", f"No further run is planned: {trouble}", "it answers")]
    if entry.question is not None:
        text = f"Its timetable {schedule.name} is being asked for the next run."
        return None, [Blocker("timetable", text, "it answers")]
    if entry.next is None:
        until = entry.reply.until if entry.reply is not None else None
        text = f"Its timetable {schedule.name} says that there is no further run; it is asked again at {iso(until)}."
        return None, [Blocker("schedule_ended", text, f"it is {iso(until)}", until)]
    return entry.next, []


def _ended(plan: DagPlan, schedule: Schedule) -> Blocker:
    """Return why there is no further run."""
    if isinstance(schedule, OnceSchedule) and plan.last is not None:
        text = "It runs once, and that run exists."
    elif plan.end_date is not None:
        text = f"Its schedule has ended: its end_date is {iso(plan.end_date)}."
    else:
        text = "Its schedule has no further run."
    command = f"tradewind dags trigger {plan.dag_id}"
    return Blocker("schedule_ended", text, "it is triggered", command=command, by_hand=True)


def of_date(plan: DagPlan, date: int, now: int, skipped: Iterable[Skipped] = ()) -> list[Blocker]:
    """Return why there is no run of this logical date."""
    schedule = schedule_of(plan)
    by_hand = f"tradewind dags trigger {plan.dag_id} --logical-date {iso(date)}"
    if isinstance(schedule, NoSchedule | OnceSchedule | ContinuousSchedule | CustomSchedule):
        text = f"Its schedule has no fixed dates, so there is no planned run of {iso(date)}."
        return [Blocker("no_such_date", text, "it is triggered", command=by_hand, by_hand=True)]
    if plan.start_date is not None and date < plan.start_date:
        text = f"{iso(date)} is before the DAG's start_date {iso(plan.start_date)}."
        return [Blocker("before_start", text, "it is triggered", command=by_hand, by_hand=True)]
    if plan.end_date is not None and date > plan.end_date:
        text = f"{iso(date)} is after the DAG's end_date {iso(plan.end_date)}."
        return [Blocker("schedule_ended", text, "it is triggered", command=by_hand, by_hand=True)]
    times = next_run(schedule, None, Bounds(date, plan.end_date, True), now)
    if times is None or times.logical_date != date:
        nearest = f"; the next one is {iso(times.logical_date)}" if times is not None else ""
        text = f"{iso(date)} is no logical date of its schedule{nearest}."
        return [Blocker("no_such_date", text, "it is triggered", command=by_hand, by_hand=True)]
    if times.run_after > now:
        text = f"The run of {iso(date)} starts at {iso(times.run_after)}, when its interval is over."
        return [Blocker("not_due", text, f"it is {iso(times.run_after)}", times.run_after)]
    last = plan.last[0] if plan.last is not None else None
    fill = f"tradewind backfill create --dag-id {plan.dag_id} --from-date {iso(date)} --to-date {iso(date)}"
    if not plan.catchup:
        text = "catchup is off: runs that were due while the DAG was paused, or before it was known, are not created later."
        passed = next((one for one in skipped if one.from_date <= date < one.to_date), None)
        if passed is not None:
            text += f" It was skipped at {iso(passed.at)}, when the run of {iso(passed.to_date)} was created."
        return [Blocker("catchup", text, "a backfill creates it", command=fill, by_hand=True)]
    if last is not None and date <= last:
        text = f"The schedule is past this date (its last run is of {iso(last)}); its run may have been deleted."
        return [Blocker("passed", text, "a backfill creates it", command=fill, by_hand=True)]
    return []
