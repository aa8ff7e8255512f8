"""Commands on notes, which people write on DAG runs and task instances."""

from __future__ import annotations

from tradewind.kernel.rules import selection
from tradewind.model.errors import Conflict, NotFound
from tradewind.model.phrases import english, phrase
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.selection import TaskSelection
from tradewind.wire import commands as c

NOTE_MAX = 1000
"""Maximum number of characters; Airflow's limit."""


def note_run(context: CommandContext, command: c.NoteRun) -> c.NoteRunResult:
    row = context.store.need_run(command.dag_id, command.run_id)
    row = context.store.set_run_note(row.id, checked_note(command.note) or None, context.actor, context.clock.wall())
    context.effects.noted[row.id] = row.note
    return c.NoteRunResult(row.dag_id, row.run_id, row.note)


def note_task(context: CommandContext, command: c.NoteTask) -> c.NoteTaskResult:
    store, task_id, map_index = context.store, command.task_id, command.map_index
    row = store.need_run(command.dag_id, command.run_id)
    if map_index is None:
        which = c.EditTasks(row.dag_id, row.run_id, task_ids=[task_id])
    else:
        which = c.EditTasks(row.dag_id, row.run_id, instances=[(task_id, map_index)])
    chosen = TaskSelection(store, which).of(row)
    found = [one for one in store.task_instances_of(row, chosen) if selection.holds(chosen, one[1], one[2])]
    if not found:
        index = "" if map_index is None else f" with map index {map_index}"
        raise NotFound(f"the run {row.run_id} has no task instance of {task_id!r}{index}")
    note = checked_note(command.note) or None
    store.set_task_notes(row.id, [slot for slot, *_ in found], note, context.actor, context.clock.wall())
    return c.NoteTaskResult(row.dag_id, row.run_id, task_id, len(found), note)


def checked_note(note: str | None) -> str | None:
    """Return the note. Raises Conflict: it is too long."""
    if note is not None and len(note) > NOTE_MAX:
        raise Conflict(english(phrase("error_note_long", most=NOTE_MAX, count=len(note))))
    return note
