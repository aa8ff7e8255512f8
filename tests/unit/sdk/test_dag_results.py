"""Results of runs: the return values that who waits for the end of a run gets."""

from __future__ import annotations

import pytest

from tradewind.model.definition import DefinitionDefaults
from tradewind.sdk.dag import DAG
from tradewind.sdk.decorators import dag, result, task
from tradewind.sdk.definition import to_definition
from tradewind.sdk.operator import BaseOperator


def results(of: DAG) -> list[str]:
    return [one.task_id for one in to_definition(of, "d.py", DefinitionDefaults()).tasks if one.returns_dag_result]


def test_add_result_marks_the_task() -> None:
    with DAG("d") as made:
        first = BaseOperator("first")
        BaseOperator("second")
        assert made.add_result(first.output).operator is first
    assert results(made) == ["first"]


def test_add_result_refuses_what_is_not_a_return_value() -> None:
    with DAG("d") as made:
        first = BaseOperator("first")
        for value in (first, first.output["part"], None):
            with pytest.raises(ValueError, match="has to be the return value of a task"):
                made.add_result(value)  # type: ignore[arg-type]  # what the test is about


def test_what_a_dag_function_returns_is_a_result() -> None:
    @task
    def give() -> int:
        return 1

    @dag
    def one() -> object:
        give()
        return give()

    @dag
    def none() -> object:
        return [give()]

    assert results(one()) == ["give__1"]
    assert results(none()) == []


def test_result_above_task_also_of_mapped_and_changed_tasks() -> None:
    @result
    @task
    def give(x: int) -> int:
        return x

    with DAG("d") as made:
        give.expand(x=[1, 2])
        give.override(task_id="other")(1)
    assert results(made) == ["give", "other"]


def test_result_is_refused_below_task() -> None:
    with pytest.raises(TypeError, match="@result has to be above @task"):
        result(len)
