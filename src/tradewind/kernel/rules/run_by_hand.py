"""Which states task instances get when a person sets the state of their run. Source: Airflow's `set_dag_run_state_to_…`.

`success` makes all task instances a success. `failed` fails those that have begun and skips the others. Teardowns that have
something to tear down keep their state: they run before the run ends. A task that the DAG has no more changes only if it is
unfinished: its attempt would outlive the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tradewind.kernel.topology import Topology
from tradewind.model.states import FINISHED, RunState, TaskState

_BEGUN = frozenset(
    {
        TaskState.RUNNING,
        TaskState.DEFERRED,
        TaskState.AWAITING_INPUT,
        TaskState.UP_FOR_RESCHEDULE,
        TaskState.UP_FOR_RETRY,
    }
)
"""States of a task instance whose try has begun, or whose last try failed."""

Instance = tuple[int, str, int, TaskState]
"""Slot, task id, map index, state."""


class NewStates(NamedTuple):
    """The new states of task instances."""

    marks: dict[TaskState, list[int]]
    """State → slots that get it."""
    teardowns: list[int]
    """Slots of teardowns that still have to run."""


def new_states(topology: Topology, instances: Iterable[Instance], state: RunState) -> NewStates:
    """Return the states that task instances get when their run is set to `state`, success or failed.

    If no teardown has to run, the run has ended with these states.
    """
    rows = list(instances)
    set_up = {task_id for _, task_id, _, current in rows if current is TaskState.SUCCESS}
    marks: dict[TaskState, list[int]] = {}
    teardowns: list[int] = []
    for slot, task_id, _, current in rows:
        if current is TaskState.REMOVED or current is TaskState.SUCCESS:
            continue
        if task_id not in topology.index and current in FINISHED:
            continue
        if current not in FINISHED and _must_tear_down(topology, task_id, current, set_up):
            teardowns.append(slot)
        elif state is RunState.SUCCESS:
            marks.setdefault(TaskState.SUCCESS, []).append(slot)
        elif current not in FINISHED:
            marks.setdefault(TaskState.FAILED if current in _BEGUN else TaskState.SKIPPED, []).append(slot)
    return NewStates(marks, teardowns)


def _must_tear_down(topology: Topology, task_id: str, current: TaskState, set_up: set[str]) -> bool:
    """Return whether the task is a teardown that has begun, has a successful setup, or has no setup at all."""
    task = topology.index.get(task_id)
    if task is None or not topology.tasks[task].is_teardown:
        return False
    own = [topology.ids[up] for up in topology.upstream(task) if topology.tasks[up].is_setup]
    return current in _BEGUN or not own or any(name in set_up for name in own)
