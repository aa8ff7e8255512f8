"""`mark` and `set_run_state`: say by hand what task instances or a run have come to. Mixed into the others, see `commands.py`.

Both go the way of a clear: the store is edited under new fences, and a live scheduler builds the run anew from it. Attempts that
were alive have ended with the edit; they are stopped (TERM, on_kill, KILL), and what they still say is refused.
"""

from __future__ import annotations

from typing import Any

from tradewind.kernel.rules import selection
from tradewind.kernel.rules.run_by_hand import new_states
from tradewind.kernel.topology import Topology
from tradewind.model.errors import Conflict, did_you_mean
from tradewind.model.rows import Marked, RunRow
from tradewind.model.states import FAILURES, FINISHED_RUNS, RunState, TaskState
from tradewind.platform.clock import Clock
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.note import checked_note
from tradewind.scheduler.commands.selection import Args, Choice, refuse_unwritten, room_is_up, steps, told
from tradewind.scheduler.config import SchedulerConfig
from tradewind.store.port import Store

MARKS = (TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED)
RUN_MARKS = (RunState.SUCCESS, RunState.FAILED, RunState.QUEUED)

Found = tuple[int, str, int, TaskState]
"""Slot, task id, map index and state, as `Store.standing` gives them."""


class MarkCommands:
    """See the module."""

    store: Store
    clock: Clock
    config: SchedulerConfig

    def do_mark(self, args: Args, actor: str, effects: Effects) -> Args:
        """Which task instances: see `choosing`. state ("success", "failed", "skipped"), dry_run, reason, note.

        → the task instances concerned, each with its state and what it comes `to`: those that are marked, and what failed below
        one that is marked success or skipped, which is cleared (`to` none) and judged again. `ended`: runs that had ended and
        stay as they are, since nothing of them has to run. `next` as in `clear`: a bounded step of whole runs.
        """
        state = TaskState(_one_of(args["state"], MARKS, "a task instance can be marked"))
        store, now, dry_run = self.store, self.clock.wall(), bool(args.get("dry_run"))
        choice, note, reason = Choice(store, args), checked_note(args.get("note")), str(args.get("reason") or "")
        touched: list[Args] = []
        ended: list[str] = []
        after, looked = None, 0
        for row in steps(choice.runs, args.get("after")):
            if room_is_up(len(touched), looked, self.config.batch_max_rows):
                break
            looked += row.task_count
            chosen = choice.of(row)
            marked = markable(store, row, chosen, state)
            again = failed_below(store, row, choice.topology(row), marked, state)
            touched += [told(row, one[1], one[2], one[3].value, state.value) for one in marked]
            touched += [told(row, one[1], one[2], one[3].value, TaskState.NONE.value) for one in again]
            if marked:
                refuse_unwritten(row)
            if marked and row.state in FINISHED_RUNS and not again:
                ended.append(row.run_id)
            if marked and not dry_run:
                slots = [slot for slot, *_ in marked]
                self._stop(store.mark(row.id, slots, state, actor, now, reason, executor=self.config.executor), state, effects)
                if again:
                    cause = f"{len(marked)} task instances above were marked {state.value}" + (f": {reason}" if reason else "")
                    store.clear(row.id, [slot for slot, *_ in again], actor, now, cause)
                if note is not None:
                    store.note_tasks(row.id, slots, note, actor, now)
                effects.runs.add(row.id)
                effects.dags.add(row.dag_id)
            after = row.run_after, row.id
        else:
            after = None
        return {"task_instances": touched, "ended": ended, "dry_run": dry_run, "next": after}

    def do_set_run_state(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id, run_id, state ("success", "failed", "queued"), dry_run, reason, note → what was `before`, the state `now`, the
        task instances concerned as in `mark`, and `spared`: teardowns that run before the run ends.

        Raises:
            NotFound: no such DAG or run.
            Conflict: the state is none of these.
        """
        state = RunState(_one_of(args["state"], RUN_MARKS, "a run can be set to"))
        store, now, reason = self.store, self.clock.wall(), str(args.get("reason") or "")
        row, note = store.need_run(args["dag_id"], args["run_id"]), checked_note(args.get("note"))
        refuse_unwritten(row)
        topology = Topology(store.definition(row.version))
        standing = store.standing(row, topology.ids)
        plan = new_states(topology, standing if state is not RunState.QUEUED else (), state)
        places = {slot: (task_id, map_index, has.value) for slot, task_id, map_index, has in standing}
        touched = [told(row, *places[slot], to.value) for to, slots in plan.marks.items() for slot in slots]
        goal = RunState.RUNNING if plan.teardowns and state is RunState.FAILED else state
        # an active run is on its way already; one with teardowns left that is to succeed goes on to its own verdict
        stays = (state is RunState.QUEUED and row.state not in FINISHED_RUNS) or (state is RunState.SUCCESS and plan.teardowns)
        if not args.get("dry_run"):
            for to, slots in plan.marks.items():
                self._stop(store.mark(row.id, slots, to, actor, now, reason, executor=self.config.executor), to, effects)
            if not stays and (row.state is not state or plan.teardowns):
                store.set_run_state(row.id, goal, actor, now, reason)
            if note is not None:
                store.note_run(row.id, note or None, actor, now)
            effects.runs.add(row.id)
            effects.dags.add(row.dag_id)
        left = row.state if stays or goal is RunState.RUNNING else state
        return {
            "dag_id": row.dag_id,
            "run_id": row.run_id,
            "before": row.state.value,
            "now": left.value,
            "task_instances": touched,
            "spared": [{"task_id": places[slot][0], "map_index": places[slot][1]} for slot in plan.teardowns],
            "dry_run": bool(args.get("dry_run")),
        }

    @staticmethod
    def _stop(marked: Marked, state: TaskState, effects: Effects) -> None:
        run = marked.run.id
        effects.stops += [((run, slot, fence), f"it was marked {state.value} by hand") for slot, fence in marked.live]


def markable(store: Store, row: RunRow, chosen: selection.Chosen, state: TaskState) -> list[Found]:
    """What marking would change: not what has that state already, nor what was removed."""
    return [
        one
        for one in store.standing(row, chosen)
        if one[3] not in (state, TaskState.REMOVED) and selection.holds(chosen, one[1], one[2])
    ]


def failed_below(store: Store, row: RunRow, topology: Topology, marked: list[Found], state: TaskState) -> list[Found]:
    """What failed below task instances that are to be a success or skipped: it is cleared, with what it needs to run."""
    if state is TaskState.FAILED or not marked:
        return []
    gone = {one[0] for one in marked}
    sources: selection.Chosen = {}
    for _, task_id, map_index, _ in marked:
        held = sources.get(task_id, frozenset[int]())
        sources[task_id] = None if map_index < 0 or held is None else held | {map_index}
    below = selection.relatives(topology, sources, topology.downstream)
    found = [one for one in store.standing(row, below) if selection.holds(below, one[1], one[2])]
    failed = {one[1] for one in found if one[0] not in gone and one[3] in FAILURES}
    if not failed:
        return []
    needed = selection.with_setups(topology, {task_id: below[task_id] for task_id in failed})
    return [
        one
        for one in store.standing(row, needed)
        if one[0] not in gone and one[3] in FAILURES and selection.holds(needed, one[1], one[2])
    ]


def _one_of(given: Any, known: tuple[TaskState, ...] | tuple[RunState, ...], may: str) -> str:
    words = [state.value for state in known]
    if given not in words:
        raise Conflict(f"{may} {', '.join(words[:-1])} or {words[-1]}, not {given!r}.{did_you_mean(str(given), words)}")
    return str(given)
