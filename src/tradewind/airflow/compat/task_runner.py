"""`airflow.sdk.execution_time.task_runner`: runs a task instance that a test has made."""

from __future__ import annotations

from typing import Any

from tradewind.execution.task_instance import TaskInstance
from tradewind.model.states import TaskState

__all__ = ["run"]


def run(ti: TaskInstance, context: Any, log: Any) -> tuple[TaskState, None, BaseException | None]:
    """Run the task in this process. Returns its state, no message, and its error.

    Args:
        context: ignored; the task uses the context of the task instance.
        log: ignored; the task uses its own logger.
    """
    del context, log
    try:
        ti.run()
    except Exception as error:  # of the task
        return TaskState(str(ti.state)), None, error
    return TaskState(str(ti.state)), None, None
