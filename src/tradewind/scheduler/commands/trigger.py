"""Commands that create DAG runs: `trigger`, and `trigger_from_task` of a task.

A run by hand needs a data interval. If the command gives none and the DAG has a custom timetable, the timetable is asked.
"""

from __future__ import annotations

import secrets

import msgspec

from tradewind.model.assets import AssetKey, leaves
from tradewind.model.definition import CronSchedule, CustomSchedule, DagDefinition, NoSchedule
from tradewind.model.errors import Conflict, RunTypeNotAllowed, WrongName
from tradewind.model.ids import check_run_id, named_run_id
from tradewind.model.partitions import KEY_MAX
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import DagPlan, NewRun, RunRow
from tradewind.model.states import RunType
from tradewind.scheduler.assets.asset_index import asset_schedule
from tradewind.scheduler.commands.clear import clear_tasks
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.dags import active_dag
from tradewind.scheduler.dags.schedule import schedule_name, schedule_of
from tradewind.scheduler.runs.params import check_conf
from tradewind.store.port import Store
from tradewind.timetables import manual_interval
from tradewind.timetables.partition_keys import PartitionKeyError, cron_key_date, key_date
from tradewind.wire import commands as c
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion


def trigger(context: CommandContext, command: c.Trigger) -> c.TriggerResult:
    """Create a queued run.

    Raises:
        NotFound: there is no such DAG.
        RunTypeNotAllowed: the DAG does not allow runs of this type.
        Conflict: the DAG is not active; the conf, the run id or the dates do not fit; the run exists.
    """
    store, now = context.store, context.clock.wall()
    plan = active_dag(store, command.dag_id)
    conf = command.conf or {}
    definition = store.definition(plan.version)
    check_run_type(definition, command.run_type)
    check_conf(definition, conf)
    partition_date = _partition_date(plan, command.partition_key)
    run_after = _run_after(command, now)
    interval: tuple[int | None, int | None] = (command.interval_start, command.interval_end)
    answer = _timetable_answer(context, plan, command, now)
    if interval == (None, None):
        at = now if command.logical_date is None else command.logical_date
        found = manual_interval(schedule_of(plan), at, now) if answer is None else answer.interval
        interval = found or (None, None)
    named = None if answer is None else answer.run_id
    run_id = command.run_id or named or _run_id(command, run_after, now)
    check_run_id(run_id)
    row = store.create_run(
        NewRun(
            plan.dag_id,
            run_id,
            command.run_type,
            plan.version,
            command.logical_date,
            interval[0],
            interval[1],
            run_after,
            now,
            command.triggered_by,
            context.actor,
            msgspec.json.encode(conf) if conf else None,
            command.note,
            partition_key=command.partition_key,
            partition_date=partition_date,
        )
    )
    detail = {"conf": conf} if conf else None
    store.write_audit("trigger", context.actor, now, dag_id=plan.dag_id, run_id=run_id, detail=detail)
    context.effects.created.append(row)
    return _result(row)


def check_run_type(definition: DagDefinition, run_type: RunType) -> None:
    """Check that the DAG allows runs of this type. Raises RunTypeNotAllowed."""
    allowed = definition.allowed_run_types
    if allowed and run_type not in allowed:
        kinds = ", ".join(allowed)
        raise RunTypeNotAllowed(f"DAG {definition.dag_id} does not allow runs of the type {run_type.value}; it allows {kinds}")


def check_partition_key(key: str) -> str:
    """Return the key. Raises Conflict: it is empty or too long."""
    if not key.strip():
        raise Conflict("partition_key is empty; give a key, or leave it out")
    if len(key) > KEY_MAX:
        raise Conflict(f"partition_key has {len(key)} characters; at most {KEY_MAX} are allowed")
    return key


def _partition_date(plan: DagPlan, key: str | None) -> int | None:
    """Return the partition date in a key. Raises WrongName: the DAG has no partitions, or the key does not fit its schedule."""
    if key is None:
        return None
    schedule = schedule_of(plan)
    partition = schedule.partition if isinstance(schedule, CronSchedule) else None
    assets = None if plan.assets is None else asset_schedule(plan.assets)
    at_runtime = isinstance(schedule, NoSchedule | CustomSchedule) and schedule.partitioned_at_runtime
    if partition is None and (assets is None or assets.partitions is None) and not at_runtime:
        raise WrongName(english(phrase("error_not_partitioned", dag=plan.dag_id)))
    check_partition_key(key)
    try:
        if partition is not None and isinstance(schedule, CronSchedule):
            return cron_key_date(key, partition.key_format, schedule.timezone)
        if assets is None or assets.partitions is None:
            return None
        named = [(leaf.name, leaf.uri) for leaf in leaves(assets.condition) if isinstance(leaf, AssetKey)]
        dates = {key_date(assets.partitions.mapper(*one), key) for one in named} - {None}
        return dates.pop() if len(dates) == 1 else None
    except PartitionKeyError as error:
        raise WrongName(str(error)) from None


