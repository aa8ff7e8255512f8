"""Callbacks of a task: which of them its result calls for, and calling them.

    on_execute_callback   before `execute`
    on_success_callback   success
    on_skipped_callback   the task skipped itself
    on_retry_callback     failed, and it will be tried again
    on_failure_callback   failed for good

They are called in the attempt's own process, after its result was reported: whatever a callback does, the result stands. They
have the time that a process has to end (setting `core.task_overtime`). Where that process was killed, or asked to end by somebody
else than its time limit, the scheduler has `on_retry_callback` and `on_failure_callback` called in another one. A task that was
cleared or marked while it ran calls nothing. Each is handed the context, in which `exception` says why it failed.
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
    """Call all that is set for `argument`, in order. What they raise is logged, and ends nothing."""
    for callback in getattr(task, argument):
        try:
            callback(context)
        except (Exception, SystemExit):
            log.exception("%s %s of task %s failed; the task's result stands", argument, callback_name(callback), task.task_id)


def after(
    task: BaseOperator, context: Context | None, ti: TaskInstance, outcome: Outcome, error: BaseException | None
) -> Callable[[], None] | None:
    """What to call once the result was reported; None: nothing.

    Args:
        context: None where the attempt did not come as far as having one, or was cut off: others call then.
        error: what the task raised, if anything.
    """
    if isinstance(error, KeyboardInterrupt):  # somebody sits before a `dag.test()`
        return None
    state = _state(outcome, ti)
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


def _state(outcome: Outcome, ti: TaskInstance) -> TaskState | None:
    """The state that the scheduler will give for an outcome; None: it goes on later."""
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


def cut_off(error: BaseException | None) -> bool:
    """Was it asked to end, by a person or a worker that ends, and not by its own time limit?"""
    return isinstance(error, AirflowTaskTerminated)
