"""The command `clear`: reset task instances, so that they run again."""

from __future__ import annotations

from tradewind.kernel.rules import selection
from tradewind.model.errors import Conflict
from tradewind.model.states import OCCUPYING, TaskState
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.external_markers import clearable_beyond
from tradewind.scheduler.commands.notes import checked_note
from tradewind.scheduler.commands.selection import TaskSelection, is_step_full, refuse_other_changes, runs_after
from tradewind.store.port import Store
from tradewind.wire import commands as c


def clear_tasks(context: CommandContext, command: c.ClearTasks) -> c.EditTasksResult:
    """Clear the selected task instances, with the setups and teardowns that they need, and the tasks that external markers name.

    Raises:
        NotFound: there is no such DAG, run or task.
        Conflict: `not_running` is given and a task instance runs; external markers form a chain that is too long.
    """
    store, now, effects = context.store, context.clock.wall(), context.effects
    selected, note = TaskSelection(store, command), checked_note(command.note)
    only = {"only_failed": command.only_failed, "only_running": command.only_running}
    touched: list[c.EditedTask] = []
    after, looked = None, 0
    for row in runs_after(selected.runs, command.after):
        if is_step_full(len(touched), looked, context.config.batch_max_rows):
            break
        looked += row.task_count
        chosen = selection.with_setups(selected.topology(row), selected.of(row))
        found = [one for one in store.clearable(row, chosen, **only) if selection.holds(chosen, one[1], one[2])]
        for run, part in [(row, found), *clearable_beyond(store, row, found, **only)]:
            for _, task_id, map_index, state in part:
                if command.not_running and state in OCCUPYING:
                    raise Conflict(f"{task_id} in {run.run_id} is {state.value}; nothing was cleared")
                to = TaskState.RESTARTING if state in OCCUPYING else TaskState.NONE
                touched.append(c.EditedTask(run.dag_id, run.run_id, task_id, map_index, state.value, to.value))
            if part and not command.dry_run:
                slots = [slot for slot, *_ in part]
                reason = command.reason or ""
                latest = moves_to_latest(store, run.dag_id, command.latest_version, otherwise=False)
                store.clear(run.id, slots, context.actor, now, reason, reset_run=command.reset_dag_runs, to_latest=latest)
                if note is not None:
                    store.set_task_notes(run.id, slots, note, context.actor, now)
                effects.runs.add(run.id)
                effects.dags.add(run.dag_id)
        after = row.run_after, row.id
    else:
        after = None
    refuse_other_changes(command, touched)
    return c.EditTasksResult(touched, command.dry_run, after)


def moves_to_latest(store: Store, dag_id: str, wanted: bool | None, *, otherwise: bool) -> bool:
    """Whether a clear moves the runs of a DAG to the newest version of its bundle: the person decides, otherwise the DAG."""
    if wanted is not None:
        return wanted
    of_dag = store.current_definition(dag_id).rerun_with_latest_version
    return otherwise if of_dag is None else of_dag
