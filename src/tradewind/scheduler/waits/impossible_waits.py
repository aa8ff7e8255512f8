"""Waits that can never end, as far as the store knows: which, why, and what would help.

Such a wait does not fail: a person may still trigger the missing run. It is shown by `tradewind why` and `tradewind waits
list`, and reported once in the scheduler's log (`impossible_wait_reporter`).
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterable, Iterator

from tradewind.kernel.causes import pattern
from tradewind.kernel.explain import Blocker
from tradewind.model.definition import CustomSchedule, DagDefinition
from tradewind.model.errors import did_you_mean
from tradewind.model.moments import iso
from tradewind.model.rows import DagPlan, RunRow
from tradewind.model.states import FINISHED, FINISHED_RUNS
from tradewind.model.waits import RunRef, TasksWait, tasks_waits
from tradewind.scheduler.attempts.task_requests import asked_runs, asked_tasks, task_states
from tradewind.scheduler.dags.schedule import schedule_of
from tradewind.scheduler.explain.why_run import of_date
from tradewind.store.port import RowReader

NAMED_MAX = 3
"""How many task instances or dates of one wait are named at most."""
CIRCLE_MAX = 2000
"""How many waits are followed at most to find out whether they wait for each other."""

_FINISHED = frozenset(state.value for state in FINISHED)
_RUN_FINISHED = frozenset(state.value for state in FINISHED_RUNS)


def why_impossible(store: RowReader, run: RunRow, slot: int, waits: Iterable[TasksWait], now: int) -> list[Blocker]:
    """Return why waits for tasks or runs can never end; an empty list: they may end by themselves.

    Args:
        run, slot: the task instance that waits.
        waits: what it waits for.
    """
    found: list[Blocker] = []
    for wait in waits:
        found += _of_wait(store, wait, now)
    circle = circle_of(store, run, slot)
    if circle:
        text = f"It waits in a circle, in which each task instance waits for the next one: {' → '.join(circle)}."
        found.append(
            Blocker("waits_in_a_circle", text, "one of them is marked, or its run is set to a finished state", by_hand=True)
        )
    return found


def _of_wait(store: RowReader, wait: TasksWait, now: int) -> list[Blocker]:
    plan = store.dag(wait.dag_id)
    if plan is None:
        text = f"There is no DAG {wait.dag_id!r}.{did_you_mean(wait.dag_id, store.dag_ids())}"
        return [Blocker("waits_for_nothing", text, "a file with this DAG is there", by_hand=True)]
    there = {ref: run for run, ref in asked_runs(store, wait)}
    found: list[Blocker] = []
    missing = [ref for ref in wait.run_refs() if ref not in there]
    unfinished = [run.run_id for run in there.values() if run.state not in FINISHED_RUNS]
    if plan.is_paused and plan.is_active and (unfinished or missing):
        held = f"its run {unfinished[0]!r} does not continue" if unfinished else f"it has no run of {_named(missing[0])}"
        text = f"DAG {wait.dag_id!r}, which it waits for, is paused: {held}."
        command = f"tradewind dags unpause {plan.dag_id}"
        found.append(Blocker("waits_for_paused", text, "that DAG is unpaused", command=command, by_hand=True))
    for ref in missing[:NAMED_MAX]:
        found += _no_run(plan, ref, now)
    found += list(_wrong_end(store, wait))[:NAMED_MAX]
    for run in list(there.values())[:NAMED_MAX]:
        found += _in_run(store.definition(run.version), wait, run)
    return list({one.sentence: one for one in found}.values())


# --- a missing run ---------------------------------------------------------------------------------------------------------


def _no_run(plan: DagPlan, ref: RunRef, now: int) -> list[Blocker]:
    """Return why a run that is waited for will not be created."""
    name = f"DAG {plan.dag_id!r}"
    if isinstance(ref, str):
        text = f"{name} has no run {ref!r}."
        command = f"tradewind dags trigger {plan.dag_id} --run-id {shlex.quote(ref)}"
        return [Blocker("waits_for_nothing", text, "a run with this id is created", command=command, by_hand=True)]
    if not plan.is_active:
        text = f"{name} is not in the DAG folder any more (it was in {plan.file}), and has no run of {iso(ref)}."
        return [Blocker("waits_for_nothing", text, "a file with the DAG is there again", by_hand=True)]
    if isinstance(schedule_of(plan), CustomSchedule):
        return []  # only the custom timetable knows its dates
    return [
        one._replace(rule="waits_for_no_run", sentence=f"{name} has no run of {iso(ref)}: {_uncapitalized(one.sentence)}")
        for one in of_date(plan, ref, now)
        if one.rule != "not_due"
    ]


def _named(ref: RunRef) -> str:
    return str(iso(ref)) if isinstance(ref, int) else repr(ref)


def _uncapitalized(sentence: str) -> str:
    """Return a sentence with a small first letter, to follow a colon."""
    return sentence[0].lower() + sentence[1:] if sentence.startswith(("Its ", "The ", "It ")) else sentence


# --- an existing run -----------------------------------------------------------------------------------------------------------


def _wrong_end(store: RowReader, wait: TasksWait) -> Iterator[Blocker]:
    """Yield what has ended already in a state that does not end the wait."""
    good = frozenset((*wait.allowed, *wait.skipped, *wait.failed))
    for run, _, task_id, state in task_states(store, wait):
        ends = _RUN_FINISHED if task_id is None else _FINISHED
        if state in ends and state not in good:
            what = (
                f"Run {run.run_id!r} of DAG {run.dag_id!r}" if task_id is None else f"{run.dag_id}.{task_id} in {run.run_id!r}"
            )
            text = f"{what} is {state} already; only {' or '.join(wait.allowed)} ends the wait."
            command = f"tradewind tasks clear {run.dag_id} --run-id {shlex.quote(run.run_id)}"
            if task_id is not None:
                command += f" -t {pattern([task_id])}"
                # a task instance that ended without running ends in the same state again if it is cleared alone
                command += {"upstream_failed": " --upstream --only-failed", "skipped": " --upstream"}.get(state, "")
            yield Blocker("waits_for_other_end", text, "it is cleared, or marked", command=command, by_hand=True)


def _in_run(definition: DagDefinition, wait: TasksWait, run: RunRow) -> Iterator[Blocker]:
    known = [task.task_id for task in definition.tasks]
    for task_id in wait.task_ids:
        if task_id not in known:
            text = f"Run {run.run_id!r} of DAG {run.dag_id!r} has no task {task_id!r}.{did_you_mean(task_id, known)}"
            yield Blocker("waits_for_nothing", text, "the task is there, and the run is cleared", by_hand=True)
    groups = [group.group_id for group in definition.groups]
    if wait.group is not None and not asked_tasks(wait, definition):
        if wait.group in groups:
            text = f"Task group {wait.group!r} of DAG {run.dag_id!r} has no tasks."
        else:
            text = f"DAG {run.dag_id!r} has no task group {wait.group!r}.{did_you_mean(wait.group, groups)}"
        yield Blocker("waits_for_nothing", text, "the group is there, and the run is cleared", by_hand=True)


# --- circles -----------------------------------------------------------------------------------------------------------------


_Waiter = tuple[int, int]
"""Run and slot of a task instance that waits."""


def circle_of(store: RowReader, run: RunRow, slot: int) -> list[str]:
    """Return the names of task instances that wait for each other, from this one back to it; empty where there is no circle.

    A task instance waits for another one if that one, or a task instance upstream of what it waits for, has to continue first.
    """
    start = (run.id, slot)
    before: dict[_Waiter, _Waiter] = {}
    todo = deque([start])
    while todo and len(before) < CIRCLE_MAX:
        waiter = todo.popleft()
        for other in _waits_for(store, waiter):
            if other == start:
                chain = [waiter]
                while chain[-1] != start:
                    chain.append(before[chain[-1]])
                return [_name(store, one) for one in (*reversed(chain), start)]
            if other not in before:
                before[other] = waiter
                todo.append(other)
    return []


def _name(store: RowReader, waiter: _Waiter) -> str:
    run = store.run(waiter[0])
    found = next((one for one in store.open_waits(run=waiter[0]) if one.slot == waiter[1]), None)
    if run is None or found is None:
        return "a task instance that has ended"
    which = f"[{found.map_index}]" if found.map_index >= 0 else ""
    return f"{run.dag_id}.{found.task_id}{which} in {run.run_id!r}"


def _waits_for(store: RowReader, waiter: _Waiter) -> Iterator[_Waiter]:
    """Yield the waiting task instances that have to continue before this one can."""
    for waiting in store.open_waits(run=waiter[0]):
        if waiting.slot == waiter[1]:
            for wait in tasks_waits(waiting.deferral.wait):
                yield from _targets(store, wait)


def _targets(store: RowReader, wait: TasksWait) -> Iterator[_Waiter]:
    for run, _ in asked_runs(store, wait):
        waiting = store.open_waits(run=run.id)
        if not waiting:
            continue
        if not wait.task_ids and wait.group is None:
            yield from ((run.id, one.slot) for one in waiting)
            continue
        definition = store.definition(run.version)
        wanted = asked_tasks(wait, definition)
        unfinished = [
            task_id
            for task_id, codes in store.states_of(run.id, wanted).items()
            if any(code not in _FINISHED_CODES for code in codes)
        ]
        relevant = _with_upstream(definition, unfinished)
        yield from ((run.id, one.slot) for one in waiting if one.task_id in relevant)


_FINISHED_CODES = frozenset(state.code for state in FINISHED)


def _with_upstream(definition: DagDefinition, task_ids: Iterable[str]) -> set[str]:
    """Return these tasks and all tasks upstream of them."""
    upstream = {task.task_id: task.upstream for task in definition.tasks}
    found, todo = set[str](), list(task_ids)
    while todo:
        task_id = todo.pop()
        if task_id not in found:
            found.add(task_id)
            todo.extend(upstream.get(task_id, ()))
    return found
