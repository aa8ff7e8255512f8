"""`clear`: forget what task instances came to, so that they run again. Mixed into the other commands, see `commands.py`."""

from __future__ import annotations

from typing import Any

from tradewind.kernel.rules import selection
from tradewind.model.errors import Conflict
from tradewind.model.states import OCCUPYING, TaskState
from tradewind.platform.clock import Clock
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.external_markers import clearable_beyond
from tradewind.scheduler.commands.note import checked_note
from tradewind.scheduler.commands.selection import Choice, room_is_up, steps, told
from tradewind.scheduler.config import SchedulerConfig
from tradewind.store.port import Store

Args = dict[str, Any]


class ClearCommands:
    """See the module."""

    store: Store
    clock: Clock
    config: SchedulerConfig

    def do_clear(self, args: Args, actor: str, effects: Effects) -> Args:
        """Which task instances: see `choosing`. only_failed, only_running, reset_dag_runs? (default yes), not_running
        (refuse where one runs), dry_run, reason, note.

        → the task instances concerned, each with its state and what it comes `to`, with the setups and teardowns that they need
        and what external marks add; and `next`: where to go on (`after`), None when all is done. A bounded step of whole runs,
        the oldest first: repeat it with `after` until it is.

        Without `reset_dag_runs` a run that has ended stays as it is, and nothing of it runs before it is queued by hand.
        """
        store, now, dry_run = self.store, self.clock.wall(), bool(args.get("dry_run"))
        choice, note = Choice(store, args), checked_note(args.get("note"))
        flags = {name: bool(args.get(name)) for name in ("only_failed", "only_running")}
        touched: list[Args] = []
        after, looked = None, 0
        for row in steps(choice.runs, args.get("after")):
            if room_is_up(len(touched), looked, self.config.batch_max_rows):
                break
            looked += row.task_count
            chosen = selection.with_setups(choice.topology(row), choice.of(row))
            found = [one for one in store.clearable(row, chosen, **flags) if selection.holds(chosen, one[1], one[2])]
            for run, part in [(row, found), *clearable_beyond(store, row, found, **flags)]:
                for _, task_id, map_index, state in part:
                    if args.get("not_running") and state in OCCUPYING:
                        raise Conflict(f"{task_id} in {run.run_id} is {state.value}; nothing was cleared")
                    to = TaskState.RESTARTING if state in OCCUPYING else TaskState.NONE
                    touched.append(told(run, task_id, map_index, state.value, to.value))
                if part and not dry_run:
                    slots = [slot for slot, *_ in part]
                    reset = bool(args.get("reset_dag_runs", True))
                    store.clear(run.id, slots, actor, now, args.get("reason") or "", reset_run=reset)
                    if note is not None:
                        store.note_tasks(run.id, slots, note, actor, now)
                    effects.runs.add(run.id)
                    effects.dags.add(run.dag_id)
            after = row.run_after, row.id
        else:
            after = None
        return {"task_instances": touched, "dry_run": dry_run, "next": after}
