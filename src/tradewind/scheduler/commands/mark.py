"""Commands that set states by hand: `mark` of task instances, and `set_run_state` of a run.

Both edit the store, under new fences, and a live scheduler then builds the run from it again, as after a clear. The edit ends the
live attempts: they are stopped (TERM, on_kill, KILL), and their later reports are refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.executors.registry import ExecutorRegistry
from tradewind.kernel.rules import selection
from tradewind.kernel.rules.run_by_hand import new_states
from tradewind.kernel.topology import Topology
from tradewind.model.counts import counted
from tradewind.model.errors import Conflict, did_you_mean
from tradewind.model.rows import Marked, RunRow
from tradewind.model.states import FAILURES, FINISHED_RUNS, RunState, TaskState
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.mark_listeners import queue_run_listeners, queue_task_listeners
from tradewind.scheduler.commands.notes import checked_note
from tradewind.scheduler.commands.selection import (
    TaskSelection,
    is_step_full,
    refuse_other_changes,
    refuse_unwritten,
    runs_after,
)
from tradewind.store.port import Store
from tradewind.wire import commands as c

MARKS = (TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED)
RUN_MARKS = (RunState.SUCCESS, RunState.FAILED, RunState.QUEUED)

Found = tuple[int, str, int, TaskState]
"""Slot, task id, map index and state, as `Store.task_instances_of` returns them."""


def mark_tasks(context: CommandContext, command: c.MarkTasks) -> c.EditTasksResult:
    """Mark the selected task instances. Failed ones below those that are marked success or skipped are cleared and decided again.

    Raises:
        NotFound: there is no such DAG, run or task.
        Conflict: the task instances cannot get this state, or are still being written.
    """
    state = TaskState(_one_of(command.state, MARKS, "a task instance can be marked"))
    store, now, actor = context.store, context.clock.wall(), context.actor
    selected, note, reason = TaskSelection(store, command), checked_note(command.note), command.reason or ""
    touched: list[c.EditedTask] = []
    ended: list[str] = []
    after, looked = None, 0
    for row in runs_after(selected.runs, command.after):
        if is_step_full(len(touched), looked, context.config.batch_max_rows):
            break
        looked += row.task_count
        chosen = selected.of(row)
        marked = markable(store, row, chosen, state)
        again = failed_below(store, row, selected.topology(row), marked, state)
        touched += _edited(row, marked, state) + _edited(row, again, TaskState.NONE)
        if marked:
            refuse_unwritten(row)
        if marked and row.state in FINISHED_RUNS and not again:
            ended.append(row.run_id)
        if marked and not command.dry_run:
            slots = [slot for slot, *_ in marked]
            executors = _executors(context, selected.topology(row), marked)
            edit = store.mark(row.id, slots, state, actor, now, reason, executors=executors)
            _stop(edit, state, context.effects)
            if again:
                cause = (
                    f"{counted(len(marked), 'task instance')} above {'was' if len(marked) == 1 else 'were'} marked {state.value}"
                    + (f": {reason}" if reason else "")
                )
                store.clear(row.id, [slot for slot, *_ in again], actor, now, cause)
            queue_task_listeners(context, row, selected.topology(row), slots, state)
            if note is not None:
                store.set_task_notes(row.id, slots, note, actor, now)
            context.effects.runs.add(row.id)
            context.effects.dags.add(row.dag_id)
        after = row.run_after, row.id
    else:
        after = None
    refuse_other_changes(command, touched)
    return c.EditTasksResult(touched, command.dry_run, after, ended)


def set_run_state(context: CommandContext, command: c.SetRunState) -> c.SetRunStateResult:
    """Set the state of a run, and mark its unfinished task instances.

    Raises:
        NotFound: there is no such DAG or run.
        Conflict: a run cannot be set to this state, or its task instances are still being written.
    """
    state = RunState(_one_of(command.state, RUN_MARKS, "a run can be set to"))
    store, now, actor, reason = context.store, context.clock.wall(), context.actor, command.reason or ""
    row, note = store.need_run(command.dag_id, command.run_id), checked_note(command.note)
    refuse_unwritten(row)
    topology = Topology(store.definition(row.version))
    standing = store.task_instances_of(row, None)  # with those of removed tasks, whose attempts may still run
    plan = new_states(topology, standing if state is not RunState.QUEUED else (), state)
    by_slot = {one[0]: one for one in standing}
    executors = _executors(context, topology, standing)
    touched: list[c.EditedTask] = []
    for to, slots in plan.marks.items():
        touched += _edited(row, [by_slot[slot] for slot in slots], to)
    goal = RunState.RUNNING if plan.teardowns and state is RunState.FAILED else state
    # A queued or running run is not queued again. A run with teardowns left that is set to success ends by its own verdict.
    stays = (state is RunState.QUEUED and row.state not in FINISHED_RUNS) or (state is RunState.SUCCESS and plan.teardowns)
    if not command.dry_run:
        for to, slots in plan.marks.items():
            _stop(store.mark(row.id, slots, to, actor, now, reason, executors=executors), to, context.effects)
            stopped = [slot for slot in slots if by_slot[slot][3] is TaskState.RUNNING]
            queue_task_listeners(context, row, topology, stopped, to)
        if not stays and (row.state is not state or plan.teardowns):
            store.set_run_state(row.id, goal, actor, now, reason)
            if goal is state:
                queue_run_listeners(context, row, topology, state)
        if note is not None:
            store.set_run_note(row.id, note or None, actor, now)
        context.effects.runs.add(row.id)
        context.effects.dags.add(row.dag_id)
    left = row.state if stays or goal is RunState.RUNNING else state
    teardowns = [c.UnfinishedTeardown(*by_slot[slot][1:3]) for slot in plan.teardowns]
    return c.SetRunStateResult(row.dag_id, row.run_id, row.state.value, left.value, touched, teardowns, command.dry_run)


def _edited(row: RunRow, found: Iterable[Found], to: TaskState) -> list[c.EditedTask]:
    return [
        c.EditedTask(row.dag_id, row.run_id, task_id, map_index, state.value, to.value)
        for _, task_id, map_index, state in found
    ]


def _stop(marked: Marked, state: TaskState, effects: Effects) -> None:
    """Let the attempts be stopped that the mark has ended."""
    run = marked.run.id
    effects.stops += [((run, slot, fence), f"it was marked {state.value} by hand") for slot, fence in marked.live]


def _executors(context: CommandContext, topology: Topology, found: Iterable[Found]) -> dict[int, str]:
    """Slot → name of the executor that runs the task instance. It is recorded with an attempt that is stopped before its start."""
    registry = ExecutorRegistry(context.config.executor, context.config.parallelism)
    tasks = topology.definition.task
    return {
        slot: registry.resolve(task.executor if (task := tasks(task_id)) is not None else None) for slot, task_id, *_ in found
    }


def markable(store: Store, row: RunRow, chosen: selection.Chosen, state: TaskState) -> list[Found]:
    """Return the task instances that the mark would change, without those that already have the state, and without removed ones."""
    return [
        one
        for one in store.task_instances_of(row, chosen)
        if one[3] not in (state, TaskState.REMOVED) and selection.holds(chosen, one[1], one[2])
    ]


def failed_below(store: Store, row: RunRow, topology: Topology, marked: list[Found], state: TaskState) -> list[Found]:
    """Return failed task instances downstream of those that are marked success or skipped, with their setups. They are cleared."""
    if state is TaskState.FAILED or not marked:
        return []
    gone = {one[0] for one in marked}
    sources: selection.Chosen = {}
    for _, task_id, map_index, _ in marked:
        held = sources.get(task_id, frozenset[int]())
        sources[task_id] = None if map_index < 0 or held is None else held | {map_index}
    below = selection.relatives(topology, sources, topology.downstream)
    found = [one for one in store.task_instances_of(row, below) if selection.holds(below, one[1], one[2])]
    failed = {one[1] for one in found if one[0] not in gone and one[3] in FAILURES}
    if not failed:
        return []
    needed = selection.with_setups(topology, {task_id: below[task_id] for task_id in failed})
    return [
        one
        for one in store.task_instances_of(row, needed)
        if one[0] not in gone and one[3] in FAILURES and selection.holds(needed, one[1], one[2])
    ]


def _one_of(given: str, known: tuple[TaskState, ...] | tuple[RunState, ...], may: str) -> str:
    words = [state.value for state in known]
    if given not in words:
        raise Conflict(f"{may} {', '.join(words[:-1])} or {words[-1]}, not {given!r}.{did_you_mean(given, words)}")
    return given
