"""Commands that import from Airflow: runs with their task instances, the position of each schedule, events of assets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tradewind.kernel.layout import mapped_tasks
from tradewind.model.definition import DagDefinition, Schedule, TaskDefinition, encode_definition, version_hash
from tradewind.model.errors import Conflict, ScheduleError, TradewindError
from tradewind.model.ids import UNEXPANDED, check_run_id
from tradewind.model.rows import AttemptRow, JournalEntry, NewAssetEvent, RunImport, TaskRow, XComWrite
from tradewind.model.states import FINISHED, RunType, TaskState
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.dags.schedule import schedule_of
from tradewind.timetables import Bounds, RunTimes, next_run
from tradewind.wire import commands as c

_ENDED = frozenset({TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED})
_TRIGGERED_BY = "import"


class PlacedTasks(NamedTuple):
    """The task instances of an imported run by slot, and the definition that fits them."""

    tasks: tuple[c.ImportedTask, ...]
    definition: DagDefinition
    """The given definition itself, if the run has exactly the tasks of this definition."""


def import_runs(context: CommandContext, command: c.ImportRuns) -> c.ImportRunsResult:
    """Store runs in one transaction. A run that cannot be stored is refused with the reason; the others are stored."""
    created = existing = 0
    refused: list[c.RefusedRun] = []
    for run in command.runs:
        try:
            number = _import_run(context, run, command.origin)
        except TradewindError as error:
            refused.append(c.RefusedRun(run.dag_id, run.run_id, str(error)))
            continue
        if number is None:
            existing += 1
        else:
            created += 1
            context.effects.dags.add(run.dag_id)
    if created:
        detail = {"runs": created, "origin": command.origin}
        context.store.write_audit("import", context.actor, context.clock.wall(), detail=detail)
    return c.ImportRunsResult(created, existing, refused)


def _import_run(context: CommandContext, run: c.ImportedRun, origin: str) -> int | None:
    check_run_id(run.run_id)
    store, now = context.store, context.clock.wall()
    plan = store.need_dag(run.dag_id)
    newest = store.definition(plan.version)
    places = place_tasks(newest, run.tasks)
    version = plan.version
    if places.definition is not newest:
        data = encode_definition(places.definition)
        version = store.version_of_import(run.dag_id, data, version_hash(data), now)
    rows = [_row(slot, task, places.definition) for slot, task in enumerate(places.tasks)]
    cause = f"imported from {origin}"
    end = run.interval_end
    if end is None and run.logical_date is not None:
        by_schedule = run.run_type in (RunType.SCHEDULED, RunType.BACKFILL)
        end = end_of_interval(schedule_of(plan), run.logical_date, now) if by_schedule else run.logical_date
    return store.import_run(
        RunImport(
            run.dag_id,
            run.run_id,
            run.run_type,
            run.state,
            version,
            run.logical_date,
            run.interval_start,
            end,
            run.run_after if end is None else max(run.run_after, end),
            run.queued_at,
            run.started_at,
            run.ended_at,
            msgspec.json.encode(run.conf) if run.conf else None,
            _TRIGGERED_BY,
            run.triggering_user,
            run.note,
            rows,
            [
                JournalEntry(row.slot, row.fence, TaskState.NONE.code, row.state, row.ended_at or run.queued_at, cause)
                for row in rows
                if row.state != TaskState.NONE.code
            ],
            [one for slot, task in enumerate(places.tasks) for one in _attempts(slot, task, origin)],
            _hostnames(places.tasks),
            [XComWrite(*msgspec.structs.astuple(xcom)) for xcom in run.xcoms],
            run.partition_key,
            run.partition_date,
            {slot: task.note for slot, task in enumerate(places.tasks) if task.note},
        )
    )


def place_tasks(newest: DagDefinition, tasks: Sequence[c.ImportedTask]) -> PlacedTasks:
    """Give each task instance its slot, as in a run that began with exactly these tasks (see `kernel.layout`).

    A task that the DAG does not have any more stays in the run. Its definition stays, too, as far as Airflow stored it. If an
    instance is given twice, the first one counts.
    """
    instances: dict[str, dict[int, c.ImportedTask]] = {}
    for task in tasks:
        instances.setdefault(task.task_id, {}).setdefault(task.map_index, task)
    known = {task.task_id for task in newest.tasks}
    present = {task.task_id: task for task in newest.tasks if task.task_id in instances}
    gone = sorted(instances.keys() - known)
    definition = newest
    if gone or len(present) < len(newest.tasks):
        kept = tuple(_without(task, instances.keys()) for task in present.values())
        lost = tuple(_definition_of(task_id, instances[task_id]) for task_id in gone)
        definition = msgspec.structs.replace(newest, tasks=kept + lost)
    mapped = mapped_tasks(definition)
    own, further = [], []
    for one in definition.tasks:
        found = instances[one.task_id]
        first = 0 if one.task_id in mapped and 0 in found else UNEXPANDED if UNEXPANDED in found else min(found)
        # a task that is not mapped in Tradewind's definition has one instance
        own.append(found[first] if one.task_id in mapped else msgspec.structs.replace(found[first], map_index=UNEXPANDED))
        if one.task_id in mapped and first == 0:
            index = 1
            while index in found:
                further.append(found[index])
                index += 1
    return PlacedTasks((*own, *further), definition)


def _without(task: TaskDefinition, present: Collection[str]) -> TaskDefinition:
    """Return a copy of a task without the upstream tasks that the run does not have."""
    upstream = tuple(name for name in task.upstream if name in present)
    return task if upstream == task.upstream else msgspec.structs.replace(task, upstream=upstream)


def _definition_of(task_id: str, found: dict[int, c.ImportedTask]) -> TaskDefinition:
    """Return the definition of a task that the DAG does not have any more, as far as Airflow stored it."""
    first = next(iter(found.values()))
    return TaskDefinition(task_id, operator=first.operator or "BaseOperator", mapped=UNEXPANDED not in found)


def _row(slot: int, task: c.ImportedTask, definition: DagDefinition) -> TaskRow:
    known = definition.task(task.task_id)
    retries = known.retries if known is not None else 0
    return TaskRow(
        slot,
        task.state.code,
        _attempt_count(task),
        max(task.try_number, 0),
        retries if task.max_tries is None or task.max_tries < 0 else task.max_tries,
        False,
        0,
        0,
        task.queued_at or 0,
        task.started_at or 0,
        (task.ended_at or 0) if task.state in FINISHED else 0,
        task.reason,
        None,
        task.task_id,
        task.map_index,
        task.length,
    )


def _was_run(task: c.ImportedTask) -> bool:
    """Whether the last try of the task instance has ended, so that the try is shown as an attempt."""
    return task.state in _ENDED and task.started_at is not None


def _attempt_count(task: c.ImportedTask) -> int:
    return len(task.tries) + _was_run(task)


def _attempts(slot: int, task: c.ImportedTask, origin: str) -> Iterator[AttemptRow]:
    """Give the tries of a task instance, each with a fence of its own: the earlier ones, and the last one if it has ended."""
    for fence, one in enumerate(task.tries, 1):
        began, ended = one.started_at, one.ended_at or one.started_at
        yield AttemptRow(slot, fence, one.try_number, origin, one.queued_at, None, None, began, ended, one.outcome, None)
    if _was_run(task):
        yield AttemptRow(
            slot,
            _attempt_count(task),
            max(task.try_number, 1),
            origin,
            task.queued_at,
            None,
            None,
            task.started_at,
            task.ended_at or task.started_at,
            task.state.value,
            task.reason,
        )


def _hostnames(tasks: Sequence[c.ImportedTask]) -> dict[tuple[int, int], str]:
    found = {}
    for slot, task in enumerate(tasks):
        names = [one.hostname for one in task.tries] + [task.hostname] * _was_run(task)
        found.update({(slot, fence): name for fence, name in enumerate(names, 1) if name})
    return found


def import_position(context: CommandContext, command: c.ImportPosition) -> c.ImportPositionResult:
    """Move a schedule forward.

    Raises:
        NotFound: there is no such DAG.
        Conflict: the position has no date.
    """
    plan = context.store.need_dag(command.dag_id)
    if command.logical_date is None:
        if command.run_after is None:
            raise Conflict(f"the position of DAG {command.dag_id} has neither a logical date nor the start of a run")
        return _advanced(context, command.dag_id, (None, None, None, command.run_after))
    start = command.logical_date if command.interval_start is None else command.interval_start
    end = command.interval_end
    if end is None:
        end = end_of_interval(schedule_of(plan), command.logical_date, context.clock.wall())
    return _advanced(context, command.dag_id, (command.logical_date, start, end, end))


def _advanced(
    context: CommandContext, dag_id: str, last: tuple[int | None, int | None, int | None, int]
) -> c.ImportPositionResult:
    moved = context.store.advance_schedule(dag_id, last)
    if moved:
        context.effects.dags.add(dag_id)
    return c.ImportPositionResult(moved)


def import_asset_events(context: CommandContext, command: c.ImportAssetEvents) -> c.ImportAssetEventsResult:
    """Store events with the DAGs for which they wait. They do not go to other DAGs: Airflow has decided about them."""
    created = 0
    for one in command.events:
        source = (one.source_dag, one.source_run, one.source_task, one.source_index)
        origin = "import:" + "/".join(map(str, (one.at, *source, one.partition_key)))
        extra = msgspec.json.encode(one.extra) if one.extra else None
        event = NewAssetEvent(
            *(one.name, one.uri, one.group, extra, one.at, None, tuple(one.aliases)),
            *source,
            origin,
            one.partition_key,
        )
        created += context.store.import_asset_event(event, one.waits, one.consumed)
        context.effects.dags.update(dag_id for dag_id, _ in one.waits)
    return c.ImportAssetEventsResult(created)


def end_of_interval(schedule: Schedule, start: int, now: int) -> int:
    """Return the end of the data interval that begins at `start`: the next time of the schedule, or `start` if it has none."""
    try:
        following = next_run(schedule, RunTimes(start, start, start, start), Bounds(None, None, True), now)
    except ScheduleError:  # a custom timetable
        return start
    return start if following is None else following.run_after
