"""Contexts, runs and task instances that tests of DAG files make by hand, with Airflow's arguments."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.execution.world import World, installed
from tradewind import DAG
from tradewind.execution.context import Context
from tradewind.execution.task_instance import DagRun, TaskInstance
from tradewind.operators.bash import BashOperator
from tradewind.operators.python import PythonOperator

DAY = datetime(2024, 3, 5, tzinfo=UTC)


def test_a_context_is_made_of_values() -> None:
    assert Context(ds="2024-01-01")["ds"] == "2024-01-01"
    assert Context({"ds": "x"}, run_id="r") == {"ds": "x", "run_id": "r"}
    assert not Context()
    with pytest.raises(KeyError, match="the context has no 'ts'"):
        Context()["ts"]
    assert {**Context(a=1)} == {"a": 1}
    assert Context(a=1).copy() == Context(a=1)


@pytest.mark.parametrize("name", ["logical_date", "execution_date"])
def test_a_run_is_made_of_dates(name: str) -> None:
    dates: dict[str, Any] = {name: DAY, "start_date": DAY}
    run = DagRun(dag_id="d", run_id="r", run_type="manual", state="running", data_interval=(DAY, DAY), **dates)
    assert (run.logical_date, run.execution_date, run.data_interval_end, run.start_date) == (DAY, DAY, DAY, DAY)
    with pytest.raises(TypeError, match="unexpected keyword argument 'day'"):
        DagRun(dag_id="d", run_id="r", day=DAY)


@pytest.fixture
def world() -> Any:
    with installed() as found:
        yield found


def test_a_task_instance_renders_and_runs(world: World) -> None:
    with DAG("d", schedule=None, start_date=DAY):
        bash = BashOperator(task_id="bash", bash_command="echo {{ ds }}")
        call = PythonOperator(task_id="call", python_callable=lambda ds: f"on {ds}")
    assert TaskInstance(task=bash, execution_date=DAY).render_templates().bash_command == "echo 2024-03-05"
    ti = TaskInstance(call, DAY)
    assert (ti.state, ti.logical_date) == (None, DAY)
    ti.run(ignore_ti_state=True)
    assert ti.state == "success"
    assert ti.pushed == {"return_value": "on 2024-03-05"}
    assert ti.xcom_pull(task_ids="call") == "on 2024-03-05"


def test_a_task_instance_has_the_state_and_the_run_that_it_was_given() -> None:
    with DAG("d", schedule=None, start_date=DAY):
        task = BashOperator(task_id="t", bash_command="true")
    ti = TaskInstance(task=task, run_id="r", state="failed", map_index=2, dag_version_id=object())
    assert (ti.dag_id, ti.run_id, ti.state, ti.map_index) == ("d", "r", "failed", 2)
    assert TaskInstance(task=task).run_id.startswith("manual__")


def test_an_error_of_the_task_is_raised(world: World) -> None:
    with DAG("d", schedule=None, start_date=DAY):
        task = PythonOperator(task_id="t", python_callable=lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        TaskInstance(task, DAY).run()
