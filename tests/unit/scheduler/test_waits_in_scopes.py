"""Deferred setups, teardowns and tasks of groups: the scope keeps its order, and the end of the run ends the wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.bench import Bench, task
from tests.unit.scheduler.test_waits import defer, fire
from tradewind.model.definition import GroupDefinition
from tradewind.model.moments import SECOND
from tradewind.model.states import Outcome
from tradewind.model.waits import TriggerWait

WAIT = TriggerWait("pkg.T")


def scope(bench: Bench, **more: Any) -> None:
    """Return up (setup) → work → down (teardown of up), and a task after them."""
    bench.dag(
        "d",
        task("up", is_setup=True),
        task("work", "up"),
        task("down", "up", "work", is_teardown=True, trigger_rule="all_done_setup_success"),
        task("after", "work"),
        **more,
    )
    bench.trigger("d", "r")


@pytest.mark.parametrize("restarts", [False, True])
def test_tasks_wait_for_their_deferred_setup(bench: Bench, restarts: bool) -> None:
    scope(bench)
    key = defer(bench, "r.up", WAIT)
    if restarts:
        bench.restart()
    assert bench.states("r") == {"up": "deferred", "work": "none", "down": "none", "after": "none"}
    fire(bench, key, event=b"1")
    assert bench.states("r")["work"] == "none"
    bench.finish("r.up", "r.work")
    assert bench.states("r") == {"up": "success", "work": "success", "down": "queued", "after": "queued"}
    bench.finish("r.down", "r.after")
    assert bench.run("r").state.value == "success"
    bench.check()


def test_a_setup_whose_wait_fails_skips_or_fails_its_teardown(bench: Bench) -> None:
    scope(bench)
    fire(bench, defer(bench, "r.up", WAIT, None), error="the server is gone")
    assert bench.states("r") == {
        "up": "failed",
        "work": "upstream_failed",
        "down": "upstream_failed",
        "after": "upstream_failed",
    }
    assert bench.run("r").state.value == "failed"
    bench.check()


@pytest.mark.parametrize(("end", "state"), [("success", "success"), ("failed", "failed"), ("skipped", "skipped")])
def test_a_teardown_runs_after_any_end_of_a_deferred_task(bench: Bench, end: str, state: str) -> None:
    scope(bench)
    bench.finish("r.up")
    key = defer(bench, "r.work", WAIT)
    assert bench.states("r")["down"] == "none", "it is not torn down while the task waits"
    fire(bench, key, outcome=Outcome(end))
    assert (bench.states("r")["work"], bench.states("r")["down"]) == (state, "queued")
    bench.check()


def test_a_deferred_teardown_keeps_the_run_running_and_does_not_decide_it(bench: Bench) -> None:
    scope(bench)
    bench.finish("r.up", "r.work", "r.after")
    key = defer(bench, "r.down", WAIT)
    bench.restart()
    assert bench.run("r").state.value == "running"
    fire(bench, key, event=b"1")
    bench.fail("r.down")
    assert bench.states("r")["down"] == "failed"
    assert bench.run("r").state.value == "success"
    assert bench.snapshot("r").deferrals == []
    bench.check()


def test_failing_a_run_ends_waits_and_runs_teardowns(bench: Bench) -> None:
    scope(bench)
    bench.finish("r.up")
    defer(bench, "r.work", WAIT)
    bench.command("set_run_state", dag_id="d", run_id="r", state="failed")
    assert bench.executor.triggers == {}
    assert (bench.states("r")["work"], bench.states("r")["down"]) == ("failed", "queued")
    key = defer(bench, "r.down", WAIT)
    bench.restart()
    assert bench.states("r")["down"] == "deferred"
    fire(bench, key, event=b"1")
    bench.finish("r.down")
    assert bench.run("r").state.value == "failed"
    bench.check()


def test_dagrun_timeout_ends_waits_in_scopes(bench: Bench) -> None:
    scope(bench, dagrun_timeout=60 * SECOND)
    bench.finish("r.up")
    key = defer(bench, "r.work", WAIT)
    bench.pass_time(61 * SECOND)
    assert bench.states("r")["work"] == "skipped"
    assert (bench.executor.triggers, bench.scheduler.waits.open) == ({}, {})
    fire(bench, key, event=b"1")
    assert bench.states("r")["work"] == "skipped", "its trigger fired too late"
    assert bench.run("r").state.value == "failed"
    bench.check()


def test_fail_fast_ends_waits_but_not_the_teardown(bench: Bench) -> None:
    bench.dag(
        "d",
        task("up", is_setup=True),
        task("waits", "up"),
        task("fails", "up"),
        task("down", "up", "waits", "fails", is_teardown=True, trigger_rule="all_done_setup_success"),
        fail_fast=True,
    )
    bench.trigger("d", "r")
    bench.finish("r.up")
    key = defer(bench, "r.waits", WAIT)
    bench.fail("r.fails")
    assert (bench.executor.triggers, bench.scheduler.waits.open) == ({}, {})
    assert bench.states("r") == {"up": "success", "waits": "skipped", "fails": "failed", "down": "queued"}
    fire(bench, key, event=b"1")
    bench.finish("r.down")
    assert bench.states("r")["waits"] == "skipped"
    assert bench.run("r").state.value == "failed"
    bench.check()


def test_a_failed_wait_triggers_fail_fast(bench: Bench) -> None:
    bench.dag("d", task("waits"), task("other"), fail_fast=True)
    bench.trigger("d", "r")
    other = defer(bench, "r.other", WAIT)
    fire(bench, defer(bench, "r.waits", WAIT, None), error="the server is gone")
    assert bench.states("r") == {"waits": "failed", "other": "skipped"}
    assert other not in bench.executor.triggers
    assert bench.run("r").state.value == "failed"
    bench.check()


def test_tasks_after_a_group_wait_for_its_deferred_tasks(bench: Bench) -> None:
    members = [task(name, group="g") for name in ("a", "b")]
    bench.dag("d", *members, task("after", "a", "b"), groups=(GroupDefinition("g"),))
    bench.trigger("d", "r")
    first, second = defer(bench, "r.a", WAIT), defer(bench, "r.b", WAIT)
    fire(bench, first, event=b"1")
    bench.finish("r.a")
    bench.restart()
    assert bench.states("r") == {"a": "success", "b": "deferred", "after": "none"}
    fire(bench, second, outcome=Outcome.SUCCESS)
    assert bench.states("r")["after"] == "queued"
    bench.check()


def test_clearing_a_scope_ends_its_wait_and_restarts_the_setup(bench: Bench) -> None:
    scope(bench)
    bench.finish("r.up")
    key = defer(bench, "r.work", WAIT)
    bench.clear("d", "r", "work")
    assert bench.executor.triggers == {}
    fire(bench, key, event=b"1")
    assert (bench.states("r")["up"], bench.states("r")["work"]) == ("queued", "none")
    bench.work()
    assert bench.run("r").state.value == "success"
    assert bench.attempt("r.work").resumption is None
    bench.check()
