"""`@task.run_if` and `@task.skip_if`: tasks that are skipped by a condition on their context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind.sdk.decorators import TaskFunction
from tradewind.sdk.exceptions import AirflowSkipException

Condition = Callable[[Any], bool | tuple[bool, str | None]]
"""Asked with the context just before the task's own work: does it hold, and perhaps a sentence that says why."""

Modifier = Callable[[TaskFunction[..., Any]], TaskFunction[..., Any]]


def run_if(condition: Condition, skip_message: str | None = None) -> Modifier:
    """Above `@task`: run it only if the condition holds, else skip it with `skip_message`."""
    return _modifier("run_if", condition, True, skip_message)


def skip_if(condition: Condition, skip_message: str | None = None) -> Modifier:
    """Above `@task`: skip it with `skip_message` if the condition holds."""
    return _modifier("skip_if", condition, False, skip_message)


def _modifier(name: str, condition: Condition, wanted: bool, skip_message: str | None) -> Modifier:
    shown = f"@task.{name}"
    if isinstance(condition, TaskFunction) or not callable(condition):
        raise TypeError(f"{shown} takes a condition: {shown}(lambda context: …), not {condition!r}")

    def modify(decorated: TaskFunction[..., Any]) -> TaskFunction[..., Any]:
        if not isinstance(decorated, TaskFunction):
            raise TypeError(f"{shown} stands above @task, not above {decorated!r}")
        then = decorated.kwargs.get("pre_execute")

        def before(context: Any) -> None:
            answer = condition(context)
            holds, sentence = answer if isinstance(answer, tuple) else (answer, None)
            if bool(holds) is not wanted:
                raise AirflowSkipException(sentence or skip_message or f"the condition of {shown} says: skip")
            if then is not None:
                then(context)

        return decorated.override(pre_execute=before)

    return modify
