"""A run meets a newer definition of its DAG: which of its task instances are new, which are gone, and which came back.

`plan` compares the rows with the shape that the run is to have now, and writes nothing. `go_on` carries the plan out, a bounded
number of rows a call. Until all of it is done, nothing else of the run is decided, and the run belongs to its earlier version:
after a restart the rest of the plan is found again from the rows.

* A task that the run has no row of gets one.
* A task that the definition does not have any more is `removed`, whatever state it had. An attempt that runs goes on to its end
  first; what it came to is kept with the attempt, and the task instance is `removed` then, never `failed`.
* What was removed and is there again begins anew, with all its tries.
* What has not begun yet takes its retries from the newer definition, and waits for its upstream tasks of now.

Source: Airflow 3.3.2's `DagRun.verify_integrity` and `task_instance_scheduling_decisions`. Airflow also ends a running attempt of a
removed task; Airflow 1.10's documentation lets it run, and so do we.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from tradewind.kernel import events as e
from tradewind.kernel import expansion
from tradewind.kernel.codes import DEFERRED, NEVER, NONE, QUEUED, REMOVED, RESTARTING, RUNNING, SCHEDULED
from tradewind.kernel.rules import task_dates
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.states import FINISHED

if TYPE_CHECKING:
    from tradewind.kernel.machine import RunMachine

GONE = "its task is not in the DAG any more"
BACK = "its task is in the DAG again"
CHANGED = "its task was changed before it began"

_FINISHED = frozenset(state.code for state in FINISHED)
_STAYS = frozenset({REMOVED, RUNNING, RESTARTING})
_COUNTED = frozenset({QUEUED, RUNNING, RESTARTING, DEFERRED})


class Before(NamedTuple):
    """What the rows of a run were last verified against."""

    version: int
    definition: DagDefinition


class Plan(NamedTuple):
    """Slots that are left to look at."""

    added: deque[int]
    removed: deque[int]
    restored: deque[int]
    retries: deque[int]
    """Their number of retries is another one."""
    changed: deque[int]
    """Scheduled, but perhaps too early by the newer definition."""
    held: deque[int]
    """An attempt, or a wait, of theirs counts against limits of the earlier version until it ends."""

    def __bool__(self) -> bool:
        return any(self)


def plan(machine: RunMachine, rows: frozenset[int], before: Before) -> Plan:
    """What the newer definition asks for.

    Args:
        rows: slots that have a row.
        before: what the run was last verified against.
    """
    topology, state, instances = machine.topology, machine.state, machine.instances
    old = {task.task_id: task for task in before.definition.tasks}
    moment = machine.facts.logical_date
    absent = {task for task, _ in task_dates.outside(topology, moment)} if moment is not None else set[int]()
    found = Plan(*(deque() for _ in Plan._fields))
    found.added.extend(number for number in topology.numbers if number not in rows)
    for slot in sorted(rows):
        code = state[slot]
        if slot in machine.gone:
            if code not in _STAYS:
                found.removed.append(slot)
            elif code != REMOVED:
                _keep_limits(machine, found, slot, before.version)
            continue
        task = instances.task(slot)
        if code == REMOVED:
            if task not in absent and not _list_is_shorter(machine, slot, task):
                found.restored.append(slot)
            continue
        was, now = old.get(topology.ids[task]), topology.tasks[task]
        if was is None or was == now or code in _FINISHED:
            continue
        if code in _COUNTED and _limits(was) != _limits(now):
            _keep_limits(machine, found, slot, before.version)
        if was.retries != now.retries and machine.max_tries.get(slot) == was.retries:
            found.retries.append(slot)
        if code == SCHEDULED and machine.started_at[slot] == NEVER and _waits_differently(was, now):
            found.changed.append(slot)
    return found


def plan_of_cleared(machine: RunMachine) -> Plan | None:
    """A person may have cleared or marked what the definition does not have: it is removed again. None: nobody has."""
    found = Plan(*(deque() for _ in Plan._fields))
    found.removed.extend(slot for slot in sorted(machine.gone) if machine.state[slot] not in _STAYS)
    return found if found else None


def _limits(task: TaskDefinition) -> tuple[object, ...]:
    return task.pool, task.pool_slots, task.max_active_tis_per_dag, task.max_active_tis_per_dagrun


def _keep_limits(machine: RunMachine, found: Plan, slot: int, version: int) -> None:
    if slot not in machine.versions:
        machine.versions[slot] = version
        found.held.append(slot)


def _list_is_shorter(machine: RunMachine, slot: int, task: int) -> bool:
    """Was it removed because its list is shorter now, and not because its task was gone?"""
    domain = machine.topology.domain_of.get(task)
    if domain is None or task not in machine.instances.of:
        return False
    return 0 <= expansion.length(machine, machine.topology.domains[domain]) <= machine.instances.index(slot)


def _waits_differently(was: TaskDefinition, now: TaskDefinition) -> bool:
    return any(getattr(was, name) != getattr(now, name) for name in _BEFORE_AN_ATTEMPT)


_BEFORE_AN_ATTEMPT = ("upstream", "trigger_rule", "mapped", "expand", "group", "wait", "empty", "is_setup", "is_teardown")
"""What decides when a task is scheduled, and whether at all."""


def go_on(machine: RunMachine, at: int) -> bool:
    """Carry out as much of the plan as this call may write; whether all of it is done."""
    todo = machine.verification
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
            if not machine.room():
                return False
            step(machine, slots.popleft(), at)
    machine.verification = None
    machine.out.append(e.Verified())
    return True


def _add(machine: RunMachine, slot: int, at: int) -> None:
    machine.out.append(e.Added(slot))
    machine.look_at(slot)


def _remove(machine: RunMachine, slot: int, at: int) -> None:
    code = machine.state[slot]
    if code == QUEUED:
        machine.take_away(slot, REMOVED, at, GONE)
    elif code not in _STAYS:
        ended = machine.ended_at.get(slot)
        machine.reasons[slot] = GONE
        machine.step(slot, REMOVED, at, GONE, new_fence=code != NONE)
        if ended is not None and code in _FINISHED:
            machine.ended_at[slot] = ended


def _restore(machine: RunMachine, slot: int, at: int) -> None:
    if machine.state[slot] != REMOVED:
        return
    task = machine.instances.task(slot)
    machine.step(slot, NONE, at, BACK, new_fence=True)
    machine.max_tries[slot] = machine.tries[slot] + machine.topology.retries[task]
    for memory in (machine.reasons, machine.ended_at, machine.branches, machine.lengths):
        memory.pop(slot, None)
    machine.look_at(task)


def _take_retries(machine: RunMachine, slot: int, at: int) -> None:
    machine.touch(slot)
    machine.max_tries.pop(slot, None)
    machine.spent += 1


def _hold(machine: RunMachine, slot: int, at: int) -> None:
    if slot in machine.versions:
        machine.touch(slot)
        machine.spent += 1


def _unschedule(machine: RunMachine, slot: int, at: int) -> None:
    """It is judged anew; the try that had been counted did not begin."""
    if machine.state[slot] == SCHEDULED:
        machine.step(slot, NONE, at, CHANGED)
        machine.tries[slot] -= 1
        machine.look_at(machine.instances.task(slot))


def attempt_ended(machine: RunMachine, slot: int, at: int, what: str) -> None:
    """The attempt of a task that is gone has come to its end."""
    cause = f"{GONE}; its attempt {what}"
    machine.reasons[slot] = cause
    machine.step(slot, REMOVED, at, cause)
