"""Which callbacks and mails a step of a task instance, or the end of a run, requires.

The process of a task calls its callbacks itself, after its result was reported. The functions here are for task instances whose
process could not do that (killed, lost, stopped because another task failed, or ended during a callback), and for the calls that
no task process makes: mails, and the callbacks of a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.states import RunState, TaskState

EMAIL = "email"

STEPS = frozenset({TaskState.FAILED, TaskState.UP_FOR_RETRY})
"""A callback or a mail may be required when a task instance gets one of these states."""

_ARGUMENTS = {
    TaskState.FAILED: "on_failure_callback",
    TaskState.UP_FOR_RETRY: "on_retry_callback",
    TaskState.SUCCESS: "on_success_callback",
    TaskState.SKIPPED: "on_skipped_callback",
}


LISTENED_FAILURE = "on_task_instance_failed"
LISTENED_RUN_STATES = ("on_dag_run_running", "on_dag_run_success", "on_dag_run_failed")
"""Events of the listeners of plugins. The process of a task calls its own listeners; another process calls them if it was lost."""
LISTENED_MARKS = {
    TaskState.SUCCESS: "on_task_instance_success",
    TaskState.FAILED: LISTENED_FAILURE,
    TaskState.SKIPPED: "on_task_instance_skipped",
}
LISTENED_RUN_MARKS = {RunState.SUCCESS: "on_dag_run_success", RunState.FAILED: "on_dag_run_failed"}
"""State that a person has set → event."""


class CallbackRef(NamedTuple):
    """One callback or mail of a task or DAG, or a call of the listeners of plugins."""

    argument: str
    """The argument that holds the callback, for example `on_failure_callback`; `email` for a mail; or the event for listeners."""
    position: int = 0
    """The position of the callback in the argument's list."""


def of_attempt(
    task: TaskDefinition, before: TaskState, after: TaskState, calls_back: bool, listened: Collection[str] = ()
) -> Iterator[CallbackRef]:
    """Yield the calls that the end of an attempt requires.

    Args:
        before: the state before the step. A task instance that fails before it was scheduled requires nothing, as in Airflow.
        calls_back: the process of the task calls its callbacks and listeners itself.
        listened: the events for which plugins have listeners.
    """
    if after not in STEPS or before is TaskState.NONE:
        return
    if not calls_back and task.callbacks:
        argument = _ARGUMENTS[after]
        for index in range(len(task.callbacks.get(argument, ()))):
            yield CallbackRef(argument, index)
    if not calls_back and LISTENED_FAILURE in listened:
        yield CallbackRef(LISTENED_FAILURE)
    sends_mail = task.email_on_failure if after is TaskState.FAILED else task.email_on_retry
    if task.email and sends_mail:
        yield CallbackRef(EMAIL)


def of_own_process(task: TaskDefinition, after: TaskState) -> Iterator[CallbackRef]:
    """Yield the calls that the process of a task makes itself when its attempt ends in this state."""
    argument = _ARGUMENTS.get(after)
    if argument is not None and task.callbacks:
        for index in range(len(task.callbacks.get(argument, ()))):
            yield CallbackRef(argument, index)


def of_run(definition: DagDefinition, success: bool, listened: Collection[str] = ()) -> Iterator[CallbackRef]:
    """Yield the calls that the end of a run requires."""
    argument = "on_success_callback" if success else "on_failure_callback"
    for index in range(len(definition.callbacks.get(argument, ()))):
        yield CallbackRef(argument, index)
    event = "on_dag_run_success" if success else "on_dag_run_failed"
    if event in listened:
        yield CallbackRef(event)


def of_run_start(listened: Collection[str]) -> Iterator[CallbackRef]:
    """Yield the calls that the start of a run requires."""
    if "on_dag_run_running" in listened:
        yield CallbackRef("on_dag_run_running")
