"""Fields of task instances that Airflow's clients read, in the cases in which a task has not run in the usual way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api import full_world
from tests.unit.api.conftest import World
from tests.unit.api.page_world import register
from tradewind.execution.rendered_fields import stored_fields
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import MINUTE, SECOND, iso
from tradewind.model.rows import NewJob
from tradewind.model.states import TaskState
from tradewind.sdk.shown_arguments import shown_config
from tradewind.store.sql import task_lists

RUN = "/api/v2/dags/shop/dagRuns/r1"
PLAIN = TaskDefinition("plain", operator="@task", template_fields=("templates_dict", "op_args", "op_kwargs"))
NAMED = TaskDefinition("named", executor="CeleryExecutor", executor_config="{'x': 1}", run_as_user="etl")
S = TaskState


@pytest.fixture
def shop(world: World) -> World:
    """A run of the DAG `shop` with two tasks, and a job of the machine's worker host."""
    full_world.fill(world)
    register(world, DagDefinition("shop", (PLAIN, NAMED)))
    world.run("shop", "r1")
    world.store.begin_job(NewJob("life", "LocalExecutorJob", "box", "root", 7), world.clock.wall())
    return world


def _attempt(world: World, slot: int, state: TaskState, **fields: Any) -> None:
    """One ended attempt of a task instance, which is in this state now."""
    now = world.clock.wall()
    run = world.store.need_run("shop", "r1").id
    engine = world.store.engine
    with engine.transaction():
        engine.run(
            "UPDATE task_instance SET state = ?, try_number = 1, fence = 1, queued_at = ?, started_at = ?, ended_at = ? "
            "WHERE run = ? AND slot = ?",
            (state.code, now, fields.get("started", now + SECOND), fields.get("ended"), run, slot),
        )
        if fields.get("attempt", True):
            engine.run(
                """INSERT INTO attempt (run, slot, fence, try_number, executor, host, hostname, pid, queued_at, started_at,
                   ended_at, outcome, rendered) VALUES (?, ?, 1, 1, 'LocalExecutor', 'h', 'box', 1, ?, ?, ?, 'failed', ?)""",
                (run, slot, now, now + SECOND, now + MINUTE, fields.get("rendered")),
            )
        engine.run(
            "INSERT INTO journal (run, seq, slot, fence, before, after, at, cause) VALUES (?, ?, ?, 0, 0, ?, ?, 'due')",
            (run, 100 + slot, slot, S.SCHEDULED.code, now - SECOND),
        )
        engine.run("UPDATE dag_run SET journal_seq = 200 WHERE id = ?", (run,))


def test_a_task_instance_names_its_own_executor_and_its_user(shop: World) -> None:
    _attempt(shop, 0, S.SUCCESS, ended=shop.clock.wall() + MINUTE)
    plain, named = (shop.get(f"{RUN}/taskInstances/{name}").json() for name in ("plain", "named"))
    assert (plain["executor"], plain["executor_config"], plain["unixname"], plain["hostname"]) == (None, "{}", "root", "box")
    assert (named["executor"], named["executor_config"], named["unixname"], named["hostname"]) == (
        "CeleryExecutor",
        "{'x': 1}",
        "etl",
        "",
    )


def test_a_task_instance_shows_when_it_was_scheduled(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _attempt(shop, 0, S.SUCCESS, ended=shop.clock.wall() + MINUTE)
    at = iso(shop.clock.wall() - SECOND)
    for path in ("/plain", "/plain/tries/1", "/plain/-1"):
        assert shop.get(f"{RUN}/taskInstances{path}").json()["scheduled_when"] == at
    listed = {one["task_id"]: one["scheduled_when"] for one in shop.get(f"{RUN}/taskInstances").json()["task_instances"]}
    assert listed == {"plain": at, "named": None}
    monkeypatch.setattr(task_lists, "JOURNAL_ROWS_MAX", 199)
    assert shop.get(f"{RUN}/taskInstances/plain").json()["scheduled_when"] is None


@pytest.mark.parametrize("state", [S.UP_FOR_RETRY, S.UP_FOR_RESCHEDULE])
def test_a_waiting_task_has_the_end_of_its_last_attempt(shop: World, state: TaskState) -> None:
    _attempt(shop, 0, state)
    found = shop.get(f"{RUN}/taskInstances/plain").json()
    assert (found["end_date"], found["duration"]) == (iso(shop.clock.wall() + MINUTE), 59.0)


def test_the_try_before_a_retry_has_failed(shop: World) -> None:
    _attempt(shop, 0, S.UP_FOR_RETRY)
    tries = shop.get(f"{RUN}/taskInstances/plain/tries").json()["task_instances"]
    assert [(one["try_number"], one["state"], one["duration"]) for one in tries] == [(1, "failed", 59.0)]
    assert shop.get(f"{RUN}/taskInstances/plain/tries/1").json()["state"] == "up_for_retry", "as in Airflow"


@pytest.mark.parametrize("state", [S.SKIPPED, S.UPSTREAM_FAILED])
def test_a_task_that_never_started_started_when_it_ended(shop: World, state: TaskState) -> None:
    end = shop.clock.wall() + MINUTE
    _attempt(shop, 0, state, started=None, ended=end, attempt=False)
    found = shop.get(f"{RUN}/taskInstances/plain").json()
    assert (found["start_date"], found["end_date"], found["duration"]) == (iso(end), iso(end), 0.0)


def test_a_task_without_a_try_stands_for_itself(shop: World) -> None:
    found = shop.get(f"{RUN}/taskInstances/plain/tries").json()
    assert [(one["try_number"], one["state"], one["hostname"]) for one in found["task_instances"]] == [(0, None, "")]
    assert shop.get(f"{RUN}/taskInstances/plain/tries/0").status_code == 200
    assert shop.get(f"{RUN}/taskInstances/plain/tries/1").status_code == 404


@pytest.mark.parametrize(
    ("rendered", "shown"),
    [
        (None, {"templates_dict": None, "op_args": [], "op_kwargs": {}}),
        (b'{"op_args":[1]}', {"templates_dict": None, "op_args": [1], "op_kwargs": {}}),
    ],
)
def test_empty_fields_are_shown(shop: World, rendered: bytes | None, shown: dict[str, Any]) -> None:
    assert shop.get(f"{RUN}/taskInstances/plain").json()["rendered_fields"] == {}, "it has not started"
    _attempt(shop, 0, S.RUNNING, rendered=rendered)
    assert shop.get(f"{RUN}/taskInstances/plain").json()["rendered_fields"] == shown


class _Task:
    template_fields = ("env", "command", "args")
    env, command, args = None, "", ()


def test_empty_fields_are_stored_only_beside_others() -> None:
    task = _Task()
    assert stored_fields(task) == b""
    task.command = "echo"
    assert stored_fields(task) == b'{"env":null,"command":"echo","args":[]}'


def test_the_text_of_an_executor_config_has_no_addresses() -> None:
    assert shown_config({"pod": object(), "x": 1}) == "{'pod': <object object>, 'x': 1}"
    assert shown_config({}) == ""
