"""The use of a pool, the calendar of a DAG, and search."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import PAGE, counted_statements, register, set_states
from tradewind.api.calendar_days import days_of
from tradewind.model.definition import CronSchedule, DagDefinition, TaskDefinition
from tradewind.model.moments import DAY, HOUR, to_micros
from tradewind.model.rows import PoolRow
from tradewind.model.states import RunState, TaskState


@pytest.fixture
def sales(world: World) -> World:
    tasks = (TaskDefinition("load_orders"), TaskDefinition("report"))
    register(world, DagDefinition("sales", tasks=tasks, display_name="Sales of the day", schedule=CronSchedule(("0 6 * * *",))))
    register(world, DagDefinition("orders"))
    return world


def test_a_pool_shows_its_settings_and_its_use(sales: World) -> None:
    sales.store.set_pool(PoolRow("warehouse", 4, "slow disks", False), "ada", 1)
    found = sales.json(f"{PAGE}/pools/warehouse")
    assert (found["slots"], found["description"], found["holders"], found["waiting_count"]) == (4, "slow disks", [], 0)
    assert "warehouse" in sales.json(f"{PAGE}/pools/warehous", 404)["detail"]
    sales.control.gone = True
    assert sales.get(f"{PAGE}/pools/warehouse").status_code == 503


def test_the_calendar_counts_runs_by_day_and_plans_future_ones(sales: World) -> None:
    now = sales.clock.wall()
    for number, (back, state) in enumerate(((2, RunState.SUCCESS), (2, RunState.FAILED), (1, RunState.SUCCESS))):
        run = sales.run("sales", f"r{number}", run_after=now - back * DAY)
        set_states(sales, run, (TaskState.SUCCESS, TaskState.SUCCESS), state)
    found = sales.json(f"{PAGE}/dags/sales/calendar")
    past = [day for day in found["days"] if not day["planned"]]
    assert [(day["state"], day["success"], day["failed"]) for day in past] == [("failed", 1, 1), ("success", 1, 0)]
    assert found["planned_known"] is True
    planned = [day for day in found["days"] if day["planned"]]
    assert len(planned) >= 29
    assert planned[0]["state"] is None
    assert len(found["next_runs"]) == 10
    assert found["next_runs"] == sorted(found["next_runs"])
    assert found["next_runs"][0][:10] == planned[0]["date"]
    sales.control.gone = True
    assert sales.json(f"{PAGE}/dags/sales/calendar")["planned_known"] is False


def test_days_follow_the_time_zone() -> None:
    late = to_micros(datetime(2026, 3, 1, 18, 45, tzinfo=UTC))
    counted = [(late, RunState.SUCCESS.code, 2)]
    assert [day.date for day in days_of(counted, [late + HOUR], ZoneInfo("Asia/Kolkata"))] == ["2026-03-02"]
    assert [day.date for day in days_of(counted, [late + 6 * HOUR], UTC)] == ["2026-03-01", "2026-03-02"]


@pytest.mark.parametrize(
    "query",
    ["?timezone=Mars", "?start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z", "?start=2000-01-01T00:00:00Z"],
)
def test_the_calendar_refuses_what_it_cannot_show(sales: World, query: str) -> None:
    assert sales.get(f"{PAGE}/dags/sales/calendar{query}").status_code == 400


def names(world: World, query: str) -> list[Any]:
    return [(one["kind"], one["name"]) for one in world.json(f"{PAGE}/search?q={query}")["found"]]


def test_search_finds_dags_tasks_runs_and_pools(sales: World) -> None:
    sales.run("sales", "orders_by_hand")
    sales.store.set_pool(PoolRow("orders_pool", 4, None, False), "ada", 1)
    assert names(sales, "OF+THE") == [("dag", "Sales of the day")]
    assert names(sales, "orders") == [("dag", "orders"), ("pool", "orders_pool")]
    assert names(sales, "orders&dag_id=sales") == [
        ("dag", "orders"),
        ("pool", "orders_pool"),
        ("run", "orders_by_hand"),
        ("task", "load_orders"),
    ]
    assert len(names(sales, "o&limit=1")) == 1
    assert names(sales, "nothing&dag_id=gone") == []


@pytest.mark.parametrize("runs", [1, 30])
def test_search_executes_a_fixed_number_of_statements(sales: World, monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    for number in range(runs):
        sales.run("sales", f"r{number}")
    with counted_statements(monkeypatch) as statements:
        names(sales, "r&dag_id=sales")
    assert len(statements) == 6
