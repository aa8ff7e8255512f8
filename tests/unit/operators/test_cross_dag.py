"""A Python task that depends on tasks of other DAGs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.execution.world import DAY, World, carry_out, pushed
from tradewind import DAG
from tradewind.model.definition import DefinitionDefaults
from tradewind.model.errors import DefinitionError
from tradewind.model.moments import HOUR, parse_moment
from tradewind.model.states import Outcome
from tradewind.model.waits import EveryWait, Resumption, TasksWait
from tradewind.operators.cross_dag import CrossDagDepPythonOperator
from tradewind.sdk.definition import to_definition

START = parse_moment(DAY)


def _operator(*conditions: Any, **kwargs: Any) -> CrossDagDepPythonOperator:
    with DAG("d", schedule=None):
        return CrossDagDepPythonOperator(task_id="t", python_callable=lambda: 5, dag_dep_conditions=conditions, **kwargs)


@pytest.mark.spec("S401", "S402")
def test_the_function_runs_when_the_conditions_are_met(world: World) -> None:
    world.states = [(START, "x", "success")]
    result = carry_out(_operator(("up", "x")))
    assert (result.outcome, pushed(result)) == (Outcome.SUCCESS, {"return_value": 5})


@pytest.mark.spec("S402", "S407")
def test_it_waits_until_then_and_skips_nothing(world: World) -> None:
    """It does not become SKIPPED, which would skip downstream tasks: the scheduler waits for the conditions that are not met."""
    world.states = []
    operator = _operator(
        ("up", "x"),
        ("up2", None, timedelta(hours=1), ["success", "failed"]),
        ("up3", "y", lambda date: [date, date.add(hours=2)]),
    )
    result = carry_out(operator)
    assert (result.outcome, pushed(result)) == (Outcome.DEFERRED, {})
    assert result.deferral is not None
    assert result.deferral.wait == EveryWait(
        (
            TasksWait("up", (START,), task_ids=("x",)),
            TasksWait("up2", (START - HOUR,), allowed=("success", "failed")),
            TasksWait("up3", (START, START + 2 * HOUR), task_ids=("y",)),
        )
    )
    world.states = [(at * HOUR + START, task, "success") for at in (-1, 0, 2) for task in ("x", "y", None)]
    again = carry_out(operator, resumption=Resumption(result.deferral.method or ""))
    assert pushed(again) == {"return_value": 5}


def test_ids_are_templates(world: World) -> None:
    world.states = []
    result = carry_out(_operator(("up_{{ ds_nodash }}", "x")))
    assert result.deferral is not None
    assert result.deferral.wait == EveryWait((TasksWait("up_20240305", (START,), task_ids=("x",)),))


def test_the_definition_lists_the_other_dags() -> None:
    task = to_definition(_operator(("b", "x"), ("a", None)).dag, "d.py", DefinitionDefaults()).tasks[0]
    assert task.waits_for == ("a", "b")


def test_a_run_without_a_logical_date_is_an_error(world: World) -> None:
    assert "depends on; use a date function" in (carry_out(_operator(("up", "x")), at=None).reason or "")


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("up", "each condition must be \\(dag_id, task_id"),
        ((), "each condition must be"),
        ((1, "x"), "dag_id and task_id must be strings"),
        (("up", "x", 5), "a timedelta, function or None"),
        (("up", "x", None, ["sucess"]), "Did you mean 'success'"),
        (("up", None, None, "skipped"), "not a state of a run"),
    ],
)
def test_invalid_conditions_are_errors(condition: Any, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        _operator(condition)


def test_an_empty_list_of_conditions_is_an_error() -> None:
    with pytest.raises(DefinitionError, match="dag_dep_conditions is empty"):
        _operator()
