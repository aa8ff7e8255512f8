"""Fields of DAGs and their tasks that Airflow's clients read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import register
from tradewind.airflow.names import ROWS
from tradewind.model.assets import AllOf, AnyOf, AssetKey, AssetSchedule
from tradewind.model.definition import (
    CronSchedule,
    DagDefinition,
    DefinitionDefaults,
    EventsSchedule,
    NoSchedule,
    OnceSchedule,
    Schedule,
    TaskDefinition,
)
from tradewind.model.moments import DAY, HOUR, iso, parse_moment
from tradewind.model.operator_classes import AIRFLOW_MODULES
from tradewind.sdk import DAG, Asset, Param
from tradewind.sdk.definition import to_definition
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.shown_arguments import shown_default_args

START = parse_moment("2024-01-01T00:00:00Z")


def define(dag: DAG) -> DagDefinition:
    return to_definition(dag, f"{dag.dag_id}.py", DefinitionDefaults())


def details(world: World, definition: DagDefinition) -> dict[str, Any]:
    register(world, definition)
    found: dict[str, Any] = world.json(f"/api/v2/dags/{definition.dag_id}/details")
    return found


def test_default_args_have_the_forms_of_airflow() -> None:
    def ours(context: Any) -> None:
        raise AssertionError

    given = {
        "owner": "ann",
        "retries": 2,
        "retry_delay": timedelta(minutes=7),
        "start_date": datetime(2025, 1, 2, tzinfo=UTC),
        "email": ("a@example.com",),
        "on_failure_callback": ours,
        "on_retry_callback": None,
        "password": "secret",
        "tags": {"b", "a"},
        "own": object(),
        "end_date": None,
    }
    assert shown_default_args(given) == {
        "owner": "ann",
        "retries": 2,
        "retry_delay": "PT7M",
        "start_date": "2025-01-02T00:00:00Z",
        "email": ["a@example.com"],
        "tags": ["a", "b"],
        "own": "<object object>",
        "end_date": None,
        "has_on_failure_callback": True,
        "password": "***",
    }


def test_details_show_default_args(world: World) -> None:
    with DAG("d", schedule=None, default_args={"owner": "ann", "retries": 1}) as dag:
        BaseOperator(task_id="t")
    assert details(world, define(dag))["default_args"] == {"owner": "ann", "retries": 1}
    assert details(world, DagDefinition("none", (TaskDefinition("t"),)))["default_args"] == {}


def test_a_schedule_of_one_asset_in_a_list_is_a_list(world: World) -> None:
    one = Asset("one", uri="s3://b/one")
    for name, schedule, shape in (("l", [one], "all"), ("s", one, "asset")):
        with DAG(name, schedule=schedule) as dag:
            BaseOperator(task_id="t")
        assert list(details(world, define(dag))["asset_expression"]) == [shape]


def test_assets_of_an_expression_have_ids(world: World) -> None:
    one, two = AssetKey("one", "s3://b/one"), AssetKey("two", "s3://b/two")
    found = details(world, DagDefinition("d", (TaskDefinition("t"),), assets=AssetSchedule(AnyOf((AllOf((one,)), two)))))
    known = {asset["name"]: asset["id"] for asset in world.json("/api/v2/assets")["assets"]}
    shown = found["asset_expression"]["any"]
    assert shown[0]["all"][0]["asset"] == {"uri": "s3://b/one", "name": "one", "group": "asset", "id": known["one"]}
    assert shown[1]["asset"]["id"] == known["two"]


@pytest.mark.parametrize(
    ("schedule", "written", "shown"),
    [
        (CronSchedule(("0 0 * * *",)), "@daily", "0 0 * * *"),
        (CronSchedule(("0 6 * * *",)), "0 6 * * *", "0 6 * * *"),
        (OnceSchedule(), "@once", "@once"),
        (NoSchedule(), None, None),
    ],
)
def test_the_summary_of_a_schedule(world: World, schedule: Schedule, written: str | None, shown: str | None) -> None:
    definition = DagDefinition("d", (TaskDefinition("t"),), schedule=schedule, schedule_summary=written, start_date=START)
    assert details(world, definition)["timetable_summary"] == shown


def test_a_paused_dag_shows_its_next_run(world: World) -> None:
    world.clock.advance(HOUR)
    day = world.clock.wall() // DAY * DAY  # the run of the latest date that has passed starts as soon as the DAG is unpaused
    register(world, DagDefinition("d", (TaskDefinition("t"),), schedule=CronSchedule(("0 0 * * *",)), start_date=START))
    world.store.set_paused("d", True, "me", world.clock.wall())
    found = world.json("/api/v2/dags/d")
    assert found["is_paused"] is True
    assert (found["next_dagrun_run_after"], found["next_dagrun_logical_date"]) == (iso(day), iso(day))
    assert [dag["next_dagrun_run_after"] for dag in world.json("/api/v2/dags")["dags"]] == [iso(day)]


def test_a_schedule_of_listed_dates_is_periodic(world: World) -> None:
    definition = DagDefinition("d", (TaskDefinition("t"),), schedule=EventsSchedule((START, START + DAY)), start_date=START)
    found = details(world, definition)
    assert (found["timetable_periodic"], found["is_backfillable"]) == (True, True)


def test_params_of_tasks_have_their_source_and_schema(world: World) -> None:
    params = {"must": Param(type="string"), "n": 1}
    with DAG("d", schedule=None, params=params) as dag:
        BaseOperator(task_id="t", params={"own": Param(2, type="integer", description="a number"), "n": 5})
    register(world, define(dag))
    assert world.json("/api/v2/dags/d/tasks/t")["params"] == {
        "must": {"value": None, "schema": {"type": "string"}, "description": None, "source": "dag"},
        "n": {"value": 5, "schema": {}, "description": None, "source": "task"},
        "own": {"value": 2, "schema": {"type": "integer"}, "description": "a number", "source": "task"},
    }
    shown = world.json("/api/v2/dags/d/details")["params"]["n"]
    assert shown == {"value": 1, "schema": {}, "description": None, "source": None}


def test_our_operators_have_the_modules_of_airflow(world: World) -> None:
    register(
        world,
        DagDefinition(
            "d",
            (
                TaskDefinition("a", operator="BashOperator", module="tradewind.operators.bash"),
                TaskDefinition("b", operator="Own", module="company.operators"),
                TaskDefinition("c", operator="@asset", module="tradewind.sdk.asset_decorator"),
            ),
        ),
    )
    shown = [task["class_ref"] for task in world.json("/api/v2/dags/d/tasks")["tasks"]]
    assert shown == [
        {"module_path": "airflow.providers.standard.operators.bash", "class_name": "BashOperator"},
        {"module_path": "company.operators", "class_name": "Own"},
        {"module_path": "airflow.sdk.definitions.asset.decorators", "class_name": "_AssetMainOperator"},
    ]


def test_every_module_of_airflow_has_our_classes() -> None:
    known = [(row[0], str(row[2])) for row in ROWS]
    for ours, airflow in AIRFLOW_MODULES.items():
        name = airflow.removeprefix("airflow.")
        assert any(module == ours and name in paths for module, paths in known), f"{ours}: {airflow}"


def test_numbers_of_tasks_are_floats_as_in_airflow(world: World) -> None:
    register(world, DagDefinition("d", (TaskDefinition("a", retries=2),)))
    assert '"retries":2.0' in world.get("/api/v2/dags/d/tasks/a").text
