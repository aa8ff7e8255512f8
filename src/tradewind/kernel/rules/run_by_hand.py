"""What becomes of the task instances of a run whose state a person sets. Source: Airflow's `set_dag_run_state_to_…`.

Success makes all of them a success. Failed fails what is under way and skips what has not begun. Teardowns with something to
tear down are spared: they run before the run ends.
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
"""Its try has begun, or its last one failed."""

Standing = tuple[int, str, int, TaskState]
"""Slot, task id, map index, state."""


class Ending(NamedTuple):
    """Slots by the state that they get, and those that are spared."""

    marks: dict[TaskState, list[int]]
    spared: list[int]


def ending(topology: Topology, standing: Iterable[Standing], state: RunState) -> Ending:
    """How a run comes to `state`, success or failed. Nothing is spared: it has ended then."""
    rows = list(standing)
    set_up = {task_id for _, task_id, _, has in rows if has is TaskState.SUCCESS}
    marks: dict[TaskState, list[int]] = {}
    spared: list[int] = []
    for slot, task_id, _, has in rows:
        if has is TaskState.REMOVED or has is TaskState.SUCCESS:
            continue
        if has not in FINISHED and _has_work(topology, task_id, has, set_up):
            spared.append(slot)
        elif state is RunState.SUCCESS:
            marks.setdefault(TaskState.SUCCESS, []).append(slot)
        elif has not in FINISHED:
            marks.setdefault(TaskState.FAILED if has in _BEGUN else TaskState.SKIPPED, []).append(slot)
    return Ending(marks, spared)


def _has_work(topology: Topology, task_id: str, has: TaskState, set_up: set[str]) -> bool:
    """Is it a teardown that is under way, or behind a setup that succeeded, or behind none at all?"""
    task = topology.index[task_id]
    if not topology.tasks[task].is_teardown:
        return False
    own = [topology.ids[up] for up in topology.upstream(task) if topology.tasks[up].is_setup]
    return has in _BEGUN or not own or any(name in set_up for name in own)