def trigger_from_task(context: CommandContext, command: c.TriggerFromTask) -> c.TriggerFromTaskResult:
    """Create the run, or find or clear the one that exists. Raises as `trigger`."""
    plan = context.store.need_dag(command.dag_id)
    if command.fail_when_paused and plan.is_paused:
        return c.TriggerFromTaskResult("paused", command.run_id, command.logical_date)
    found = _existing_run(context.store, plan.dag_id, command.run_id, command.logical_date)
    if found is None:
        made = trigger(context, _as_trigger(command))
        return c.TriggerFromTaskResult("created", made.run_id, made.logical_date)
    if command.reset:
        reason = f"triggered again by {context.actor}"
        clear_tasks(context, c.ClearTasks(plan.dag_id, found.run_id, reason=reason))
    return c.TriggerFromTaskResult("cleared" if command.reset else "exists", found.run_id, found.logical_date)


def timetable_question(store: Store, command: c.Trigger | c.TriggerFromTask, number: int, now: int) -> TimetableQuestion | None:
    """Return the question that the DAG's custom timetable has to answer before this command. None: there is no question.

    Args:
        number: number of the question.
    """
    plan = store.dag(command.dag_id)
    if plan is None or not plan.is_active:
        return None
    return _question(plan, _as_trigger(command), number, now)


def _as_trigger(command: c.Trigger | c.TriggerFromTask) -> c.Trigger:
    if isinstance(command, c.Trigger):
        return command
    return c.Trigger(
        command.dag_id,
        command.run_id,
        command.logical_date,
        conf=command.conf,
        note=command.note,
        run_type=RunType.OPERATOR_TRIGGERED,
        triggered_by="operator",
    )


def _question(plan: DagPlan, command: c.Trigger, number: int, now: int) -> TimetableQuestion | None:
    """Return what the custom timetable has to say about a new run: its data interval, its id, or both. None: nothing."""
    schedule = schedule_of(plan)
    start, end = command.interval_start, command.interval_end
    has_interval = start is not None or end is not None
    if not isinstance(schedule, CustomSchedule) or (has_interval and (command.run_id or not schedule.names_runs)):
        return None
    return TimetableQuestion(
        number,
        plan.dag_id,
        plan.bundle,
        plan.file,
        plan.schedule,
        manual_at=now if command.logical_date is None else command.logical_date,
        dated=command.logical_date is not None,
        interval=None if start is None or end is None else (start, end),
        run_type=command.run_type.value,
        run_after=_run_after(command, now),
        partition_key=command.partition_key,
        bundle_version=plan.bundle_version,
    )


def _run_after(command: c.Trigger, now: int) -> int:
    return command.run_after or max(now, command.logical_date or 0)


def _timetable_answer(context: CommandContext, plan: DagPlan, command: c.Trigger, now: int) -> TimetableAnswer | None:
    """Return what the custom timetable says about a new run; None: it has nothing to say.

    Raises:
        Conflict: it does not answer.
    """
    question = _question(plan, command, 0, now)
    if question is None:
        return None
    answer = context.timetable_answer
    if answer is None and context.ask_timetable is not None:
        answer = context.ask_timetable(question)
    name = schedule_name(plan)
    if answer is None:
        raise Conflict(
            f"the timetable {name} of DAG {plan.dag_id} cannot be asked now; give the data interval and the run id in the command"
        )
    if answer.problem is not None:
        raise Conflict(f"the timetable {name} of DAG {plan.dag_id} gives no data interval for a manual run: {answer.problem}")
    return answer


def _run_id(command: c.Trigger, run_after: int, now: int) -> str:
    """Return Airflow's run id of a manual run.

    A run of the REST API has the moment of the request or its `run_after`, as in Airflow 3. Any other run has its logical date, as
    in Airflow 2; without one it has a random suffix.
    """
    kind = RunType.ASSET_MATERIALIZATION if command.run_type is RunType.ASSET_MATERIALIZATION else RunType.MANUAL
    if command.triggered_by == "rest_api" and kind is RunType.MANUAL:
        return named_run_id(kind, now if command.run_after is None else run_after)
    moment = command.logical_date if command.logical_date is not None else run_after
    run_id = named_run_id(kind, moment)
    return run_id if command.logical_date is not None else f"{run_id}_{secrets.token_hex(4)}"


def _existing_run(store: Store, dag_id: str, run_id: str | None, logical_date: int | None) -> RunRow | None:
    """Return the existing run with this id or this logical date."""
    found = store.find_run(dag_id, run_id) if run_id else None
    if found is None and logical_date is not None:
        found = store.previous_run(dag_id, logical_date + 1, scheduled_only=False)
        found = found if found is not None and found.logical_date == logical_date else None
    return found


def _result(row: RunRow) -> c.TriggerResult:
    return c.TriggerResult(
        row.id,
        row.dag_id,
        row.run_id,
        row.run_type.value,
        row.state.value,
        row.version,
        row.logical_date,
        row.interval_start,
        row.interval_end,
        row.run_after,
        msgspec.json.decode(row.conf) if row.conf else {},
        row.triggered_by,
        row.triggering_user,
        row.note,
    )
