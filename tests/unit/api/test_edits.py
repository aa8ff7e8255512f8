"""What people change through the API: marks, states of runs, notes, clears, backfills."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.conftest import World
from tradewind.model.definition import CronSchedule, DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.moments import iso, parse_moment
from tradewind.model.rows import ParsedDag, ParsedFile

RUN = "/api/v2/dags/sales/dagRuns/r1"
TASK = f"{RUN}/taskInstances/t0"


def patch(world: World, path: str, **body: Any) -> Any:
    answer = world.request("PATCH", path, "user", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def states(world: World) -> list[str | None]:
    return [one["state"] for one in world.json(f"{RUN}/taskInstances")["task_instances"]]


@pytest.mark.spec("S449")
def test_mark_a_task_with_and_without_dry_run(world: World) -> None:
    world.dag()
    world.run()
    result = patch(world, f"{TASK}/dry_run", new_state="success", include_downstream=True)
    assert [one["task_id"] for one in result["task_instances"]] == ["t0", "t1", "t2"]
    assert states(world) == [None, None, None]
    result = patch(world, TASK, new_state="success", note="by hand")
    assert [(one["task_id"], one["state"], one["note"]) for one in result["task_instances"]] == [("t0", "success", "by hand")]
    assert states(world) == ["success", None, None]
    again = world.request("PATCH", TASK, json={"new_state": "success"})
    assert (again.status_code, again.json()["detail"]) == (409, "Task id t0 is already in success state")
    assert patch(world, f"{TASK}/-1", new_state="failed")["total_entries"] == 1
    assert states(world) == ["failed", None, None]
    assert {one["owner"] for one in world.json("/api/v2/eventLogs?event=mark")["event_logs"]} == {"user"}


def test_update_mask_selects_fields(world: World) -> None:
    world.dag()
    world.run()
    patch(world, f"{TASK}?update_mask=note", new_state="success", note="only this")
    assert (states(world)[0], world.json(TASK)["note"]) == (None, "only this")
    patch(world, TASK, note=None)
    assert world.json(TASK)["note"] is None


@pytest.mark.spec("S191")
def test_a_runs_state_and_note(world: World) -> None:
    world.dag()
    world.run()
    run = patch(world, RUN, state="failed", note="wrong day")
    assert (run["state"], run["note"]) == ("failed", "wrong day")
    assert states(world) == ["skipped"] * 3
    assert patch(world, RUN, state="success")["state"] == "success"
    assert states(world) == ["success"] * 3
    assert patch(world, RUN, state="queued")["state"] == "queued"
    assert patch(world, RUN, note="")["note"] is None


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        (RUN, {"state": "running"}, 422, "not one of queued"),
        (RUN, {"state": "failed", "why": 1}, 422, "why"),
        (RUN.replace("r1", "r9"), {"state": "failed"}, 404, "r9"),
        (TASK, {"new_state": "running"}, 422, "not one of success"),
        (TASK.replace("t0", "t9"), {"new_state": "failed"}, 404, "t9"),
        (f"{TASK}/5", {"new_state": "failed"}, 404, "map index 5"),
        (TASK, {"note": "x" * 1001}, 422, "1000"),
    ],
)
def test_invalid_changes_are_refused(world: World, path: str, body: dict[str, Any], status: int, says: str) -> None:
    world.dag()
    world.run()
    answer = world.request("PATCH", path, json=body)
    assert (answer.status_code, says in answer.text) == (status, True), answer.text
    assert world.control.calls == []


@pytest.mark.spec("S437")
def test_clear_passes_all_fields_of_airflow(world: World) -> None:
    world.dag()
    world.run()
    body = {
        "dag_run_id": "r1",
        "task_ids": [["t1", 3], "t2"],
        "only_failed": False,
        "only_running": True,
        "include_upstream": True,
        "include_downstream": True,
        "include_past": True,
        "include_future": True,
        "reset_dag_runs": False,
        "prevent_running_task": True,
        "run_on_latest_version": False,
    }
    answer = world.request("POST", "/api/v2/dags/sales/clearTaskInstances", json=body)
    assert answer.status_code == 200, answer.text
    ((_, _, args),) = world.control.calls
    assert args == {
        "dag_id": "sales",
        "run_id": "r1",
        "task_ids": ["t2"],
        "instances": [("t1", 3)],
        "upstream": True,
        "downstream": True,
        "past": True,
        "future": True,
        "only_running": True,
        "reset_dag_runs": False,
        "not_running": True,
        "dry_run": True,
        "latest_version": False,
    }


def test_a_run_is_cleared(world: World) -> None:
    world.dag()
    world.run()
    received = world.request("POST", f"{RUN}/clear", json={})
    assert (received.status_code, received.json()["total_entries"]) == (200, 0)
    assert world.request("POST", f"{RUN}/clear", json={"dry_run": False, "note": "again"}).json()["note"] == "again"
    assert world.request("POST", f"{RUN}/clear", json={"only_new": True}).status_code == 400
    assert world.request("POST", f"{RUN}/clear", json={"run_on_latest_version": True}).status_code == 200
    assert world.control.calls[-1][2]["latest_version"] is True


# --- backfills ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def daily(world: World) -> World:
    """A DAG with a schedule, on its third day."""
    world.clock.jump_wall(parse_moment("2024-01-04T12:00:00Z") - world.clock.wall())
    definition = DagDefinition(
        "daily", tasks=(TaskDefinition("t"),), schedule=CronSchedule(("0 0 * * *",)), start_date=parse_moment("2024-01-01")
    )
    data = encode_definition(definition)
    found = ParsedFile("dags", "daily.py", "h", (ParsedDag("daily", data, version_hash(data)),), None, 9, False, 1)
    world.store.register_file(found, paused_at_creation=False)
    return world


SPAN = {"dag_id": "daily", "from_date": "2024-01-01T00:00:00Z", "to_date": "2024-01-03T00:00:00Z"}


def test_a_backfill_is_planned_created_paused_and_cancelled(daily: World) -> None:
    plan = daily.request("POST", "/api/v2/backfills/dry_run", "user", json=SPAN).json()
    assert [(one["logical_date"], one["outcome"]) for one in plan["backfills"]] == [
        (f"2024-01-0{day}T00:00:00Z", "new") for day in (1, 2, 3)
    ]
    made = daily.request("POST", "/api/v2/backfills", "user", json={**SPAN, "max_active_runs": 2, "dag_run_conf": {"n": 1}})
    assert made.status_code == 200, made.text
    one = made.json()
    assert (one["dag_id"], one["max_active_runs"], one["dag_run_conf"], one["runs"]) == ("daily", 2, {"n": 1}, 3)
    assert daily.json("/api/v2/backfills?dag_id=daily") == {"backfills": [one], "total_entries": 1}
    assert daily.json(f"/api/v2/backfills/{one['id']}") == one
    assert daily.request("POST", "/api/v2/backfills", json=SPAN).status_code == 409
    for method in ("PUT", "POST"):
        for verb, paused in (("pause", True), ("unpause", False)):
            answer = daily.request(method, f"/api/v2/backfills/{one['id']}/{verb}")
            assert (answer.status_code, answer.json()["is_paused"]) == (200, paused)
    assert daily.request("PUT", f"/api/v2/backfills/{one['id']}/cancel").json()["completed_at"] is not None
    assert daily.request("PUT", f"/api/v2/backfills/{one['id']}/cancel").status_code == 409
    assert daily.get("/api/v2/backfills/77").status_code == 404
    assert daily.get("/api/v2/backfills?dag_id=daily&order_by=-colour").status_code == 400
    assert daily.request("POST", "/api/v2/backfills", json={**SPAN, "dag_id": "dayly"}).status_code == 404


def test_a_clear_ignores_tasks_that_the_dag_does_not_have(world: World) -> None:
    world.dag()
    world.run()
    path = "/api/v2/dags/sales/clearTaskInstances"
    for body in ({"task_ids": ["none"]}, {"task_ids": ["none"], "dag_run_id": "r1"}, {"task_ids": [["none", 3]]}):
        answer = world.request("POST", path, json={**body, "dry_run": True, "only_failed": False})
        assert (answer.status_code, answer.json()["total_entries"]) == (200, 0)


def test_the_id_of_a_manual_run_has_the_moment_of_its_request(daily: World) -> None:
    runs = "/api/v2/dags/daily/dagRuns"
    now = (iso(daily.clock.wall()) or "").replace("Z", "+00:00")
    made = daily.request("POST", runs, json={"logical_date": "2024-01-02T00:00:00Z"}).json()
    assert (made["dag_run_id"], made["logical_date"]) == (f"manual__{now}", "2024-01-02T00:00:00Z")
    later = daily.request("POST", runs, json={"logical_date": None, "run_after": "2024-02-01T00:00:00Z"}).json()
    assert later["dag_run_id"] == "manual__2024-02-01T00:00:00+00:00"


@pytest.mark.parametrize("kind", ["scheduled", "backfill", "asset_triggered"])
def test_a_manual_run_cannot_have_an_id_of_another_kind(daily: World, kind: str) -> None:
    body = {"logical_date": None, "dag_run_id": f"{kind}__2024-01-01T00:00:00+00:00"}
    answer = daily.request("POST", "/api/v2/dags/daily/dagRuns", json=body)
    assert answer.status_code == 400
    assert kind in answer.json()["detail"]


def test_a_partition_key_that_the_dag_cannot_have_is_400(daily: World) -> None:
    body = {"logical_date": None, "partition_key": "k"}
    assert daily.request("POST", "/api/v2/dags/daily/dagRuns", json=body).status_code == 400


def test_a_planned_backfill_lists_only_runs_that_it_would_create(daily: World) -> None:
    day = parse_moment("2024-01-02T00:00:00Z")
    daily.run("daily", "own", logical_date=day, run_after=day)
    plan = daily.request("POST", "/api/v2/backfills/dry_run", json=SPAN).json()
    assert [one["logical_date"][:10] for one in plan["backfills"]] == ["2024-01-01", "2024-01-03"]
    wrong = {**SPAN, "from_date": SPAN["to_date"], "to_date": SPAN["from_date"]}
    assert daily.request("POST", "/api/v2/backfills", json=wrong).status_code == 422
