"""Which callbacks and mails follow from a step of a task instance, and from the end of a run.

The process of a task calls its callbacks itself, once its result was reported. What is said here is for those whose process did not
live to do that (killed, lost for good, stopped because another task failed, or ended in the middle of it), and for what no process
of a task does: mails, and the callbacks of a whole run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.states import TaskState

EMAIL = "email"

STEPS = frozenset({TaskState.FAILED, TaskState.UP_FOR_RETRY})
"""Steps into these may call for something."""

_ARGUMENTS = {
    TaskState.FAILED: "on_failure_callback",
    TaskState.UP_FOR_RETRY: "on_retry_callback",
    TaskState.SUCCESS: "on_success_callback",
    TaskState.SKIPPED: "on_skipped_callback",
}


class Wanted(NamedTuple):
    """One thing to call: an argument, and the place in it."""

    argument: str
    place: int = 0


def of_attempt(task: TaskDefinition, before: TaskState, after: TaskState, calls_back: bool) -> Iterator[Wanted]:
    """What the end of an attempt calls for.

    Args:
        before: from where it stepped; a task that nobody had begun with fails without a word, as it does in Airflow.
        calls_back: its own process calls its callbacks.
    """
    if after not in STEPS or before is TaskState.NONE:
        return
    if not calls_back and task.callbacks:
        argument = _ARGUMENTS[after]
        for index in range(len(task.callbacks.get(argument, ()))):
            yield Wanted(argument, index)
    wants_mail = task.email_on_failure if after is TaskState.FAILED else task.email_on_retry
    if task.email and wants_mail:
        yield Wanted(EMAIL)


def of_own_process(task: TaskDefinition, after: TaskState) -> Iterator[Wanted]:
    """What the process of a task calls itself when its attempt has come to this state."""
    argument = _ARGUMENTS.get(after)
    if argument is not None and task.callbacks:
        for index in range(len(task.callbacks.get(argument, ()))):
            yield Wanted(argument, index)


def of_run(definition: DagDefinition, success: bool) -> Iterator[Wanted]:
    """What the end of a run calls for."""
    argument = "on_success_callback" if success else "on_failure_callback"
    for index in range(len(definition.callbacks.get(argument, ()))):
        yield Wanted(argument, index)
