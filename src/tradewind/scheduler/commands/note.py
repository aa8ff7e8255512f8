"""Notes of people on runs and task instances. Mixed into the other commands, see `commands.py`."""

from __future__ import annotations

from typing import Any

from tradewind.kernel.rules import selection
from tradewind.model.errors import Conflict, NotFound
from tradewind.platform.clock import Clock
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.selection import Choice
from tradewind.store.port import Store

Args = dict[str, Any]

NOTE_MAX = 1000
"""Characters; Airflow's limit."""


class NoteCommands:
    """See the module."""

    store: Store
    clock: Clock

    def do_note_run(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id, run_id, note (none or empty: it goes) → the run's id and note."""
        row = self.store.need_run(args["dag_id"], args["run_id"])
        row = self.store.note_run(row.id, checked_note(args.get("note")) or None, actor, self.clock.wall())
        effects.noted[row.id] = row.note
        return {"dag_id": row.dag_id, "run_id": row.run_id, "note": row.note}

    def do_note_task(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id, run_id, task_id, map_index? (none: all of a mapped task), note → how many task instances have it now."""
        row = self.store.need_run(args["dag_id"], args["run_id"])
        task_id, map_index = str(args["task_id"]), args.get("map_index")
        which: Args = {"instances": [[task_id, map_index]]} if map_index is not None else {"task_ids": [task_id]}
        chosen = Choice(self.store, {"dag_id": row.dag_id, "run_id": row.run_id, **which}).of(row)
        found = [one for one in self.store.standing(row, chosen) if selection.holds(chosen, one[1], one[2])]
        if not found:
            index = "" if map_index is None else f" with map index {map_index}"
            raise NotFound(f"the run {row.run_id} has no task instance of {task_id!r}{index}")
        note = checked_note(args.get("note")) or None
        self.store.note_tasks(row.id, [slot for slot, *_ in found], note, actor, self.clock.wall())
        return {"dag_id": row.dag_id, "run_id": row.run_id, "task_id": task_id, "task_instances": len(found), "note": note}


def checked_note(note: Any) -> str | None:
    """Raises Conflict: it is too long."""
    text = None if note is None else str(note)
    if text is not None and len(text) > NOTE_MAX:
        raise Conflict(f"a note has at most {NOTE_MAX} characters; this one has {len(text)}")
    return text
