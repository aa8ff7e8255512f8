"""Runs from their trigger to their end: chains, fans, retries, reschedules, skips, branches, failures, clears."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import NOW, Bench, journal, task
from tradewind.model.definition import CronSchedule
from tradewind.model.moments import DAY, MINUTE, SECOND
from tradewind.model.states import TASK_STATES, Outcome, RunState, RunType, TaskState
from tradewind.wire.messages import Refused

DAILY = CronSchedule(("0 0 * * *",), interval_kind="data")


@pytest.mark.spec("S189")
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


@pytest.mark.spec("S2")
def test_each_run_has_its_own_task_instances(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    first, second = bench.trigger("d", "first", day=1), bench.trigger("d", "second", day=2)
    assert first.logical_date != second.logical_date
    bench.finish("first.a")
    assert bench.states("first") == {"a": "success", "b": "queued"}
    assert bench.states("second") == {"a": "queued", "b": "none"}
    bench.check()


@pytest.mark.spec("S187", "S249")
def test_a_scheduled_run_starts_running_at_the_clocks_time_not_at_its_date(bench: Bench) -> None:
    bench.clock.advance(MINUTE)
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - DAY, catchup=True)
    (row,) = bench.runs("d")
    assert (row.run_id, row.run_type) == ("scheduled__2026-01-01T00:00:00+00:00", RunType.SCHEDULED)
    assert (row.state, row.logical_date, row.started_at) == (RunState.RUNNING, NOW - DAY, NOW + MINUTE)
    bench.check()


@pytest.mark.spec("S152")
def test_a_run_is_queued_then_running_then_success_or_failed(bench: Bench) -> None:
    bench.dag("d", task("a"), max_active_runs=1)
    bench.trigger("d", "good")
    bench.trigger("d", "bad")
    assert bench.run_states("d") == {"good": "running", "bad": "queued"}
    bench.finish("good.a")
    bench.fail("bad.a")
    assert bench.run_states("d") == {"good": "success", "bad": "failed"}
    received = [(notice.run_id, notice.state) for notice in bench.notices if notice.kind == "run"]
    assert received == [("good", "running"), ("good", "success"), ("bad", "running"), ("bad", "failed")]
    bench.check()


@pytest.mark.spec("S140", "S167")
def test_a_task_is_queued_when_it_is_submitted_within_the_limits(bench: Bench) -> None:
    """A task beyond a limit stays scheduled and is not submitted."""
    bench.pool("narrow", 1)
    bench.dag("d", task("a", pool="narrow"), task("b", pool="narrow"))
    bench.trigger("d", "r")
    assert bench.states("r") == {"a": "queued", "b": "scheduled"}
    assert [work.task_id for work in bench.executor.submitted] == ["a"]
    bench.finish("r.a")
    assert bench.states("r") == {"a": "success", "b": "queued"}
    assert [work.task_id for work in bench.executor.submitted] == ["a", "b"]
    bench.check()


@pytest.mark.spec("S141", "S172")
def test_a_task_is_running_when_its_start_was_accepted(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    assert bench.states("r") == {"a": "queued"}, "handed over, but nothing executes"
    bench.start("r.a")
    assert bench.states("r") == {"a": "running"}
    assert bench.snapshot("r").rows[0].try_number == 1
    assert isinstance(bench.ask("r.a", nonce="another process"), Refused)
    bench.check()


@pytest.mark.spec("S142")
def test_a_task_is_a_success_by_its_report_or_by_a_mark(bench: Bench) -> None:
    bench.dag("d", task("reported"), task("marked"))
    bench.trigger("d", "r")
    bench.finish("r.reported")
    bench.command("mark", dag_id="d", run_id="r", task_ids=["marked"], state="success")
    assert bench.states("r") == {"reported": "success", "marked": "success"}
    bench.check()


@pytest.mark.spec("S137")
def test_a_scheduled_state_is_committed_at_once(bench: Bench) -> None:
    """Blocked by its pool, it is scheduled in the store and the journal; the next scheduler finds it there."""
    bench.pool("closed", 0)
    bench.dag("d", task("a", pool="closed"))
    run = bench.trigger("d", "r")
    assert bench.states("r") == {"a": "scheduled"}
    steps = [(TASK_STATES[entry.before], TASK_STATES[entry.after]) for _, entry in journal(bench.watched.inner, run.id)]
    assert steps == [(TaskState.NONE, TaskState.SCHEDULED)]
    bench.restart()
    bench.pool("closed", 1)
    assert bench.states("r") == {"a": "queued"}
    bench.check()


@pytest.mark.spec("S9", "S296")
def test_a_join_after_a_fan_is_scheduled_once(bench: Bench) -> None:
    middle = [f"m{i}" for i in range(30)]
    bench.dag("d", task("a"), *(task(m, "a") for m in middle), task("z", *middle), max_active_tasks=100)
    bench.trigger("d", "r")
    bench.work()
    assert set(bench.states("r").values()) == {"success"}
    assert len(bench.executor.submitted) == 32
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_a_run_of_empty_tasks_has_a_start_and_an_end(bench: Bench) -> None:
    bench.dag("d", task("a", empty=True), task("b", "a", empty=True))
    bench.trigger("d", "r")
    row = bench.run("r")
    assert (row.state, row.started_at, row.ended_at) == (RunState.SUCCESS, NOW, NOW)
    assert bench.executor.submitted == []
    bench.check()


@pytest.mark.spec("S146", "S177")
def test_a_failed_task_is_retried_when_its_delay_is_over(bench: Bench) -> None:
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


@pytest.mark.spec("S158", "S273")
def test_a_retry_is_scheduled_when_its_delay_is_over_and_not_before(bench: Bench) -> None:
    """The pool is closed, so that the scheduled state can be seen."""
    bench.dag("d", task("a", retries=1, retry_delay=5 * MINUTE, pool="p"))
    bench.pool("p", 1)
    bench.trigger("d", "r")
    bench.fail("r.a")
    bench.pool("p", 0)
    bench.pass_time(5 * MINUTE - 1)
    assert bench.states("r") == {"a": "up_for_retry"}
    bench.pass_time(1)
    assert bench.states("r") == {"a": "scheduled"}
    bench.check()


@pytest.mark.spec("S186", "S363")
def test_the_try_number_grows_with_each_try_that_runs(bench: Bench) -> None:
    bench.dag("d", task("a", retries=2, retry_delay=SECOND))
    bench.trigger("d", "r")
    for number in (1, 2, 3):
        bench.start("r.a")
        (row,) = bench.snapshot("r").rows
        assert (bench.states("r"), row.try_number) == ({"a": "running"}, number)
        bench.fail("r.a")
        bench.pass_time(SECOND)
    assert bench.states("r") == {"a": "failed"}
    bench.check()


@pytest.mark.spec("S366")
def test_xcoms_of_the_last_try_are_deleted_when_the_next_one_starts(bench: Bench) -> None:
    bench.dag("d", task("a", retries=1, retry_delay=SECOND))
    run = bench.trigger("d", "r")
    bench.finish("r.a", outcome=Outcome.FAILED, xcoms={"half": b"1"})
    bench.pass_time(SECOND)
    assert bench.states("r") == {"a": "queued"}
    assert bench.store.xcoms(run.id, ["a"], "half") == [("a", -1, b"1", None)], "nothing runs yet"
    bench.start("r.a")
    assert bench.store.xcoms(run.id, ["a"], "half") == []


@pytest.mark.spec("S256")
def test_only_schedulable_states_are_examined(bench: Bench) -> None:
    """In each active run of the DAG, and in no finished one."""
    bench.dag("d", *(task(name, retries=1 if name == "again" else 0, retry_delay=MINUTE) for name in STATES_OF_ONE_RUN))
    bench.dag("d2", task("new", "first"), task("first"))
    bench.trigger("d", "r")
    bench.trigger("d2", "r2")
    bench.finish("r.again", outcome=Outcome.FAILED)
    bench.finish("r.poked", outcome=Outcome.RESCHEDULE, reschedule_at=NOW + MINUTE)
    bench.finish("r.done", "r2.first")
    bench.finish("r.skipped", outcome=Outcome.SKIPPED)
    bench.fail("r.failed")
    bench.start("r.busy")
    assert bench.states("r") == STATES_OF_ONE_RUN
    assert bench.states("r2") == {"new": "queued", "first": "success"}, "none → scheduled → queued"
    handed_over = len(bench.executor.submitted)
    bench.pass_time(MINUTE)
    assert bench.states("r") == {**STATES_OF_ONE_RUN, "again": "queued", "poked": "queued"}
    assert sorted(work.task_id for work in bench.executor.submitted[handed_over:]) == ["again", "poked"]
    bench.check()


@pytest.mark.spec("S295")
def test_upstream_tasks_of_the_same_run_are_counted_by_how_they_ended(bench: Bench) -> None:
    """Those of other runs do not count, nor does one that waits for its retry."""
    upstream = {"good": [], "skips": [], "bad": [], "behind": ["bad"], "again": []}
    tasks = [task(name, *above, retries=1 if name == "again" else 0) for name, above in upstream.items()]
    bench.dag("d", *tasks, task("z", *upstream, trigger_rule="all_done"))
    bench.trigger("d", "other", day=1)
    bench.trigger("d", "r", day=2)
    bench.finish("other.good", "other.again")

    def counted() -> str:
        return bench.why("r.z")["trigger_rule"]

    assert "of 5, none has ended" in counted()
    bench.finish("r.good")
    assert "of 5, 1 succeeded" in counted()
    bench.finish("r.skips", outcome=Outcome.SKIPPED)
    bench.fail("r.bad", "r.again")
    assert "of 5, 1 succeeded, 1 skipped, 1 failed, 1 upstream_failed" in counted()
    bench.pass_time(DAY)
    bench.fail("r.again")
    assert bench.states("r")["z"] == "queued", "all five are done"
    bench.check()


STATES_OF_ONE_RUN = {
    "again": "up_for_retry",
    "poked": "up_for_reschedule",
    "done": "success",
    "skipped": "skipped",
    "failed": "failed",
    "busy": "running",
    "waits": "queued",
}


@pytest.mark.spec("S143", "S178", "S384")
def test_a_task_without_tries_left_is_failed(bench: Bench) -> None:
    """With the default retries=0: at once."""
    bench.dag("d", task("a", retries=0), task("b", trigger_rule="always"))
    bench.trigger("d", "r")
    bench.fail("r.a")
    assert bench.states("r")["a"] == "failed"
    bench.pass_time(DAY)
    assert [work.try_number for work in bench.executor.submitted if work.task_id == "a"] == [1]
    bench.check()


@pytest.mark.spec("S145", "S162", "S189")
def test_tasks_after_a_failure_are_upstream_failed_and_the_run_fails(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.fail("r.a")
    assert bench.states("r") == {"a": "failed", "b": "upstream_failed"}
    reason = "b is upstream_failed, and the root cause is a (failed)"
    assert (bench.run("r").state, bench.run("r").reason) == (RunState.FAILED, reason)
    bench.check()


def test_a_failed_run_names_what_failed_first_in_a_chain(bench: Bench) -> None:
    first = [f"a{number}" for number in range(5)]
    bench.dag("d", *[task(one) for one in first], task("b", *first), task("c", "b"), task("leaf", "c"))
    bench.trigger("d", "r")
    for one in first:
        bench.fail(f"r.{one}")
    named = "a0 (failed), a1 (failed), a2 (failed) and others"
    assert bench.run("r").reason == f"leaf is upstream_failed, and the root cause is {named}"


@pytest.mark.spec("S147", "S159", "S176")
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


@pytest.mark.spec("S273")
def test_a_sensor_is_not_called_before_its_reschedule_date(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.finish("r.a", outcome=Outcome.RESCHEDULE, reschedule_at=NOW + MINUTE)
    bench.pass_time(MINUTE - 1)
    assert (bench.states("r"), len(bench.executor.submitted)) == ({"a": "up_for_reschedule"}, 1)
    bench.pass_time(1)
    assert (bench.states("r"), len(bench.executor.submitted)) == ({"a": "queued"}, 2)


@pytest.mark.spec("S506")
def test_a_late_loss_of_a_rescheduled_attempt_does_not_fail_the_next_one(bench: Bench) -> None:
    """AIRFLOW-5071: the reschedule date is so near that the task is queued again before the end of its first process is known."""
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    first = bench.attempt("r.a")
    bench.finish("r.a", outcome=Outcome.RESCHEDULE, reschedule_at=bench.clock.wall())
    bench.process()
    assert bench.states("r") == {"a": "queued"}
    assert len(bench.executor.submitted) == 2
    bench.vanish(first)
    bench.report(first, Outcome.FAILED)
    assert bench.states("r") == {"a": "queued"}
    bench.finish("r.a")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


@pytest.mark.spec("S144", "S175")
def test_a_task_that_skips_itself_is_skipped(bench: Bench) -> None:
    bench.dag("d", task("a"), task("after", "a", trigger_rule="all_done"))
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.report("r.a", Outcome.SKIPPED, reason="no file today")
    assert bench.states("r") == {"a": "skipped", "after": "queued"}
    bench.check()


@pytest.mark.spec("S163")
def test_a_trigger_rule_skips_a_task_that_never_ran(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), task("rescue", "a", trigger_rule="one_failed"))
    bench.trigger("d", "r")
    bench.finish("r.a", outcome=Outcome.SKIPPED)
    assert bench.states("r") == {"a": "skipped", "b": "skipped", "rescue": "skipped"}
    assert [work.task_id for work in bench.executor.submitted] == ["a"]
    bench.check()


@pytest.mark.spec("S18")
def test_skips_and_branches_affect_downstream_tasks(bench: Bench) -> None:
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


@pytest.mark.spec("S250")
@pytest.mark.parametrize("restarted", [False, True])
def test_a_run_that_timed_out_fails_before_the_next_one_is_created(bench: Bench, restarted: bool) -> None:
    """Its run slot is free at once, so that the next run is created; also where both moments passed without a scheduler."""
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - DAY, catchup=True, max_active_runs=1, dagrun_timeout=DAY)
    first = "scheduled__2026-01-01T00:00:00+00:00"
    assert bench.run_states("d") == {first: "running"}
    bench.clock.advance(DAY)
    if restarted:
        bench.restart()
    bench.process()
    second = "scheduled__2026-01-02T00:00:00+00:00"
    assert bench.run_states("d") == {first: "failed", second: "running"}
    received = [(notice.run_id, notice.state) for notice in bench.notices if notice.kind == "run"]
    assert received == [(first, "queued"), (first, "running"), (first, "failed"), (second, "queued"), (second, "running")]
    bench.check()


@pytest.mark.spec("S188")
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
def test_dagrun_timeout_starts_again_after_a_clear(bench: Bench) -> None:
    """The timer of the first start is still there and ignored."""
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


@pytest.mark.spec("S149", "S179", "S180")
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


@pytest.mark.spec("S438")
def test_clear_of_a_running_task_without_a_worker_resets_it_too(bench: Bench) -> None:
    """No host stops it: the host is lost, and a later one says that it never had it."""
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.restart()
    bench.clear("d", "r", "a")
    assert bench.states("r") == {"a": "restarting"}
    bench.vanish("r.a")
    assert bench.states("r") == {"a": "queued"}
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


@pytest.mark.spec("S436")
def test_clear_resets_stops_and_sets_the_run_running(bench: Bench) -> None:
    """Finished tasks are reset, running ones are stopped, and the failed run runs."""
    bench.dag("d", task("bad"), task("held"), task("kept"), fail_fast=False)
    bench.trigger("d", "r")
    bench.fail("r.bad")
    bench.finish("r.kept")
    bench.start("r.held")
    bench.clear("d", "r", "bad", "held")
    assert bench.states("r") == {"bad": "queued", "held": "restarting", "kept": "success"}
    assert bench.executor.cancelled == [bench.attempt("r.held").key]
    bench.vanish("r.held")
    bench.finish("r.held")
    bench.fail("r.bad")
    assert bench.run("r").state is RunState.FAILED
    bench.clear("d", "r", "bad")
    assert bench.run("r").state is RunState.RUNNING
    bench.check()


def test_xcoms_of_a_cleared_attempt_are_dropped(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.clear("d", "r", "a")
    bench.report("r.a", xcoms={"return_value": b"1"})
    assert bench.states("r")["a"] == "queued"
    assert bench.store.xcoms(bench.run("r").id, ["a"], "return_value") == []
    bench.check()


@pytest.mark.spec("S190", "S267")
def test_a_cleared_finished_run_is_queued_again(bench: Bench) -> None:
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


def test_a_task_outside_of_its_dates_stays_removed_after_a_clear(bench: Bench) -> None:
    bench.dag("d", task("a"), task("old", end_date=NOW - 1000 * 24 * 60 * MINUTE))
    bench.trigger("d", "r", day=1)
    assert bench.states("r")["old"] == "removed"
    bench.clear("d", "r", "old")
    assert bench.states("r")["old"] == "removed"
    bench.finish("r.a")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()
