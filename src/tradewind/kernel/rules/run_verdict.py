"""When a run ends, and in which state. Source: Airflow's `DagRun.update_state`.

A run ends when all its task instances are finished. It has failed if one of the leaves has failed, else it is a success. Leaves
are the tasks without downstream tasks; teardowns count only with `on_failure_fail_dagrun`. A run in which no task instance can
move any more has failed, too (a deadlock).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tradewind.kernel.causes import root_causes
from tradewind.kernel.rules import past
from tradewind.kernel.run_data import RunData
from tradewind.model.phrases import Argument, Phrase, english, phrase
from tradewind.model.states import FINISHED, TaskState

NAMED_MAX = 3
"""Maximum number of causes that a reason names."""
_FAILED = TaskState.FAILED.code
_BAD = frozenset({TaskState.FAILED.code, TaskState.UPSTREAM_FAILED.code})
_FINISHED = frozenset(state.code for state in FINISHED)
_TRIED_AGAIN = frozenset({TaskState.UP_FOR_RETRY.code, TaskState.UP_FOR_RESCHEDULE.code})


class RunVerdict(NamedTuple):
    """How a run ends, and why."""

    success: bool
    why: str
    reason: str
    """Airflow's name of the reason, for callbacks: `success`, `task_failure`, `all_tasks_deadlocked`."""


def decide(run: RunData, at: int, can_move: Callable[[int], bool]) -> RunVerdict | None:
    """Return how the run ends now, or None if it continues. Called only if no verdict is left to apply.

    Args:
        at: the current moment.
        can_move: whether a task instance (a slot) would get another state if it were examined now.
    """
    if run.unfinished:
        return _deadlock(run) if run.active == 0 or _none_can_be_tried_again(run, at, can_move) else None
    if run.facts.failing is not None:
        return RunVerdict(False, run.facts.failing, "task_failure")
    topology, state = run.topology, run.state
    for task in topology.verdict:
        for slot in run.instances.slots(task):
            if state[slot] in _BAD:
                return RunVerdict(False, english(_failure(run, slot)), "task_failure")
    return RunVerdict(True, english(_success(run)), "success")


def _failure(run: RunData, slot: int) -> Phrase:
    """Say which leaf has failed, and which task instances led to it."""
    name, state = run.name(slot), run.task_state(slot).value
    causes = root_causes(run, slot)
    if causes == [slot]:
        return phrase("run_reason_task", task=name, state=state)
    named: list[str | Phrase] = [
        phrase("task_in_state", task=run.name(one), state=run.task_state(one).value) for one in causes[:NAMED_MAX]
    ]
    roots: Argument = phrase("and_others", items=named) if len(causes) > NAMED_MAX else named
    return phrase("run_reason_root", task=name, state=state, tasks=roots)


def _success(run: RunData) -> Phrase:
    """Say why the run is a success, even if one task of a fail_fast run failed: Airflow's rule, which surprises people."""
    if not run.topology.fail_fast or _FAILED not in run.state:
        return phrase("run_reason_success")
    return phrase("run_reason_fail_fast", task=run.name(run.state.index(_FAILED)))


def _none_can_be_tried_again(run: RunData, at: int, can_move: Callable[[int], bool]) -> bool:
    """Return whether all active task instances are due for another attempt that will never begin.

    A person may run a sensor by hand whose trigger rule cannot be met any more. When the sensor is rescheduled, its rule keeps it
    from being called again.
    """
    due = run.due
    if len(due) != run.active or not all(moment <= at for moment in due.values()):
        return False
    return all(run.state[slot] in _TRIED_AGAIN and not can_move(slot) for slot in due)


def _deadlock(run: RunData) -> RunVerdict | None:
    """Return a failure if no unfinished task instance is active or waits for the previous run.

    Airflow lets a run hang for ever as soon as one of them has depends_on_past, even if the previous run allows it to run.
    """
    state, instances = run.state, run.instances
    stuck = [slot for slot in range(instances.total) if state[slot] not in _FINISHED]
    if not all(past.allows(run, instances.task(slot)) for slot in stuck):
        return None
    why = phrase("run_reason_deadlock", count=len(stuck), tasks=[run.name(slot) for slot in stuck[:3]])
    return RunVerdict(False, english(why), "all_tasks_deadlocked")
