"""Verification of a run against a newer definition of its DAG: which task instances are new, removed or restored.

`plan` compares the rows with the newer definition and writes nothing. `continue_plan` applies the plan, a bounded number of
rows per call. Until the whole plan is applied, nothing else of the run is decided, and the run belongs to its earlier version:
after a restart the rest of the plan is computed again from the rows.

* A task that has no row in the run gets one.
* A task that the definition does not have any more is `removed`, whatever its state was. A running attempt runs to its end
  first; its outcome is kept with the attempt, and then the task instance becomes `removed`, never `failed`.
* A removed task that is in the definition again starts from the beginning, with all its tries.
* A task instance that has not begun yet takes its retries and its upstream tasks from the newer definition.

Source: Airflow 3.3.2's `DagRun.verify_integrity` and `task_instance_scheduling_decisions`. Airflow also ends a running attempt
of a removed task; Airflow 1.10's documentation lets the attempt run, and so does Tradewind.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tradewind.kernel import events as e
from tradewind.kernel import expansion, mapping, step_causes
from tradewind.kernel.codes import NEVER, NONE, QUEUED, REMOVED, RESTARTING, RUNNING, SCHEDULED
from tradewind.kernel.rules import task_dates
from tradewind.kernel.run_data import RunData, VerificationPlan
from tradewind.kernel.run_steps import HOLDS_LIMITS, RunSteps
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.states import FINISHED

GONE = step_causes.TASK_GONE
BACK = step_causes.TASK_BACK
CHANGED = step_causes.TASK_CHANGED

_FINISHED = frozenset(state.code for state in FINISHED)
_STAYS = frozenset({REMOVED, RUNNING, RESTARTING})


class VerifiedVersion(NamedTuple):
    """The version of the DAG that the rows of a run were last verified against."""

    version: int
    definition: DagDefinition


def plan(run: RunData, rows: frozenset[int], before: VerifiedVersion) -> VerificationPlan:
    """Return what has to change in the rows for the newer definition.

    Args:
        rows: slots that have a row.
        before: the version that the run was last verified against.
    """
    topology, state, instances = run.topology, run.state, run.instances
    old = {task.task_id: task for task in before.definition.tasks}
    moment = run.facts.logical_date
    absent = {task for task, _ in task_dates.outside(topology, moment)} if moment is not None else set[int]()
    found = VerificationPlan(*(deque() for _ in VerificationPlan._fields))
    found.added.extend(number for number in topology.numbers if number not in rows)
    for slot in sorted(rows):
        code = state[slot]
        if slot in run.gone:
            if code in HOLDS_LIMITS:  # also a queued one: it counts until its removal is applied
                _keep_limits(run, found, slot, before.version)
            if code not in _STAYS:
                found.removed.append(slot)
            continue
        task = instances.task(slot)
        if code == REMOVED:
            if task not in absent and not _list_is_shorter(run, slot, task):
                found.restored.append(slot)
            continue
        was, now = old.get(topology.ids[task]), topology.tasks[task]
        if was is None or was == now or code in _FINISHED:
            continue
        if code in HOLDS_LIMITS and _limits(was) != _limits(now):
            _keep_limits(run, found, slot, before.version)
        if was.retries != now.retries and run.max_tries.get(slot) == was.retries:
            found.retries.append(slot)
        if code == SCHEDULED and run.started_at[slot] == NEVER and _waits_differently(was, now):
            found.changed.append(slot)
    return found


def plan_of_cleared(run: RunData) -> VerificationPlan | None:
    """Return a plan that removes again the deleted tasks that were cleared or marked; None if there are none."""
    found = VerificationPlan(*(deque() for _ in VerificationPlan._fields))
    found.removed.extend(slot for slot in sorted(run.gone) if run.state[slot] not in _STAYS)
    return found if found else None


def _limits(task: TaskDefinition) -> tuple[object, ...]:
    return task.pool, task.pool_slots, task.max_active_tis_per_dag, task.max_active_tis_per_dagrun


def _keep_limits(run: RunData, found: VerificationPlan, slot: int, version: int) -> None:
    if slot not in run.versions:
        run.versions[slot] = version
        found.held.append(slot)


def _list_is_shorter(run: RunData, slot: int, task: int) -> bool:
    """Return whether the instance was removed because its list became shorter, and not because its task was gone."""
    domain = run.topology.domain_of.get(task)
    if domain is None or task not in run.instances.expanded:
        return False
    return 0 <= expansion.length(run, run.topology.domains[domain]) <= run.instances.index(slot)


def _waits_differently(was: TaskDefinition, now: TaskDefinition) -> bool:
    return any(getattr(was, name) != getattr(now, name) for name in _BEFORE_AN_ATTEMPT)


_BEFORE_AN_ATTEMPT = ("upstream", "trigger_rule", "mapped", "expand", "group", "wait", "empty", "is_setup", "is_teardown")
"""Arguments of a task that decide whether and when it is scheduled."""


def continue_plan(run: RunSteps, at: int) -> bool:
    """Apply as much of the plan as this call may write, and return whether the whole plan is applied."""
    todo = run.verification
    if todo is None:
        return True
    for slots, step in (
        (todo.added, _add),
        (todo.removed, _remove),
        (todo.restored, _restore),
        (todo.retries, _take_retries),
        (todo.changed, _unschedule),
        (todo.held, _hold),
    ):
        while slots:
            if not run.rows_left():
                return False
            step(run, slots.popleft(), at)
    run.verification = None
    run.decisions.append(e.Verified())
    return True


def _add(run: RunSteps, slot: int, at: int) -> None:
    run.decisions.append(e.Added(slot))
    run.mark_dirty(slot)


def _remove(run: RunSteps, slot: int, at: int) -> None:
    code = run.state[slot]
    if code == QUEUED:
        run.force_state(slot, REMOVED, at, GONE)
    elif code not in _STAYS:
        ended = run.ended_at.get(slot)
        run.reasons[slot] = GONE
        run.step(slot, REMOVED, at, GONE, new_fence=code != NONE)
        if ended is not None and code in _FINISHED:
            run.ended_at[slot] = ended


def _restore(run: RunSteps, slot: int, at: int) -> None:
    if run.state[slot] != REMOVED:
        return
    task = run.instances.task(slot)
    run.step(slot, NONE, at, BACK, new_fence=True)
    run.max_tries[slot] = run.tries[slot] + run.topology.retries[task]
    for values in (run.reasons, run.ended_at, run.branches, run.lengths):
        values.pop(slot, None)
    _examine_again(run, task)


def _take_retries(run: RunSteps, slot: int, at: int) -> None:
    run.remember_row(slot)
    run.max_tries.pop(slot, None)
    run.extra_rows += 1


def _hold(run: RunSteps, slot: int, at: int) -> None:
    if slot in run.versions:
        run.remember_row(slot)
        run.extra_rows += 1


def _unschedule(run: RunSteps, slot: int, at: int) -> None:
    """Let a scheduled task instance be examined again, and undo the count of its try, which has not begun."""
    if run.state[slot] == SCHEDULED:
        run.step(slot, NONE, at, CHANGED)
        run.tries[slot] -= 1
        _examine_again(run, run.instances.task(slot))


def _examine_again(run: RunSteps, task: int) -> None:
    """Let a task be examined. An expanded task whose list is longer in the newer definition gets its new instances now.

    After a restart, `mapping.restore` adds these instances at once, whether or not the task may run. The results must be equal.
    """
    run.mark_dirty(task)
    if task in run.instances.expanded:
        mapping.expand_further(run, task)


def attempt_ended(run: RunSteps, slot: int, at: int, how: str) -> None:
    """Remove a task instance whose task is gone, now that its attempt has ended.

    Args:
        how: how the attempt ended, for the journal: `ended as failed`.
    """
    cause = f"{GONE}; its attempt {how}"
    run.reasons[slot] = cause
    run.step(slot, REMOVED, at, cause)
