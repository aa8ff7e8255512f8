"""The header `Idempotency-Key`: a request that is sent again creates nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api import full_world
from tests.unit.api.conftest import World

RUNS = "/api/v2/dags/sales/dagRuns"


def post(world: World, key: str | None, body: Any, path: str = RUNS, role: str = "admin") -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = world.request("POST", path, role, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def sales(world: World) -> World:
    world.dag()
    return world


def number_of_runs(world: World) -> int:
    return int(world.json(RUNS)["total_entries"])


def test_a_repeated_request_gets_the_first_result(sales: World) -> None:
    body = {"logical_date": None, "conf": {"day": "monday"}}
    first = post(sales, "a", body)
    sales.clock.advance(60_000_000)
    assert post(sales, "a", body)["dag_run_id"] == first["dag_run_id"]
    assert number_of_runs(sales) == 1


def test_with_a_run_id_a_repeated_request_is_no_conflict(sales: World) -> None:
    body = {"logical_date": None, "dag_run_id": "mine"}
    assert [post(sales, "a", body)["dag_run_id"] for _ in range(2)] == ["mine", "mine"]
    assert sales.request("POST", RUNS, json=body).status_code == 409, "without the key"


def test_other_keys_bodies_accounts_and_paths_are_other_requests(sales: World) -> None:
    sales.dag("orders")
    body = {"logical_date": None}
    post(sales, "a", body)
    other_requests: list[dict[str, Any]] = [
        {"key": "b", "body": body},
        {"key": None, "body": body},
        {"key": "a", "body": {**body, "note": "x"}},
        {"key": "a", "body": body, "role": "user"},
    ]
    for number, more in enumerate(other_requests):
        sales.clock.advance(1_000_000)
        post(sales, **more)
        assert number_of_runs(sales) == number + 2
    post(sales, "a", body, "/api/v2/dags/orders/dagRuns")
    assert sales.json("/api/v2/dags/orders/dagRuns")["total_entries"] == 1


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_an_invalid_key_is_422(sales: World, key: str) -> None:
    answer = sales.request("POST", RUNS, json={"logical_date": None}, headers={"Idempotency-Key": key})
    assert answer.status_code == 422
    assert number_of_runs(sales) == 0


def test_asset_events_and_backfills_are_created_once(world: World) -> None:
    known = full_world.fill(world)
    events, backfills = "/api/v2/assets/events", "/api/v2/backfills"
    event = {"asset_id": known["asset_id"], "extra": {"n": 1}}
    assert post(world, "a", event, events)["id"] == post(world, "a", event, events)["id"]
    assert world.request("PUT", f"{backfills}/{known['backfill_id']}/cancel").status_code == 200
    span = {"dag_id": "sales", "from_date": "2024-01-01T00:00:00Z", "to_date": "2024-01-02T00:00:00Z"}
    assert post(world, "a", span, backfills)["id"] == post(world, "a", span, backfills)["id"]
    materialize = f"/api/v2/assets/{known['asset_id']}/materialize"
    assert post(world, "a", {"note": "x"}, materialize) == post(world, "a", {"note": "x"}, materialize)
