"""One run from its trigger to its end: chains, fans, retries, reschedules, skips, branches, failures, clears."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tradewind.model.moments import MINUTE, SECOND
from tradewind.model.states import Outcome, RunState
from tradewind.wire.messages import Refused


@pytest.mark.spec("S2", "S15", "S140", "S141", "S142", "S152", "S167", "S172", "S174", "S187", "S189", "S249")
def test_a_triggered_run_runs_to_its_end(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r", conf={"x": 1})
    assert bench.states("r") == {"a": "queued", "b": "none"}
    assert bench.attempt("r.a").conf == {"x": 1}
    bench.clock.advance(SECOND)
    bench.start("r.a")
    assert bench.states("r")["a"] == "running"
    bench.report("r.a", xcoms={"return_value": b"7"})
    assert bench.states("r") == {"a": "success", "b": "queued"}
    assert bench.store.xcoms(bench.run("r").id, ["a"], "return_value") == [("a", -1, b"7", None)]
    bench.clock.advance(SECOND)
    bench.finish("r.b")
    row = bench.run("r")
    assert (row.state, row.started_at, row.ended_at) == (RunState.SUCCESS, NOW, NOW + 2 * SECOND)
    assert [n.state for n in bench.notices if n.kind == "run"] == ["running", "success"]
    bench.check()


@pytest.mark.spec("S9", "S296")
def test_a_fan_joins_once(bench: Bench) -> None:
    middle = [f"m{i}" for i in range(30)]
    bench.dag("d", task("a"), *(task(m, "a") for m in middle), task("z", *middle), max_active_tasks=100)
    bench.trigger("d", "r")
    bench.work()
    assert set(bench.states("r").values()) == {"success"}
    assert len(bench.executor.submitted) == 32
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_a_run_of_tasks_that_do_nothing_has_a_start_and_an_end(bench: Bench) -> None:
    bench.dag("d", task("a", empty=True), task("b", "a", empty=True))
    bench.trigger("d", "r")
    row = bench.run("r")
    assert (row.state, row.started_at, row.ended_at) == (RunState.SUCCESS, NOW, NOW)
    assert bench.executor.submitted == []
    bench.check()


@pytest.mark.spec("S146", "S158", "S177", "S186", "S256", "S273", "S363", "S366")
def test_a_failed_task_is_tried_again_at_its_moment(bench: Bench) -> None:
    bench.dag("d", task("a", retries=1, retry_delay=5 * MINUTE), task("b", "a"))
    bench.trigger("d", "r")
    bench.finish("r.a", outcome=Outcome.FAILED, reason="ValueError: no", xcoms={"half": b"1"})
    assert bench.states("r")["a"] == "up_for_retry"
    bench.pass_time(5 * MINUTE - 1)
    assert bench.states("r")["a"] == "up_for_retry"
    bench.pass_time(1)
    assert bench.states("r")["a"] == "queued"
    assert (bench.attempt("r.a").try_number, bench.attempt("r.a").fence) == (2, 2)
    bench.start("r.a")
    assert bench.store.xcoms(bench.run("r").id, ["a"], "half") == [], "a try begins without the values of the one before"
    bench.finish("r.a")
    snapshot = bench.snapshot("r")
    assert snapshot.rows[0].reason is None, "a success does not carry the reason of an earlier failure"
    bench.check()


@pytest.mark.spec("S143", "S145", "S162", "S178", "S189", "S384")
def test_a_task_without_tries_left_fails_its_run(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.fail("r.a")
    assert bench.states("r") == {"a": "failed", "b": "upstream_failed"}
    assert (bench.run("r").state, bench.run("r").reason) == (RunState.FAILED, "b is upstream_failed")
    bench.check()


@pytest.mark.spec("S147", "S159", "S176", "S273")
def test_a_rescheduled_sensor_keeps_its_try(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    first = bench.attempt("r.a")
    for round in range(1, 4):
        bench.finish("r.a", outcome=Outcome.RESCHEDULE, reschedule_at=bench.clock.wall() + MINUTE)
        assert bench.states("r")["a"] == "up_for_reschedule"
        bench.pass_time(MINUTE)
        assert (bench.attempt("r.a").try_number, bench.attempt("r.a").fence) == (1, 1 + round)
        assert bench.attempt("r.a").first_started == NOW
    assert first.first_started is None
    bench.finish("r.a")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


@pytest.mark.spec("S18", "S144", "S163", "S175")
def test_skips_and_branches_go_down(bench: Bench) -> None:
    bench.dag("d", task("b"), task("x", "b"), task("y", "b"), task("z", "x", "y", trigger_rule="none_failed"), task("w", "y"))
    bench.trigger("d", "r")
    bench.branch("r.b", "follow", "x")
    assert bench.states("r") == {"b": "success", "x": "queued", "y": "skipped", "w": "skipped", "z": "none"}
    bench.finish("r.x")
    bench.finish("r.z", outcome=Outcome.SKIPPED)
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_fail_fast_stops_live_attempts(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"), task("c"), task("d", "a"), fail_fast=True)
    bench.trigger("d", "r")
    bench.start("r.b")
    bench.fail("r.a")
    assert bench.states("r") == {"a": "failed", "b": "failed", "c": "skipped", "d": "skipped"}
    assert {(key[1], key[2]) for key in bench.executor.cancelled} == {(1, 1), (2, 1)}
    assert bench.run("r").state is RunState.FAILED
    bench.check()


@pytest.mark.spec("S188", "S250")
def test_dagrun_timeout_ends_the_run_and_stops_its_attempts(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), dagrun_timeout=MINUTE)
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.pass_time(MINUTE + 1)
    assert bench.states("r") == {"a": "skipped", "b": "skipped"}
    assert bench.run("r").state is RunState.FAILED
    assert bench.executor.cancelled == [(bench.run("r").id, 0, 1)]
    bench.check()


@pytest.mark.spec("S188")
def test_dagrun_timeout_counts_from_the_start_over_a_restart(bench: Bench) -> None:
    bench.dag("d", task("a"), dagrun_timeout=MINUTE)
    bench.trigger("d", "r")
    bench.clock.advance(2 * MINUTE)
    bench.restart()
    assert bench.run("r").state is RunState.FAILED
    bench.check()


@pytest.mark.spec("S190")
def test_a_cleared_run_has_its_whole_time_again(bench: Bench) -> None:
    """The timer of its earlier life is still there."""
    bench.dag("d", task("a"), dagrun_timeout=10 * MINUTE)
    bench.trigger("d", "r")
    bench.finish("r.a")
    bench.clock.advance(9 * MINUTE)
    bench.clear("d", "r")
    bench.start("r.a")
    bench.pass_time(2 * MINUTE)
    assert bench.states("r") == {"a": "running"}, "the run is two minutes old"
    bench.pass_time(8 * MINUTE + 1)
    assert bench.run("r").state is RunState.FAILED
    bench.check()


# --- clear ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S181", "S436", "S462")
def test_clear_of_a_finished_task_runs_it_again(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.finish("r.a")
    bench.start("r.b")
    bench.clear("d", "r", "a")
    assert bench.states("r") == {"a": "queued", "b": "running"}
    bench.finish("r.a", "r.b")
    assert bench.run("r").state is RunState.SUCCESS
    assert [w.try_number for w in bench.executor.submitted if w.task_id == "a"] == [1, 2]
    bench.check()


@pytest.mark.spec("S149", "S179", "S180", "S436", "S438")
def test_clear_of_a_running_task_stops_it_first(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.start("r.a")
    old = bench.attempt("r.a")
    bench.clear("d", "r", "a")
    assert bench.states("r")["a"] == "restarting"
    assert bench.executor.cancelled == [old.key]
    assert len(bench.executor.submitted) == 1, "no second attempt while the first one may live"
    bench.vanish("r.a")
    assert bench.states("r")["a"] == "queued"
    assert isinstance(bench.ask(old), Refused)
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_the_values_of_a_cleared_attempt_are_nobodys(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.clear("d", "r", "a")
    bench.report("r.a", xcoms={"return_value": b"1"})
    assert bench.states("r")["a"] == "queued"
    assert bench.store.xcoms(bench.run("r").id, ["a"], "return_value") == []
    bench.check()


@pytest.mark.spec("S190", "S267")
def test_clear_of_a_run_that_ended_takes_its_turn_again(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), max_active_runs=1)
    bench.trigger("d", "r1")
    bench.fail("r1.a")
    bench.trigger("d", "r2")
    bench.clear("d", "r1")
    assert bench.run_states("d") == {"r1": "queued", "r2": "running"}
    bench.finish("r2.a", "r2.b")
    assert bench.run_states("d") == {"r1": "running", "r2": "success"}
    bench.finish("r1.a", "r1.b")
    assert bench.run_states("d") == {"r1": "success", "r2": "success"}
    assert bench.run("r1").clear_number == 1
    bench.check()


def test_clear_twice_while_it_waits(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"), max_active_runs=1)
    bench.trigger("d", "r1")
    bench.work()
    bench.trigger("d", "r2")
    bench.clear("d", "r1", "a")
    bench.clear("d", "r1", "b")
    bench.finish("r2.a", "r2.b")
    assert bench.states("r1") == {"a": "queued", "b": "queued"}
    bench.finish("r1.a", "r1.b")
    bench.check()


def test_clear_of_a_task_whose_retry_waits_forgets_its_timer(bench: Bench) -> None:
    bench.dag("d", task("a", retries=1, retry_delay=MINUTE), task("b"))
    bench.trigger("d", "r")
    bench.fail("r.a")
    bench.clear("d", "r", "a")
    assert bench.states("r")["a"] == "queued"
    bench.pass_time(2 * MINUTE)
    assert len([w for w in bench.executor.submitted if w.task_id == "a"]) == 2
    bench.check()


def test_a_task_outside_of_its_own_dates_stays_out_when_it_is_cleared(bench: Bench) -> None:
    bench.dag("d", task("a"), task("old", end_date=NOW - 1000 * 24 * 60 * MINUTE))
    bench.trigger("d", "r", day=1)
    assert bench.states("r")["old"] == "removed"
    bench.clear("d", "r", "old")
    assert bench.states("r")["old"] == "removed"
    bench.finish("r.a")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()
