"""The state stores of tasks and assets over the API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api import full_world
from tests.unit.api.conftest import World
from tradewind.model.moments import DAY, iso

TASK = "/api/v2/dags/sales/dagRuns/r1/taskInstances/t0/state-store"


@pytest.fixture
def asset(world: World) -> str:
    """The path of the store of an asset; the full world has a value in each store."""
    return f"/api/v2/assets/{full_world.fill(world)['asset_id']}/state-store"


def put(world: World, path: str, value: Any, status: int = 204, **more: Any) -> Any:
    answer = world.request("PUT", path, json={"value": value, **more})
    assert answer.status_code == status, answer.text
    return answer


def test_a_value_of_a_task(world: World, asset: str) -> None:
    put(world, f"{TASK}/page", 7)
    found = world.json(f"{TASK}/page")
    assert found == {
        "key": "page",
        "value": 7,
        "updated_at": iso(world.clock.wall()),
        "expires_at": iso(world.clock.wall() + 30 * DAY),
    }
    assert [one["key"] for one in world.json(f"{TASK}?limit=1&offset=1")["task_state_store"]] == ["page"]
    assert world.json(TASK)["total_entries"] == 2
    assert "Did you mean 'page'?" in world.json(f"{TASK}/pages", 404)["detail"]
    assert world.request("DELETE", f"{TASK}/page").status_code == 204
    assert world.request("DELETE", f"{TASK}/page").status_code == 204
    assert world.request("DELETE", TASK).status_code == 204
    assert world.json(TASK) == {"task_state_store": [], "total_entries": 0}


def test_a_changed_value_expires_when_it_would_have_before(world: World, asset: str) -> None:
    put(world, f"{TASK}/page", 7, expires_at="2030-01-01T00:00:00Z")
    assert world.request("PATCH", f"{TASK}/page", json={"value": [8]}).json()["expires_at"] == "2030-01-01T00:00:00Z"
    assert world.request("PATCH", f"{TASK}/pages", json={"value": 8}).status_code == 404
    put(world, f"{TASK}/page", 9, expires_at=None)
    assert world.json(f"{TASK}/page")["expires_at"] is None


def test_each_task_instance_of_a_mapped_task_has_its_own_values(world: World, asset: str) -> None:
    mapped = TASK.replace("t0", "many")
    for index in (0, 1):
        put(world, f"{mapped}/page?map_index={index}", index)
    assert world.json(f"{mapped}/page?map_index=1")["value"] == 1
    assert put(world, f"{mapped}/page?map_index=5", 1, 404).json()["detail"].endswith("'many' with map index 5")
    assert world.request("DELETE", f"{mapped}?map_index=0").status_code == 204
    assert world.json(f"{mapped}?map_index=1")["total_entries"] == 1
    assert world.request("DELETE", f"{mapped}?all_map_indices=true").status_code == 204
    assert world.json(f"{mapped}?map_index=1")["total_entries"] == 0


def test_a_value_of_an_asset_names_who_wrote_it(world: World, asset: str) -> None:
    put(world, f"{asset}/seen", "x")
    found = world.json(f"{asset}/seen")
    assert (found["value"], found["last_updated_by"]["kind"], found["last_updated_by"]["dag_id"]) == ("x", "api", None)
    assert world.json(asset)["total_entries"] == 2
    assert world.request("DELETE", asset).status_code == 204
    assert world.json(asset) == {"asset_state_store": [], "total_entries": 0}
    for method in ("PUT", "DELETE", "GET"):
        body = {"value": 1} if method == "PUT" else None
        assert world.request(method, "/api/v2/assets/999/state-store/seen", json=body).status_code == 404


def test_secrets_are_masked_by_their_name(world: World, asset: str) -> None:
    for path in (TASK, asset):
        assert world.json(f"{path}/k")["value"] == {"a": [1], "password": "***"}
        put(world, f"{path}/api_key", "hunter2")
        assert "hunter2" not in world.get(path).text


def test_null_and_large_values_are_refused(world: World, asset: str) -> None:
    assert put(world, f"{TASK}/page", None, 422).json()["detail"][0]["loc"] == ["body", "value"]
    assert "1 to 512 characters" in put(world, f"{TASK}/{'k' * 513}", 1, 409).json()["detail"]


def test_changes_are_in_the_audit_log_without_their_values(world: World, asset: str) -> None:
    put(world, f"{TASK}/page", "confidential")
    put(world, f"{asset}/seen", "confidential")
    world.request("DELETE", f"{TASK}/page")
    world.request("DELETE", asset)
    shown = world.get("/api/v2/eventLogs?order_by=-when&limit=100")
    events = [one["event"] for one in shown.json()["event_logs"]]
    assert events[:4] == ["delete asset state", "delete task state", "set asset state", "set task state"]
    assert "confidential" not in shown.text
