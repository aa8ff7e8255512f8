"""Commands that delete one DAG run, or one task instance of it."""

from __future__ import annotations

from tradewind.model.errors import Conflict, NotFound
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import RunRow
from tradewind.model.states import FINISHED_RUNS, TaskState
from tradewind.scheduler.commands.context import CommandContext
from tradewind.store.port import RowReader
from tradewind.wire import commands as c


def delete_run(context: CommandContext, command: c.DeleteRun) -> c.DeleteRunResult:
    """Raises NotFound; Conflict: the run has not ended."""
    row = _ended_run(context.store, command.dag_id, command.run_id)
    removed = context.store.delete_run(row.id, context.actor, context.clock.wall())
    context.effects.dags.add(row.dag_id)
    context.effects.removed += removed.removed
    return c.DeleteRunResult(removed.spills)


def delete_task_instance(context: CommandContext, command: c.DeleteTaskInstance) -> None:
    """Raises NotFound; Conflict: the run has not ended."""
    store, now = context.store, context.clock.wall()
    row = _ended_run(store, command.dag_id, command.run_id)
    found = [one for one in store.task_instances_of(row, [command.task_id]) if one[2] == command.map_index]
    if not found:
        raise NotFound(
            f"the run {row.run_id} has no task instance of {command.task_id!r}"
            + (f" with map index {command.map_index}" if command.map_index >= 0 else "")
        )
    store.mark(row.id, [slot for slot, *_ in found], TaskState.REMOVED, context.actor, now, "deleted")
    store.delete_xcoms(row.id, command.task_id, command.map_index)
    store.delete_task_state_entries(row.id, command.task_id, command.map_index)


def _ended_run(store: RowReader, dag_id: str, run_id: str) -> RunRow:
    store.need_dag(dag_id)
    row = store.need_run(dag_id, run_id)
    if row.state not in FINISHED_RUNS:
        raise Conflict(english(phrase("error_run_active", run=row.run_id, state=row.state.value)))
    return row
