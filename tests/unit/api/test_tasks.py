"""Tasks of a DAG and their operators in the API. Expected values: the answers of Airflow 3.3.2."""

from __future__ import annotations

from typing import Any

from tests.unit.api.conftest import World
from tradewind.model.definition import DagDefinition, ParamDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND, iso_duration
from tradewind.model.rows import ParsedDag, ParsedFile

START = 1_704_067_200_000_000
"""2024-01-01."""


def register(world: World, *tasks: TaskDefinition, **more: Any) -> None:
    data = encode_definition(DagDefinition("sales", tasks=tasks, **more))
    parsed = ParsedDag("sales", data, version_hash(data))
    world.store.register_file(ParsedFile("dags", "sales.py", "h", (parsed,), None, 9, False, 1), paused_at_creation=True)


def test_a_task_has_the_params_and_the_dates_of_its_dag(world: World) -> None:
    param = ParamDefinition("x", has_default=True, default=1, schema={"type": "integer"}, description="a number")
    first = TaskDefinition("a", operator="BashOperator", module="our.module", params={"x": 1, "own": "text"})
    later = TaskDefinition("b", operator="@task", start_date=START + DAY)
    register(world, first, later, params=(param,), start_date=START)
    one, other = world.json("/api/v2/dags/sales/tasks")["tasks"]
    assert one["params"] == {
        "x": {"value": 1, "schema": {"type": "integer"}, "description": "a number", "source": "dag"},
        "own": {"value": "text", "schema": {}, "description": None, "source": "task"},
    }
    assert (one["start_date"], other["start_date"]) == ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z")
    assert one["class_ref"] == {"module_path": "our.module", "class_name": "BashOperator"}
    assert other["operator_name"] == "@task"
    assert other["class_ref"] == {
        "module_path": "airflow.providers.standard.decorators.python",
        "class_name": "_PythonDecoratedOperator",
    }


def test_the_operator_of_a_task_instance_is_a_class(world: World) -> None:
    register(world, TaskDefinition("a", operator="@task.branch"), TaskDefinition("b", operator="EmptyOperator"))
    world.run()
    path = "/api/v2/dags/sales/dagRuns/r1/taskInstances"
    found = world.json(path)["task_instances"]
    assert [(one["operator"], one["operator_name"]) for one in found] == [
        ("_BranchPythonDecoratedOperator", "@task.branch"),
        ("EmptyOperator", "EmptyOperator"),
    ]
    for name in ("_BranchPythonDecoratedOperator", "@task.branch"):
        assert [one["task_id"] for one in world.json(f"{path}?operator={name}")["task_instances"]] == ["a"]


def test_durations_have_the_form_of_iso_8601() -> None:
    assert [iso_duration(one) for one in (HOUR, HOUR + 30 * MINUTE, 90 * SECOND, DAY + SECOND, SECOND // 2, 0)] == [
        "PT1H",
        "PT1H30M",
        "PT1M30S",
        "P1DT1S",
        "PT0.5S",
        "PT0S",
    ]
