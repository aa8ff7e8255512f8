"""Callbacks of a task: which ones follow from its result, and how they are called.

    on_execute_callback   before `execute`
    on_success_callback   success
    on_skipped_callback   the task skipped itself
    on_retry_callback     failed, and a retry follows
    on_failure_callback   failed without a retry

They are called in the process of the attempt, after its result was reported, so a callback cannot change the result. Their time is
limited by the setting `core.task_overtime`. If the process was killed or terminated for another reason than its own time limit, the
scheduler lets another process call `on_retry_callback` or `on_failure_callback`. No callback is called for a task that was cleared
or marked while it was running. Callbacks get the context; `exception` in it is the reason of a failure.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tradewind.model.states import Outcome, TaskState
from tradewind.sdk.dag_warnings import callback_name
from tradewind.sdk.exceptions import AirflowTaskTerminated

if TYPE_CHECKING:
    from tradewind.execution.context import Context
    from tradewind.execution.task_instance import TaskInstance
    from tradewind.sdk.operator import BaseOperator

log = logging.getLogger("tradewind.task")

_BY_STATE = {
    TaskState.SUCCESS: "on_success_callback",
    TaskState.SKIPPED: "on_skipped_callback",
    TaskState.UP_FOR_RETRY: "on_retry_callback",
    TaskState.FAILED: "on_failure_callback",
}


def call(task: BaseOperator, argument: str, context: Context) -> None:
    """Call all callbacks of `argument`, in order. An exception is logged and does not affect the others."""
    for callback in getattr(task, argument):
        try:
            callback(context)
        except (Exception, SystemExit):
            log.exception(
                "%s %s of task %s failed; the result of the task does not change",
                argument,
                callback_name(callback),
                task.task_id,
            )


def callbacks_after(
    task: BaseOperator, context: Context | None, ti: TaskInstance, outcome: Outcome, error: BaseException | None
) -> Callable[[], None] | None:
    """The callbacks to call after the result was reported, as a function; None if there are none.

    Args:
        context: None if the attempt failed before it had a context, or was terminated: then another process calls.
        error: the exception of the task, if there was one.
    """
    if isinstance(error, KeyboardInterrupt):  # a person interrupted `dag.test()`
        return None
    state = state_after(outcome, ti)
    argument = _BY_STATE.get(state) if state is not None else None
    if context is None or argument is None or state is None or not getattr(task, argument):
        return None

    def run() -> None:
        ti.state = state.value
        ti.ended = time.time_ns() // 1000
        if error is not None and state is not TaskState.SUCCESS:
            context["exception"] = error
        call(task, argument, context)

    return run


def state_after(outcome: Outcome, ti: TaskInstance) -> TaskState | None:
    """The state that the scheduler will set for an outcome; None if the task instance continues later."""
    match outcome:
        case Outcome.SUCCESS:
            return TaskState.SUCCESS
        case Outcome.SKIPPED:
            return TaskState.SKIPPED
        case Outcome.FAILED if ti.try_number <= ti.max_tries:
            return TaskState.UP_FOR_RETRY
        case Outcome.FAILED | Outcome.FAILED_FINAL:
            return TaskState.FAILED
    return None


def was_terminated(error: BaseException | None) -> bool:
    """True if the task was terminated by a person or by a worker that shuts down, not by its own time limit."""
    return isinstance(error, AirflowTaskTerminated)
