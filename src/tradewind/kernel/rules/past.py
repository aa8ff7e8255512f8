"""depends_on_past and wait_for_downstream: whether the same task in the previous run lets this task run.

Source: Airflow's PrevDagrunDep. The state of the previous run arrives as `PastChanged` events; until then the answer is no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tradewind.kernel.run_data import RunData
from tradewind.model.definition import TaskDefinition
from tradewind.model.phrases import Phrase, phrase
from tradewind.model.states import TASK_STATES, TaskState

_REMOVED = TaskState.REMOVED.code
_GOOD = frozenset({TaskState.SUCCESS.code, TaskState.SKIPPED.code})


class PreviousRun(NamedTuple):
    """The run before this one: its id, and the state codes of the task instances that matter, by task id."""

    run_id: str
    states: Mapping[str, Sequence[int]]


class PastVerdict(NamedTuple):
    """Whether the previous run lets the task run, and the reason."""

    allowed: bool
    why: Phrase


def allows(run: RunData, task: int) -> bool:
    """Return whether the previous run lets the instances of this task run."""
    definition = run.topology.tasks[task]
    if not (definition.depends_on_past or definition.wait_for_downstream):
        return True
    return run.past_allowed.get(task, False)


def judge(task: TaskDefinition, downstream: Sequence[str], previous: PreviousRun | None, *, ever_ran: bool) -> PastVerdict:
    """Decide whether the previous run lets `task` run.

    Args:
        task: a task with depends_on_past or wait_for_downstream.
        downstream: ids of its direct downstream tasks.
        previous: None if there is no earlier run: in the first run every task may run.
        ever_ran: whether any earlier run has a task instance of this task.
    """
    if previous is None:
        return PastVerdict(True, phrase("past_first_run"))
    mine = previous.states.get(task.task_id)
    if not mine:
        if task.ignore_first_depends_on_past and not ever_ran:
            return PastVerdict(True, phrase("past_new_task"))
        return PastVerdict(False, phrase("past_no_instance", run=previous.run_id, task=task.task_id))
    waiting = [TASK_STATES[code].value for code in _present(mine) if code not in _GOOD]
    if waiting:
        return PastVerdict(False, phrase("past_depends", task=task.task_id, state=waiting[0], run=previous.run_id))
    if task.wait_for_downstream:
        for name in downstream:
            late = [TASK_STATES[code].value for code in _present(previous.states.get(name, ())) if code not in _GOOD]
            if late:
                return PastVerdict(False, phrase("past_downstream", task=name, state=late[0], run=previous.run_id))
    return PastVerdict(True, phrase("past_finished", run=previous.run_id))


def _present(codes: Sequence[int]) -> Sequence[int]:
    """Return the states without `removed`, which instances of a mapped task have that a shorter list does not need.

    An empty list may leave no instance at all. Then the task counts as skipped. Otherwise every later run would wait for ever,
    because a clear gives the same empty list.
    """
    return [code for code in codes if code != _REMOVED]
