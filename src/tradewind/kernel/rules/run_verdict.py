"""When a run ends, and how. Source: Airflow's `DagRun.update_state`.

It ends when no task instance is unfinished: failed if one that decides is failed, else a success. The deciding ones are the
leaves, without teardowns that do not want to count. A run in which nothing can move any more has failed too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tradewind.kernel.rules import past
from tradewind.model.states import FINISHED, TaskState

if TYPE_CHECKING:
    from tradewind.kernel.machine import RunMachine

_FAILED = TaskState.FAILED.code
_BAD = frozenset({TaskState.FAILED.code, TaskState.UPSTREAM_FAILED.code})
_FINISHED = frozenset(state.code for state in FINISHED)
_TRIED_AGAIN = frozenset({TaskState.UP_FOR_RETRY.code, TaskState.UP_FOR_RESCHEDULE.code})


class RunVerdict(NamedTuple):
    success: bool
    why: str
    word: str
    """Airflow's, for callbacks: `success`, `task_failure`, `all_tasks_deadlocked`."""


def decide(machine: RunMachine, at: int) -> RunVerdict | None:
    """The verdict on the run at a moment, or None while it goes on. Asked only when nothing is left to settle."""
    if machine.unfinished:
        return _deadlock(machine) if machine.active == 0 or _are_all_held(machine, at) else None
    if machine.facts.failing is not None:
        return RunVerdict(False, machine.facts.failing, "task_failure")
    topology, state = machine.topology, machine.state
    for task in topology.verdict:
        for slot in machine.instances.slots(task):
            if state[slot] in _BAD:
                return RunVerdict(False, f"{machine.name(slot)} is {machine.task_state(slot).value}", "task_failure")
    return RunVerdict(True, "all tasks that decide are done" + _although(machine), "success")


def _although(machine: RunMachine) -> str:
    """Why a fail_fast run is a success although a task of it failed: Airflow's rule, which surprises people."""
    if not machine.topology.fail_fast or _FAILED not in machine.state:
        return ""
    failed = machine.name(machine.state.index(_FAILED))
    return f"; {failed} failed, but fail_fast skipped what came after it, and only the tasks at the end of the DAG decide"


def _are_all_held(machine: RunMachine, at: int) -> bool:
    """Is all that is under way due for another try, which nothing lets it begin?

    A person may run a sensor whose trigger rule cannot be met any more; when it asks to be called again, nobody does.
    """
    due = machine.due
    if len(due) != machine.active or not all(moment <= at for moment in due.values()):
        return False
    return all(machine.state[slot] in _TRIED_AGAIN and machine.examine(slot, at) is None for slot in due)


def _deadlock(machine: RunMachine) -> RunVerdict | None:
    """Unfinished task instances, none of which is on its way or waits for another run.

    Airflow lets a run hang for ever as soon as one of them has depends_on_past, even if its past is long since settled.
    """
    state, instances = machine.state, machine.instances
    stuck = [slot for slot in range(instances.total) if state[slot] not in _FINISHED]
    if not all(past.allows(machine, instances.task(slot)) for slot in stuck):
        return None
    names = ", ".join(machine.name(slot) for slot in stuck[:3])
    why = f"deadlock: {len(stuck)} tasks can never start, {names} among them"
    return RunVerdict(False, why, "all_tasks_deadlocked")
