"""`@task.run_if` and `@task.skip_if`: skip a task depending on a condition on its context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind.sdk.decorators import TaskFunction
from tradewind.sdk.exceptions import AirflowSkipException

Condition = Callable[[Any], bool | tuple[bool, str | None]]
"""Called with the context before the task runs. Returns whether the condition holds, and optionally the reason for a skip."""

Modifier = Callable[[TaskFunction[..., Any]], TaskFunction[..., Any]]


def run_if(condition: Condition, skip_message: str | None = None) -> Modifier:
    """Decorator above `@task`: run the task only if the condition holds; otherwise skip it with `skip_message`."""
    return _modifier("run_if", condition, True, skip_message)


def skip_if(condition: Condition, skip_message: str | None = None) -> Modifier:
    """Decorator above `@task`: skip the task with `skip_message` if the condition holds."""
    return _modifier("skip_if", condition, False, skip_message)


def _modifier(name: str, condition: Condition, wanted: bool, skip_message: str | None) -> Modifier:
    label = f"@task.{name}"
    if isinstance(condition, TaskFunction) or not callable(condition):
        raise TypeError(f"{label} needs a condition, such as {label}(lambda context: …), not {condition!r}")

    def modify(decorated: TaskFunction[..., Any]) -> TaskFunction[..., Any]:
        if not isinstance(decorated, TaskFunction):
            raise TypeError(f"{label} must be above @task; it cannot decorate {decorated!r}")
        next_hook = decorated.kwargs.get("pre_execute")

        def before(context: Any) -> None:
            answer = condition(context)
            holds, reason = answer if isinstance(answer, tuple) else (answer, None)
            if bool(holds) is not wanted:
                raise AirflowSkipException(reason or skip_message or f"skipped by the condition of {label}")
            if next_hook is not None:
                next_hook(context)

        return decorated.override(pre_execute=before)

    return modify
