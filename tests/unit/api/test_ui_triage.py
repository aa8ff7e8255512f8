"""The triage page's answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import PAGE, counted_statements, register, set_states
from tradewind.api.triage import usual
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND, iso
from tradewind.model.rows import DeadlineMiss, RunRow
from tradewind.model.states import RunState, TaskState

S = TaskState
CHAIN = (
    TaskDefinition("load", retries=2),
    TaskDefinition("report", upstream=("load",)),
    TaskDefinition("mail", upstream=("report",)),
)


def triage(world: World) -> Any:
    return world.json(f"{PAGE}/triage")


def fail(world: World, dag_id: str, run_id: str, reason: str = "KeyError: 'sku'\nTraceback") -> RunRow:
    run = world.run(dag_id, run_id, run_after=world.clock.wall())
    set_states(world, run, (S.FAILED, S.UPSTREAM_FAILED, S.UPSTREAM_FAILED), RunState.FAILED)
    with world.store.engine.transaction():
        world.store.engine.run(
            "UPDATE task_instance SET reason = ?, try_number = 3, max_tries = 2, ended_at = ? WHERE run = ? AND slot = 0",
            (reason, world.clock.wall(), run.id),
        )
    return run


def succeed(world: World, dag_id: str, run_id: str, took: int) -> None:
    run = world.run(dag_id, run_id, run_after=world.clock.wall())
    set_states(world, run, (S.SUCCESS, S.SUCCESS, S.SUCCESS), RunState.SUCCESS)
    with world.store.engine.transaction():
        world.store.engine.run("UPDATE dag_run SET ended_at = started_at + ? WHERE id = ?", (took, run.id))


@pytest.fixture
def sales(world: World) -> World:
    register(world, DagDefinition("sales", tasks=CHAIN))
    return world


def test_nothing_needs_anybody(sales: World) -> None:
    found = triage(sales)
    assert (found["failed"], found["late"], found["running"], found["blocked"], found["fixed"]) == ([], [], [], [], [])
    assert found["health"]["scheduler"] == {"status": "healthy", "problem": ""}


def test_a_failure_names_its_error_and_what_it_stopped(sales: World) -> None:
    fail(sales, "sales", "r1")
    (one,) = triage(sales)["failed"]
    assert (one["task_id"], one["error"], one["upstream_failed"]) == ("load", "KeyError: 'sku'", 2)
    assert (one["try_number"], one["tries"], one["run_state"]) == (3, 3, "failed")


def test_only_the_newest_ended_run_of_a_dag_counts(sales: World) -> None:
    fail(sales, "sales", "r1")
    sales.clock.advance(MINUTE)
    sales.run("sales", "queued", run_after=sales.clock.wall())
    assert triage(sales)["failed_total"] == 1, "a queued run has not shown yet that it works"
    succeed(sales, "sales", "r2", SECOND)
    found = triage(sales)
    assert (found["failed"], found["failed_total"]) == ([], 0)
    assert [(one["run_id"], one["failed_run_id"]) for one in found["fixed"]] == [("r2", "r1")]
    sales.clock.advance(3 * DAY)
    assert triage(sales)["fixed"] == []


def test_a_task_that_failed_in_a_run_that_goes_on_is_shown_at_once(sales: World) -> None:
    run = sales.run("sales", "r1")
    set_states(sales, run, (S.FAILED, S.UPSTREAM_FAILED, S.RUNNING))
    (one,) = triage(sales)["failed"]
    assert (one["task_id"], one["run_state"], one["upstream_failed"]) == ("load", "running", 1)


def test_a_run_is_late_when_it_takes_longer_than_the_latest_runs(sales: World) -> None:
    for number, took in enumerate((10, 20, 30)):
        succeed(sales, "sales", f"r{number}", took * MINUTE)
    set_states(sales, sales.run("sales", "now"), (S.RUNNING, S.NONE, S.NONE))
    started = sales.clock.wall()
    sales.clock.advance(15 * MINUTE)
    found = triage(sales)
    assert (found["late"], found["running"][0]["usual"]) == ([], {"low": 600.0, "median": 1200.0, "high": 1800.0, "runs": 3})
    assert found["running"][0]["expected_to"] == iso(started + 30 * MINUTE)
    sales.clock.advance(16 * MINUTE)
    found = triage(sales)
    assert ([one["late_because"] for one in found["late"]], found["running"]) == (["longer_than_usual"], [])
    assert found["late"][0]["elapsed"] == 31 * 60


def test_too_little_history_gives_no_estimate(sales: World) -> None:
    assert usual([SECOND, SECOND]) is None
    set_states(sales, sales.run("sales", "now"), (S.RUNNING, S.NONE, S.NONE))
    sales.clock.advance(DAY)
    (one,) = triage(sales)["running"]
    assert (one["usual"], one["expected_to"], one["late_because"]) == (None, None, None)


def test_a_missed_deadline_makes_a_run_late(sales: World) -> None:
    run = sales.run("sales", "now")
    set_states(sales, run, (S.RUNNING, S.NONE, S.NONE))
    at = sales.clock.wall()
    for name, due in (("alert/1", at + HOUR), ("alert/0", at)):
        sales.store.record_deadline_miss(DeadlineMiss(run.id, "sales", "now", None, name, f"label of {name}", due, at))
    (one,) = triage(sales)["late"]
    assert (one["late_because"], one["deadline"], one["deadline_at"]) == ("deadline", "label of alert/0", iso(at))


def test_without_a_scheduler_the_rest_is_shown(sales: World) -> None:
    fail(sales, "sales", "r1")
    sales.control.gone = True
    found = triage(sales)
    assert found["health"]["scheduler"]["status"] == "unhealthy"
    assert (len(found["failed"]), found["blocked"], found["next"]) == (1, [], [])


@pytest.mark.parametrize("dags", [2, 40])
def test_the_number_of_statements_is_fixed(world: World, monkeypatch: pytest.MonkeyPatch, dags: int) -> None:
    world.control.gone = True  # a scheduler that is played by the store executes statements of its own
    for number in range(dags):
        register(world, DagDefinition(f"d{number}", tasks=CHAIN))
        fail(world, f"d{number}", "r1")
        set_states(world, world.run(f"d{number}", "r2"), (S.FAILED, S.NONE, S.NONE))
    with counted_statements(monkeypatch) as statements:
        assert len(triage(world)["failed"]) == min(100, 2 * dags)
    assert len(statements) == 11
