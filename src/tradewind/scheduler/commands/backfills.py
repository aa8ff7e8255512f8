"""Commands on backfills."""

from __future__ import annotations

import msgspec

from tradewind.model.definition import CronSchedule, CustomSchedule, DagDefinition, PlannedRuns, Schedule, encode_plan
from tradewind.model.errors import Conflict, NoDates, NotFound, WrongBackfill, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import BackfillRow, DagPlan, NewBackfill
from tradewind.model.states import RunType
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.dags import active_dag
from tradewind.scheduler.commands.trigger import check_run_type
from tradewind.scheduler.dags.backfills import NEW, REPROCESS, RERUN, Span, Turn, plan_runs, turn_of
from tradewind.scheduler.dags.schedule import schedule_name, schedule_of
from tradewind.scheduler.runs.params import check_conf
from tradewind.store.port import Store
from tradewind.timetables import RunTimes
from tradewind.wire import commands as c
from tradewind.wire.messages import TimetableQuestion


def create_backfill(context: CommandContext, command: c.CreateBackfill) -> c.CreateBackfillResult:
    """Plan the runs. Unless `dry_run` is given, store the backfill: then the scheduler creates its runs.

    Raises:
        NotFound: there is no such DAG.
        RunTypeNotAllowed: the DAG does not allow backfills.
        Conflict: the DAG is not active; an argument does not fit; the schedule has no run between the dates.
    """
    now, store = context.clock.wall(), context.store
    _check_words(command)
    plan = active_dag(store, command.dag_id)
    definition = store.definition(plan.version)
    check_run_type(definition, RunType.BACKFILL)
    _check_dates(command, now)
    _check_past(definition, command)
    if command.max_active_runs < 1:
        raise Conflict("max_active_runs must be at least 1")
    conf = command.conf or {}
    check_conf(definition, conf)
    span = _span(plan, command, now)
    encoded, times = _planned(context, plan, command, span)
    if not times:
        _check_bounds(plan, command)
        start, end = str(iso(span.start)), str(iso(span.end))
        raise WrongBackfill(english(phrase("error_nothing_planned", dag=plan.dag_id, start=start, end=end)))
    turns = [turn_of(store, plan.dag_id, one, command.reprocess_behavior) for one in times]
    to_do = sum(turn.outcome in (NEW, RERUN) for turn in turns)
    if command.dry_run:
        return c.CreateBackfillResult(None, [_shown(turn) for turn in turns], len(times), to_do)
    row = store.create_backfill(
        NewBackfill(
            plan.dag_id,
            span.start,
            span.end,
            msgspec.json.encode(conf) if conf else None,
            command.max_active_runs,
            now,
            encoded,
            command.reprocess_behavior,
            command.run_backwards,
            context.actor,
            len(times),
            command.run_on_latest_version,
        )
    )
    context.effects.dags.add(plan.dag_id)
    return c.CreateBackfillResult(backfill_info(row), [], len(times), to_do)


def _shown(turn: Turn) -> c.PlannedRun:
    times, existing = turn.times, turn.existing
    run_id = None if existing is None else existing.run_id
    return c.PlannedRun(iso(times.logical_date), turn.outcome, run_id, times.partition_key, iso(times.partition_date))


def timetable_question(store: Store, command: c.CreateBackfill, number: int) -> TimetableQuestion | None:
    """Return the question that the DAG's custom timetable has to answer before this command. None: there is no question."""
    plan = store.dag(command.dag_id)
    if plan is None or not plan.is_active:
        return None
    return _question(plan, _span(plan, command, 0), number)


def _question(plan: DagPlan, span: Span, number: int) -> TimetableQuestion | None:
    schedule = schedule_of(plan)
    if not isinstance(schedule, CustomSchedule) or schedule.manual_only or not schedule.periodic or span.start > span.end:
        return None
    between = (span.start, span.end)
    return TimetableQuestion(
        number, plan.dag_id, plan.bundle, plan.file, plan.schedule, between=between, bundle_version=plan.bundle_version
    )


def _span(plan: DagPlan, command: c.CreateBackfill, now: int) -> Span:
    schedule = schedule_of(plan)
    if isinstance(schedule, CronSchedule) and schedule.partition is not None:  # its dates are no dates of runs, as in Airflow
        return Span(command.from_date, command.to_date, now)
    earliest = max(command.from_date, plan.start_date) if plan.start_date is not None else command.from_date
    return Span(earliest, min(command.to_date, plan.end_date) if plan.end_date is not None else command.to_date, now)


