"""Why, and what comes next, over the API: the scheduler's answer in its shape."""

from __future__ import annotations

import pytest

from tests.unit.api.conftest import World
from tradewind.model.moments import iso

RUN = "/api/v2/dags/sales/dagRuns/r1"


@pytest.fixture
def asked(world: World) -> World:
    """A DAG with a run. The answers come from the store alone, as on the command line without a scheduler."""
    world.dag()
    world.run()
    return world


def test_why_of_a_task_instance(asked: World) -> None:
    found = asked.json(f"{RUN}/taskInstances/t1/why")
    assert (found["dag_id"], found["run_id"], found["task_id"], found["state"]) == ("sales", "r1", "t1", None)
    rules = {one["rule"]: one for one in found["blockers"]}
    assert set(rules) == {"no_scheduler", "paused", "trigger_rule"}
    assert rules["paused"]["command"] == "tradewind dags unpause sales"
    assert rules["trigger_rule"]["ends_with"] == "t0 ends"
    assert found["earliest_start"] is None
    assert asked.get(f"{RUN}/taskInstances/t9/why").status_code == 404


def test_airflows_dependencies(asked: World) -> None:
    found = asked.json(f"{RUN}/taskInstances/t1/dependencies")
    assert {one["name"] for one in found["dependencies"]} == {"Dagrun Running", "Dag Not Paused", "Trigger Rule"}
    assert asked.json(f"{RUN}/taskInstances/t1/-1/dependencies") == found
    assert "t0 (not started)" in next(one["reason"] for one in found["dependencies"] if one["name"] == "Trigger Rule")


def test_why_of_a_run_and_of_the_next_run(asked: World) -> None:
    assert "paused" in {one["rule"] for one in asked.json(f"{RUN}/why")["blockers"]}
    found = asked.json("/api/v2/dags/sales/why")
    assert (found["run_id"], [one["rule"] for one in found["blockers"]]) == (None, ["no_scheduler", "paused", "no_schedule"])
    assert "no_such_date" in {
        one["rule"] for one in asked.json("/api/v2/dags/sales/why?logical_date=2026-01-01T00:00:00Z")["blockers"]
    }
    assert asked.get("/api/v2/dags/sales/why?logical_date=soon").status_code == 422


def test_upcoming(asked: World) -> None:
    found = asked.json("/api/v2/upcoming?timezone=Asia/Shanghai")
    assert found == {"upcoming": [], "timezone": "Asia/Shanghai", "paused_dags": 1}
    asked.store.set_paused("sales", False, "ann", 0)
    (one,) = asked.json("/api/v2/upcoming?dag_ids=sales")["upcoming"]
    assert (one["kind"], one["run_id"], one["at"]) == ("queued", "r1", iso(asked.clock.wall()))
    assert asked.get("/api/v2/upcoming?timezone=Mars").status_code == 400


def test_why_without_a_scheduler_is_503(asked: World) -> None:
    asked.control.gone = True
    assert asked.get(f"{RUN}/taskInstances/t1/why").status_code == 503


def test_open_waits(asked: World) -> None:
    assert asked.json("/api/v2/waits") == {"waits": []}
    assert asked.json("/api/v2/waits?dag_id=sales&impossible=true") == {"waits": []}
    assert asked.get("/api/v2/waits?dag_id=nobody").status_code == 404
