"""`@task.run_if` and `@task.skip_if`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.execution.world import carry_out
from tradewind import DAG, task
from tradewind.execution.run_task import TaskResult
from tradewind.model.states import Outcome


def _carried_out(modify: Any, **arguments: Any) -> TaskResult:
    with DAG("d", schedule=None):

        @modify
        @task(**arguments)
        def t() -> str:
            return "done"

        return carry_out(t().operator)


@pytest.mark.parametrize(
    ("modify", "reason"),
    [
        (task.run_if(lambda context: True), None),
        (task.skip_if(lambda context: False), None),
        (task.run_if(lambda context: context["ds"] == "2024-03-05", "not today"), None),
        (task.run_if(lambda context: False), "skipped by the condition of @task.run_if"),
        (task.run_if(lambda context: False, "not today"), "not today"),
        (task.skip_if(lambda context: (True, "because")), "because"),
        (task.skip_if(lambda context: (1, None), "so"), "so"),
    ],
)
def test_a_false_condition_skips_the_task(modify: Any, reason: str | None) -> None:
    result = _carried_out(modify)
    assert (result.outcome, result.reason) == (Outcome.SUCCESS if reason is None else Outcome.SKIPPED, reason)


def test_conditions_run_in_order_and_before_pre_execute() -> None:
    calls: list[str] = []

    def outer(context: Any) -> bool:
        calls.append("outer")
        return True

    def inner(context: Any) -> bool:
        calls.append("inner")
        return False

    def both(decorated: Any) -> Any:
        return task.run_if(outer)(task.skip_if(inner)(decorated))

    assert _carried_out(both, pre_execute=lambda context: calls.append("hook")).outcome is Outcome.SUCCESS
    assert calls == ["outer", "inner", "hook"]


def test_a_condition_must_be_written_above_a_task_decorator() -> None:
    with pytest.raises(TypeError, match="needs a condition"):
        task.run_if(True)
    with pytest.raises(TypeError, match="must be above @task"):
        task.skip_if(lambda context: True)(lambda: None)
    with pytest.raises(AttributeError, match="Did you mean 'run_if'"):
        _ = task.runif