def _planned(context: CommandContext, plan: DagPlan, command: c.CreateBackfill, span: Span) -> tuple[bytes, list[RunTimes]]:
    """Return the runs of the backfill, and what is stored so that they can be computed again. Raises NoDates, Conflict."""
    schedule: Schedule | PlannedRuns = schedule_of(plan)
    encoded = plan.schedule
    try:
        if isinstance(schedule, CustomSchedule):
            schedule = _runs_of_timetable(context, plan, span)
            encoded = encode_plan(schedule)
        return encoded, plan_runs(schedule, span, command.run_backwards)
    except Conflict as error:
        raise type(error)(english(phrase("error_no_backfill", dag=plan.dag_id, reason=str(error)))) from None


def _runs_of_timetable(context: CommandContext, plan: DagPlan, span: Span) -> PlannedRuns:
    question = _question(plan, span, 0)
    if question is None:
        raise NoDates(english(phrase("error_no_fixed_dates")))
    answer = context.timetable_answer
    if answer is None and context.ask_timetable is not None:
        answer = context.ask_timetable(question)
    if answer is None or answer.problem is not None:
        reason = "no parser is running" if answer is None else str(answer.problem)
        raise Conflict(english(phrase("error_custom_timetable", name=schedule_name(plan), reason=reason)))
    return PlannedRuns(answer.runs)


def pause_backfill(context: CommandContext, command: c.PauseBackfill) -> c.PauseBackfillResult:
    changed = context.store.pause_backfill(command.backfill, command.is_paused, context.actor, context.clock.wall())
    return c.PauseBackfillResult(changed, _changed(context, command.backfill))


def cancel_backfill(context: CommandContext, command: c.CancelBackfill) -> c.CancelBackfillResult:
    context.store.complete_backfill(command.backfill, context.clock.wall(), cancelled_by=context.actor)
    return c.CancelBackfillResult(_changed(context, command.backfill))


def backfill_info(row: BackfillRow) -> c.BackfillInfo:
    return c.BackfillInfo(
        row.id,
        row.dag_id,
        iso(row.from_date),
        iso(row.to_date),
        msgspec.json.decode(row.conf) if row.conf else {},
        row.is_paused,
        row.reprocess_behavior,
        row.max_active_runs,
        row.run_backwards,
        row.created_by,
        iso(row.created_at),
        iso(row.completed_at),
        row.planned,
        row.handled,
    )


def _check_words(command: c.CreateBackfill) -> None:
    behavior = command.reprocess_behavior
    if behavior not in REPROCESS:
        raise Conflict(f"{behavior!r} is no reprocess behavior.{did_you_mean(behavior, REPROCESS)} Use {', '.join(REPROCESS)}.")


def _check_dates(command: c.CreateBackfill, now: int) -> None:
    start, end = command.from_date, command.to_date
    if start > end:
        raise WrongBackfill(english(phrase("error_backfill_order", start=str(iso(start)), end=str(iso(end)))))
    if start >= now:
        raise WrongBackfill(english(phrase("error_future", end=str(iso(start)))))


def _check_past(definition: DagDefinition, command: c.CreateBackfill) -> None:
    """Refuse as Airflow what a DAG with tasks that depend on the past cannot do."""
    past = next((task.task_id for task in definition.tasks if task.depends_on_past), None)
    if past is None:
        return
    if command.run_backwards:
        raise WrongBackfill(english(phrase("error_backfill_backwards", task=past)))
    if command.reprocess_behavior == "none" and not command.accepts_depends_on_past:
        raise WrongBackfill(english(phrase("error_backfill_past", task=past)))


def _check_bounds(plan: DagPlan, command: c.CreateBackfill) -> None:
    """Refuse dates of which none is between the start date and the end date of the DAG."""
    if plan.start_date is not None and plan.start_date > command.to_date:
        bound, asked = str(iso(plan.start_date)), str(iso(command.to_date))
        raise WrongBackfill(english(phrase("error_backfill_before_start", dag=plan.dag_id, bound=bound, asked=asked)))
    if plan.end_date is not None and plan.end_date < command.from_date:
        bound, asked = str(iso(plan.end_date)), str(iso(command.from_date))
        raise WrongBackfill(english(phrase("error_backfill_after_end", dag=plan.dag_id, bound=bound, asked=asked)))


def _changed(context: CommandContext, number: int) -> c.BackfillInfo:
    """Return the backfill that the command has changed. Raises NotFound."""
    row = context.store.backfill(number)
    if row is None:
        raise NotFound(f"there is no backfill {number}")
    context.effects.dags.add(row.dag_id)
    return backfill_info(row)
