"""Commands on backfills."""

from __future__ import annotations

import msgspec

from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import BackfillRow, NewBackfill
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.dags import active_dag
from tradewind.scheduler.dags.backfills import NEW, REPROCESS, RERUN, plan_runs, turn_of
from tradewind.scheduler.dags.schedule import schedule_of
from tradewind.scheduler.runs.params import check_conf
from tradewind.wire import commands as c


def create_backfill(context: CommandContext, command: c.CreateBackfill) -> c.CreateBackfillResult:
    """Plan the runs. Unless `dry_run` is given, store the backfill: then the scheduler creates its runs.

    Raises:
        NotFound: there is no such DAG.
        Conflict: the DAG is not active; an argument does not fit; the schedule has no run between the dates.
    """
    now, store = context.clock.wall(), context.store
    _check_words(command)
    plan = active_dag(store, command.dag_id)
    definition = store.definition(plan.version)
    _check_dates(command, now)
    past = next((task.task_id for task in definition.tasks if task.depends_on_past), None)
    if command.run_backwards and past is not None:
        raise Conflict(f"the task {past} depends on the past, so its runs cannot be made backwards")
    if command.max_active_runs < 1:
        raise Conflict("max_active_runs must be at least 1")
    conf = command.conf or {}
    check_conf(definition, conf)
    earliest = max(command.from_date, plan.start_date) if plan.start_date is not None else command.from_date
    latest = min(command.to_date, plan.end_date) if plan.end_date is not None else command.to_date
    try:
        times = plan_runs(schedule_of(plan), earliest, latest, command.run_backwards)
    except Conflict as error:
        raise type(error)(english(phrase("error_no_backfill", dag=plan.dag_id, reason=str(error)))) from None
    if not times:
        start, end = str(iso(earliest)), str(iso(latest))
        raise Conflict(english(phrase("error_nothing_planned", dag=plan.dag_id, start=start, end=end)))
    turns = [turn_of(store, plan.dag_id, one, command.reprocess_behavior) for one in times]
    to_do = sum(turn.outcome in (NEW, RERUN) for turn in turns)
    if command.dry_run:
        shown = [
            c.PlannedRun(
                iso(turn.times.logical_date), turn.outcome, turn.existing.run_id if turn.existing is not None else None
            )
            for turn in turns
        ]
        return c.CreateBackfillResult(None, shown, len(times), to_do)
    row = store.create_backfill(
        NewBackfill(
            plan.dag_id,
            earliest,
            latest,
            msgspec.json.encode(conf) if conf else None,
            command.max_active_runs,
            now,
            plan.schedule,
            command.reprocess_behavior,
            command.run_backwards,
            context.actor,
            len(times),
        )
    )
    context.effects.dags.add(plan.dag_id)
    return c.CreateBackfillResult(backfill_info(row), [], len(times), to_do)


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
        raise Conflict(english(phrase("error_backfill_order", start=str(iso(start)), end=str(iso(end)))))
    if end > now:
        raise Conflict(english(phrase("error_future", end=str(iso(end)))))


def _changed(context: CommandContext, number: int) -> c.BackfillInfo:
    """Return the backfill that the command has changed. Raises NotFound."""
    row = context.store.backfill(number)
    if row is None:
        raise NotFound(f"there is no backfill {number}")
    context.effects.dags.add(row.dag_id)
    return backfill_info(row)
