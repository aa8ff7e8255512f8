"""Waits that can never end, as far as the store knows: which waits, why, and what a person can do.

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
from tradewind.model.moments import shown_moment
from tradewind.model.phrases import any_state, did_you_mean, phrase, then
from tradewind.model.rows import DagPlan, RunRow
from tradewind.model.states import FINISHED, FINISHED_RUNS
from tradewind.model.waits import RunRef, TasksWait, tasks_waits
from tradewind.scheduler.attempts.asked_tasks import asked_tasks
from tradewind.scheduler.attempts.task_requests import asked_runs, task_states
from tradewind.scheduler.dags.schedule import schedule_of
from tradewind.scheduler.explain.why_run import of_date
from tradewind.store.port import RowReader

NAMED_MAX = 3
"""Maximum number of task instances or dates of one wait that are named."""
CIRCLE_MAX = 2000
"""Maximum number of waits that are followed to find out whether they wait for each other."""

_FINISHED = frozenset(state.value for state in FINISHED)
_RUN_FINISHED = frozenset(state.value for state in FINISHED_RUNS)


def why_impossible(store: RowReader, run: RunRow, slot: int, waits: Iterable[TasksWait], now: int) -> list[Blocker]:
    """Return why waits for tasks or runs can never end; an empty list: they may end by themselves.

    Args:
        run, slot: the task instance that waits.
        waits: the waits of the task instance.
    """
    found: list[Blocker] = []
    for wait in waits:
        found += _of_wait(store, wait, now)
    circle = circle_of(store, run, slot)
    if circle:
        reason = phrase("circle", tasks=" → ".join(circle))
        found.append(Blocker("waits_in_a_circle", reason, phrase("ends_circle"), by_hand=True))
    return found


def _of_wait(store: RowReader, wait: TasksWait, now: int) -> list[Blocker]:
    plan = store.dag(wait.dag_id)
    if plan is None:
        reason = then(phrase("no_dag", dag=wait.dag_id), did_you_mean(wait.dag_id, store.dag_ids()))
        return [Blocker("waits_for_nothing", reason, phrase("ends_file"), by_hand=True)]
    there = {ref: run for run, ref in asked_runs(store, wait)}
    found: list[Blocker] = []
    missing = [ref for ref in wait.run_refs() if ref not in there]
    unfinished = [run.run_id for run in there.values() if run.state not in FINISHED_RUNS]
    if plan.is_paused and plan.is_active and (unfinished or missing):
        held = phrase("held_run", run=unfinished[0]) if unfinished else phrase("held_no_run", run=_named(missing[0]))
        reason, command = phrase("waits_for_paused", dag=wait.dag_id, held=held), f"tradewind dags unpause {plan.dag_id}"
        found.append(Blocker("waits_for_paused", reason, phrase("ends_that_dag_unpaused"), command=command, by_hand=True))
    for ref in missing[:NAMED_MAX]:
        found += _no_run(plan, ref, now)
    found += list(_wrong_end(store, wait))[:NAMED_MAX]
    for run in list(there.values())[:NAMED_MAX]:
        found += _in_run(store.definition(run.version), wait, run)
    return list({one.sentence: one for one in found}.values())


# --- a missing run ---------------------------------------------------------------------------------------------------------


def _no_run(plan: DagPlan, ref: RunRef, now: int) -> list[Blocker]:
    """Return why the run of a wait will not be created."""
    if isinstance(ref, str):
        reason = phrase("dag_has_no_run", dag=plan.dag_id, run=ref)
        command = f"tradewind dags trigger {plan.dag_id} --run-id {shlex.quote(ref)}"
        return [Blocker("waits_for_nothing", reason, phrase("ends_run_created"), command=command, by_hand=True)]
    date = shown_moment(ref)
    if not plan.is_active:
        reason = phrase("dag_gone", dag=plan.dag_id, file=plan.file, date=date)
        return [Blocker("waits_for_nothing", reason, phrase("ends_file_again"), by_hand=True)]
    if isinstance(schedule_of(plan), CustomSchedule):
        return []  # only the custom timetable knows its dates
    return [
        one._replace(rule="waits_for_no_run", reason=phrase("dag_has_no_date", dag=plan.dag_id, date=date, reason=one.reason))
        for one in of_date(plan, ref, now)
        if one.rule != "not_due"
    ]


def _named(ref: RunRef) -> str:
    return shown_moment(ref) if isinstance(ref, int) else repr(ref)


# --- an existing run -----------------------------------------------------------------------------------------------------------


def _wrong_end(store: RowReader, wait: TasksWait) -> Iterator[Blocker]:
    """Yield a blocker for each run or task instance that has already ended in a state that does not end the wait."""
    good = frozenset((*wait.allowed, *wait.skipped, *wait.failed))
    for run, _, task_id, state in task_states(store, wait):
        ends = _RUN_FINISHED if task_id is None else _FINISHED
        if state in ends and state not in good:
            states = any_state(wait.allowed)
            if task_id is None:
                reason = phrase("run_wrong_end", run=run.run_id, dag=run.dag_id, state=state, states=states)
            else:
                reason = phrase("task_wrong_end", dag=run.dag_id, task=task_id, run=run.run_id, state=state, states=states)
            command = f"tradewind tasks clear {run.dag_id} --run-id {shlex.quote(run.run_id)}"
            if task_id is not None:
                command += f" -t {pattern([task_id])}"
                # a task instance that ended without running ends in the same state again if it is cleared alone
                command += {"upstream_failed": " --upstream --only-failed", "skipped": " --upstream"}.get(state, "")
            yield Blocker("waits_for_other_end", reason, phrase("ends_cleared_or_marked"), command=command, by_hand=True)


def _in_run(definition: DagDefinition, wait: TasksWait, run: RunRow) -> Iterator[Blocker]:
    known = [task.task_id for task in definition.tasks]
    for task_id in wait.task_ids:
        if task_id not in known:
            reason = phrase("run_has_no_task", run=run.run_id, dag=run.dag_id, task=task_id)
            reason = then(reason, did_you_mean(task_id, known))
            yield Blocker("waits_for_nothing", reason, phrase("ends_task_and_clear"), by_hand=True)
    groups = [group.group_id for group in definition.groups]
    if wait.group is not None and not asked_tasks(wait, definition):
        if wait.group in groups:
            reason = phrase("group_empty", group=wait.group, dag=run.dag_id)
        else:
            reason = then(phrase("no_group", dag=run.dag_id, group=wait.group), did_you_mean(wait.group, groups))
        yield Blocker("waits_for_nothing", reason, phrase("ends_group_and_clear"), by_hand=True)


# --- circles -----------------------------------------------------------------------------------------------------------------


_Waiter = tuple[int, int]
"""Run and slot of a task instance that waits."""


def circle_of(store: RowReader, run: RunRow, slot: int) -> list[str]:
    """Return the names of task instances that wait for each other, from this one back to it; empty: there is no circle.

    A task instance waits for another one if the other one must continue first, or is upstream of a task that must end first.
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
    """Yield the waiting task instances that must continue before this one can."""
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
