"""`DagContext` and `TaskGroupContext`, with which helpers of DAG files ask for the open DAG and group."""

from __future__ import annotations

import importlib

import pytest

from tradewind.sdk.dag import DAG
from tradewind.sdk.taskgroup import TaskGroup

PLACES = (
    ("airflow.models.dag", "airflow.utils.task_group"),
    ("airflow.sdk.definitions._internal.contextmanager", "airflow.sdk.definitions._internal.contextmanager"),
)


@pytest.mark.parametrize(("dags", "groups"), PLACES)
def test_they_tell_the_open_dag_and_group(dags: str, groups: str) -> None:
    of_dags = importlib.import_module(dags).DagContext
    of_groups = importlib.import_module(groups).TaskGroupContext
    assert of_dags.get_current_dag() is None
    assert of_groups.get_current_task_group(None) is None
    with DAG("d") as dag:
        assert of_dags.get_current_dag() is of_dags.get_current() is dag
        assert of_groups.get_current_task_group(dag) is dag.task_group
        with TaskGroup("g") as group:
            assert of_groups.get_current() is of_groups.get_current_task_group(dag) is group
    assert of_dags.get_current_dag() is None


def test_helpers_can_open_and_close_blocks() -> None:
    from airflow.models.dag import DagContext
    from airflow.operators.empty import EmptyOperator
    from airflow.utils.task_group import TaskGroupContext

    dag = DAG("d")
    DagContext.push_context_managed_dag(dag)
    group = TaskGroup("g")
    TaskGroupContext.push_context_managed_task_group(group)
    EmptyOperator(task_id="inside")
    assert TaskGroupContext.pop_context_managed_task_group() is group
    EmptyOperator(task_id="outside")
    assert DagContext.pop_context_managed_dag() is dag
    assert DagContext.pop_context_managed_dag() is None
    assert sorted(dag.task_ids) == ["g.inside", "outside"]
