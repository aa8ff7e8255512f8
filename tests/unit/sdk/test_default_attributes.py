"""Attributes of DAGs, tasks and connections that have a value although the author gave none, as in Airflow."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tradewind.model.definition import DefinitionDefaults
from tradewind.sdk.assets import Asset
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.sdk.variables import BaseHook, Connection

LISTS = (
    "inlets",
    "outlets",
    "on_execute_callback",
    "on_success_callback",
    "on_failure_callback",
    "on_retry_callback",
    "on_skipped_callback",
)


class Load(BaseOperator):
    def __init__(self, *, source: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = source


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_empty_and_belongs_to_its_task(name: str) -> None:
    first, second = BaseOperator(task_id="a"), BaseOperator(task_id="b")
    assert getattr(first, name) == []
    getattr(first, name).append("x")
    assert (getattr(first, name), getattr(second, name)) == (["x"], [])


def test_an_outlet_that_is_appended_is_in_the_definition() -> None:
    with DAG("d") as dag:
        BaseOperator(task_id="a").outlets.append(Asset("orders"))
    assert [use.kind for use in to_definition(dag, "f.py", DefinitionDefaults()).asset_uses] == ["outlet"]


def test_whether_a_task_or_dag_has_callbacks() -> None:
    dag = DAG("d", on_failure_callback=print)
    task = BaseOperator(task_id="a", on_retry_callback=print, dag=dag)
    assert (dag.has_on_failure_callback, dag.has_on_success_callback) == (True, False)
    assert (task.has_on_retry_callback, task.has_on_execute_callback, task.has_on_success_callback) == (True, False, False)
    assert (task.has_on_failure_callback, task.has_on_skipped_callback) == (False, False)


def test_the_shown_name_is_the_id_unless_one_is_given() -> None:
    with DAG("d") as dag, TaskGroup("g"):
        plain, named = BaseOperator(task_id="a"), BaseOperator(task_id="b", task_display_name="Load it")
    assert (dag.dag_display_name, dag.display_name, plain.task_display_name, named.task_display_name) == (
        "d",
        "d",
        "g.a",
        "Load it",
    )
    definition = to_definition(dag, "f.py", DefinitionDefaults())
    assert (definition.display_name, [task.display_name for task in definition.tasks]) == (None, [None, "Load it"])
    assert DAG("e", dag_display_name="All of it").dag_display_name == "All of it"


@pytest.mark.parametrize("name", ["_log", "_cached_logger"])
def test_a_logger_can_be_replaced(name: str) -> None:
    task, logger = BaseOperator(task_id="a"), logging.getLogger("mine")
    setattr(task, name, logger)
    assert task.log is logger
    assert BaseOperator(task_id="b").log is not logger


def test_the_ends_of_a_task_are_lists() -> None:
    task = BaseOperator(task_id="a")
    assert (task.roots, task.leaves, task.is_mapped) == ([task], [task], False)


def test_a_test_sets_the_tasks_around_a_task() -> None:
    with DAG("d"):
        first, second = BaseOperator(task_id="a"), BaseOperator(task_id="b")
    first >> second
    assert (first.downstream_task_ids, second.upstream_task_ids) == ({"b"}, {"a"})
    first.downstream_task_ids = {"x"}
    second.upstream_task_ids = {"y"}
    assert (first.downstream_task_ids, second.upstream_task_ids) == ({"x"}, {"y"})
    assert (first.downstream_list, second.upstream_list) == ([second], [first])


def test_a_mapped_task_gives_the_operator_for_its_values() -> None:
    with DAG("d"):
        mapped = Load.partial(task_id="a").expand(source=["x", "y"])
    instance = mapped.unmap({"source": "y"})
    assert isinstance(instance, Load)
    assert (instance.source, instance.task_id, mapped.is_mapped, instance.is_mapped) == ("y", "a", True, False)
    assert mapped.get_closest_mapped_task_group() is None
    assert (mapped._task_module, mapped._task_type, instance._task_module) == (__name__, "Load", __name__)


def test_teardowns_and_what_is_before_them() -> None:
    with DAG("d") as dag:
        made, used, first, second = (BaseOperator(task_id=name) for name in "abcd")
        made >> used >> first.as_teardown(setups=made) >> second.as_teardown()
    assert dag.teardowns == [first, second]
    assert dag.tasks_upstream_of_teardowns == [made, used]
    dag.set_edge_info("a", "b", {"label": "yes"})
    assert dag.get_edge_info("a", "b") == {"label": "yes"}


def test_a_uri_without_a_path_has_an_empty_schema() -> None:
    assert Connection(uri="http://host").schema == ""
    assert Connection(uri="http://host").get_uri() == "http://host"


@pytest.mark.parametrize("name", ["get", "get_connection_from_secrets"])
def test_a_test_replaces_the_function_that_finds_connections(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Connection(conn_id="mine")
    monkeypatch.setattr(Connection, name, lambda _conn_id: made)
    assert BaseHook.get_connection("anything") is made


def test_parts_of_a_connection_in_an_event_loop() -> None:
    connection = Connection(uri="http://host/db?a=1")
    assert asyncio.run(connection.aextra_dejson()) == {"a": "1"}
    assert asyncio.run(connection.aget_uri()) == connection.get_uri()
