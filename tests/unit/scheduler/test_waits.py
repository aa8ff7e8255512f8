"""Deferred task instances: waits without a process, through restarts, clears, repetitions and loss."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.kernel.admission import PARALLELISM
from tradewind.model.moments import DAY, SECOND
from tradewind.model.states import Outcome
from tradewind.model.waits import TIMEOUT, Deferral, EveryWait, MomentWait, TasksWait, TriggerEnd, TriggerWait, Wait
from tradewind.scheduler.waits.wait_index import WaitResult
from tradewind.wire.messages import AttemptKey

DATE = NOW - 100 * DAY
"""The logical date of `bench.trigger(…, day=0)`."""


def defer(bench: Bench, attempt: str, wait: Wait, method: str | None = "go_on", **more: Any) -> AttemptKey:
    """End the attempt because its task waits."""
    bench.finish(attempt, outcome=Outcome.DEFERRED, deferral=Deferral(wait, method, b'{"a": 1}', **more))
    return bench.attempt(attempt).key


def fire(bench: Bench, key: AttemptKey, **end: Any) -> None:
    bench.scheduler.push(WaitResult(*key, TriggerEnd(**end)))
    bench.process()


def one(bench: Bench, **more: Any) -> None:
    bench.dag("d", task("t", **more), task("after", "t"))
    bench.trigger("d", "r", day=0)


# --- triggers -----------------------------------------------------------------------------------------------------------


def test_a_trigger_wakes_its_task_in_the_same_try(bench: Bench) -> None:
    one(bench, retries=2)
    key = defer(bench, "r.t", TriggerWait("pkg.T", b'{"x": 1}'))
    assert bench.states("r") == {"t": "deferred", "after": "none"}
    assert bench.scheduler.admission.used(PARALLELISM) == 0
    order = bench.executor.triggers[key]
    assert (order.wait, order.bundle, order.name) == (TriggerWait("pkg.T", b'{"x": 1}'), "dags", "d.t in r")
    fire(bench, key, event=b'"it came"')
    assert bench.executor.triggers == {}
    work = bench.attempt("r.t")
    assert (work.try_number, work.fence) == (1, 2)
    assert work.resumption is not None
    assert (work.resumption.method, work.resumption.kwargs, work.resumption.event) == ("go_on", b'{"a": 1}', b'"it came"')
    bench.finish("r.t", "r.after")
    assert bench.run("r").state.value == "success"
    assert bench.snapshot("r").deferrals == []
    bench.check()


def test_an_attempt_after_a_lost_one_gets_the_event_again(bench: Bench) -> None:
    one(bench)
    fire(bench, defer(bench, "r.t", TriggerWait("pkg.T")), event=b"7")
    bench.start("r.t")
    bench.vanish("r.t")
    bench.restart()
    resumption = bench.attempt("r.t").resumption
    assert resumption is not None
    assert resumption.event == b"7"
    bench.check()


def test_a_retry_of_a_deferred_task_starts_from_the_beginning(bench: Bench) -> None:
    one(bench, retries=1, retry_delay=0)
    fire(bench, defer(bench, "r.t", TriggerWait("pkg.T")))
    bench.fail("r.t")
    work = bench.attempt("r.t")
    assert (work.try_number, work.resumption) == (2, None)
    assert bench.snapshot("r").deferrals == []
    bench.check()


def test_a_restart_runs_the_trigger_again(bench: Bench) -> None:
    one(bench)
    key = defer(bench, "r.t", TriggerWait("pkg.T"))
    bench.executor.triggers.clear()
    bench.restart()
    bench.scheduler.hosts.register("host", frozenset(), frozenset())
    assert set(bench.executor.triggers) == {key}
    bench.executor.triggers.clear()
    bench.scheduler.hosts.register("host", frozenset(), frozenset({key}))
    assert bench.executor.triggers == {}, "the host has it already"
    bench.check()


def test_late_and_repeated_trigger_events_are_dropped(bench: Bench) -> None:
    one(bench)
    key = defer(bench, "r.t", TriggerWait("pkg.T"))
    fire(bench, key, event=b"1")
    bench.executor.triggers[key] = None  # type: ignore[assignment]  # as if the host said it once more
    fire(bench, key, event=b"2")
    assert bench.executor.triggers == {}
    resumption = bench.attempt("r.t").resumption
    assert resumption is not None
    assert resumption.event == b"1"
    bench.finish("r.t", "r.after")
    bench.executor.triggers[key] = None  # type: ignore[assignment]
    fire(bench, key, event=b"3")
    assert bench.executor.triggers == {}
    bench.check()


def test_clearing_a_deferred_task_ends_its_wait(bench: Bench) -> None:
    one(bench)
    key = defer(bench, "r.t", TriggerWait("pkg.T"))
    bench.clear("d", "r", "t")
    assert bench.executor.triggers == {}
    fire(bench, key)
    work = bench.attempt("r.t")
    assert (work.try_number, work.resumption) == (2, None)
    bench.restart()
    bench.finish("r.t", "r.after")
    assert bench.snapshot("r").deferrals == []
    bench.check()


def test_clearing_a_resumed_task_drops_its_wait(bench: Bench) -> None:
    one(bench)
    fire(bench, defer(bench, "r.t", TriggerWait("pkg.T")))
    bench.start("r.t")
    bench.clear("d", "r", "t")
    bench.vanish("r.t")
    bench.restart()
    assert bench.attempt("r.t").resumption is None
    bench.check()


@pytest.mark.parametrize(("end", "state"), [("success", "success"), ("skipped", "skipped"), ("failed", "failed")])
def test_a_trigger_may_end_its_task(bench: Bench, end: str, state: str) -> None:
    one(bench)
    key = defer(bench, "r.t", TriggerWait("pkg.T"))
    fire(bench, key, outcome=Outcome(end), xcoms={"return_value": b"5"})
    assert bench.states("r")["t"] == state
    assert bench.store.xcoms(bench.run("r").id, ("t",), "return_value") == [("t", -1, b"5", None)]
    assert len([w for w in bench.executor.submitted if w.task_id == "t"]) == 1
    bench.check()


def test_a_resumed_task_gets_the_timeout(bench: Bench) -> None:
    one(bench)
    key = defer(bench, "r.t", TriggerWait("pkg.T"), timeout_at=NOW + 60 * SECOND)
    bench.pass_time(59 * SECOND)
    assert bench.states("r")["t"] == "deferred"
    bench.restart()
    bench.pass_time(2 * SECOND)
    resumption = bench.attempt("r.t").resumption
    assert resumption is not None
    assert resumption.error == TIMEOUT
    fire(bench, key)
    bench.check()


def test_the_end_of_a_run_drops_its_triggers(bench: Bench) -> None:
    bench.dag("d", task("t"), dagrun_timeout=60 * SECOND)
    bench.trigger("d", "r")
    defer(bench, "r.t", TriggerWait("pkg.T"))
    bench.pass_time(61 * SECOND)
    assert bench.states("r")["t"] == "skipped"
    assert bench.executor.triggers == {}
    assert bench.scheduler.waits.open == {}
    bench.check()


def test_include_deferred_counts_deferred_tasks_in_the_pool(bench: Bench) -> None:
    bench.command("set_pool", name="small", slots=1, include_deferred=True)
    bench.dag("d", task("one", pool="small"), task("two", pool="small"))
    bench.trigger("d", "r")
    first, second = ("one", "two") if bench.states("r")["one"] == "queued" else ("two", "one")
    key = defer(bench, f"r.{first}", TriggerWait("pkg.T"))
    assert bench.states("r")[second] == "scheduled"
    bench.restart()
    assert bench.states("r")[second] == "scheduled"
    fire(bench, key, outcome=Outcome.SUCCESS)
    assert bench.states("r") == {first: "success", second: "queued"}


def test_include_deferred_applies_to_tasks_that_are_deferred_already(bench: Bench) -> None:
    """And it stops counting when the pool is changed back, without a restart."""
    bench.command("set_pool", name="small", slots=1)
    bench.dag("d", task("one", pool="small"), task("two", "one", pool="small"))
    bench.trigger("d", "r")
    defer(bench, "r.one", TriggerWait("pkg.T"))
    bench.command("set_pool", name="small", slots=1, include_deferred=True)
    bench.dag("e", task("x", pool="small"))
    bench.trigger("e", "r2")
    assert bench.states("r2") == {"x": "scheduled"}
    bench.command("set_pool", name="small", slots=1)
    assert bench.states("r2") == {"x": "queued"}
    bench.check()


@pytest.mark.parametrize("command", ["clear", "mark"])
def test_a_deferred_task_that_is_marked_releases_its_pool(bench: Bench, command: str) -> None:
    bench.command("set_pool", name="small", slots=1, include_deferred=True)
    bench.dag("d", task("t", pool="small"))
    bench.trigger("d", "r")
    defer(bench, "r.t", TriggerWait("pkg.T"))
    more: dict[str, Any] = {"state": "success"} if command == "mark" else {}
    bench.command(command, dag_id="d", run_id="r", task_ids=["t"], **more)
    if command == "clear":
        assert bench.scheduler.admission.used(PARALLELISM) == 1
        bench.finish("r.t")
    assert bench.run("r").state.value == "success"
    assert bench.scheduler.admission.used(("pool", "small", 0)) == 0
    bench.check()


def test_a_deferral_without_a_wait_fails(bench: Bench) -> None:
    one(bench, retries=3)
    bench.finish("r.t", outcome=Outcome.DEFERRED)
    assert bench.states("r")["t"] == "failed"
    assert "without saying what it waits for" in (bench.snapshot("r").rows[0].reason or "")
    bench.check()


# --- moments --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [None, "go_on"])
def test_a_moment_needs_neither_process_nor_trigger(bench: Bench, method: str | None) -> None:
    one(bench)
    defer(bench, "r.t", MomentWait(NOW + 60 * SECOND, b'"now"'), method)
    assert bench.executor.triggers == {}
    bench.pass_time(59 * SECOND)
    assert bench.states("r")["t"] == "deferred"
    bench.restart()
    bench.next_timer()
    if method is None:
        assert bench.states("r") == {"t": "success", "after": "queued"}
    else:
        resumption = bench.attempt("r.t").resumption
        assert resumption is not None
        assert resumption.event == b'"now"'
    bench.check()


@pytest.mark.parametrize(("soft_fail", "state"), [(False, "failed"), (True, "skipped")])
def test_a_sensor_that_waits_for_a_moment_can_time_out(bench: Bench, soft_fail: bool, state: str) -> None:
    one(bench, retries=2)
    defer(bench, "r.t", MomentWait(NOW + 60 * SECOND), None, timeout_at=NOW + 10 * SECOND, soft_fail=soft_fail)
    bench.next_timer()
    assert bench.states("r")["t"] == state
    assert "longer than its timeout" in (bench.snapshot("r").rows[0].reason or "")
    bench.check()


# --- tasks and runs of other DAGs -------------------------------------------------------------------------------------------


def other(bench: Bench, **more: Any) -> None:
    bench.dag("up", task("x", **more), task("y", "x"))


def waits_for(**more: Any) -> TasksWait:
    return TasksWait("up", (DATE,), **more)


def test_a_finished_task_of_another_dag_wakes_the_waiting_task_at_once(bench: Bench) -> None:
    other(bench)
    one(bench)
    bench.trigger("up", "u", day=0)
    defer(bench, "r.t", waits_for(task_ids=("x",)), None)
    assert bench.states("r")["t"] == "deferred"
    bench.finish("up/u.x")
    assert bench.states("r") == {"t": "success", "after": "queued"}
    assert bench.states("u")["y"] == "queued", "not the end of the run was waited for"
    bench.check()


def test_a_wait_that_is_fulfilled_already_ends_at_once(bench: Bench) -> None:
    other(bench)
    one(bench)
    bench.trigger("up", "u", day=0)
    bench.work(but=("t", "after"))
    defer(bench, "r.t", waits_for(), None)
    assert bench.states("r")["t"] == "success"
    bench.check()


def test_a_wait_for_a_run_that_does_not_exist_yet(bench: Bench) -> None:
    other(bench)
    one(bench)
    defer(bench, "r.t", waits_for(), None)
    bench.trigger("up", "another", day=1)
    bench.trigger("up", "u", day=0)
    assert bench.states("r")["t"] == "deferred"
    bench.restart()
    bench.finish("up/u.x", "up/u.y")
    assert bench.states("r")["t"] == "success"
    bench.check()


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"failed": ("failed",)}, "failed"),
        ({"failed": ("failed",), "soft_fail": True}, "skipped"),
        ({"skipped": ("failed",)}, "skipped"),
    ],
)
def test_failed_states_end_the_wait_as_configured(bench: Bench, more: dict[str, Any], state: str) -> None:
    other(bench)
    one(bench)
    bench.trigger("up", "u", day=0)
    defer(bench, "r.t", waits_for(task_ids=("x",), **more), None)
    bench.fail("up/u.x")
    assert bench.states("r")["t"] == state
    bench.check()


def test_a_wait_for_a_run_id_resumes_the_task(bench: Bench) -> None:
    other(bench)
    one(bench)
    bench.trigger("up", "u")
    defer(bench, "r.t", TasksWait("up", run_ids=("u",), allowed=("success", "failed")))
    bench.fail("up/u.x")
    resumption = bench.attempt("r.t").resumption
    assert resumption is not None
    assert resumption.event == b'"success"'
    bench.check()


@pytest.mark.spec("S184", "S405")
def test_a_wait_for_several_dags_needs_every_condition(bench: Bench) -> None:
    """No service polls, and nothing is skipped and cleared: the last condition wakes the task."""
    other(bench)
    bench.dag("up2", task("z"))
    one(bench)
    bench.trigger("up", "u", day=0)
    bench.trigger("up2", "v", day=1)
    both = EveryWait((waits_for(task_ids=("x",)), TasksWait("up2", (DATE + DAY,))))
    defer(bench, "r.t", both, "execute_when_met")
    bench.finish("up/u.x")
    assert bench.states("r") == {"t": "deferred", "after": "none"}
    bench.restart()
    bench.finish("up2/v.z")
    assert bench.states("r") == {"t": "queued", "after": "none"}
    bench.finish("r.t")
    assert bench.states("r")["after"] == "queued"
    assert bench.scheduler.waits._at == {}
    bench.check()


def test_a_named_run_that_is_deleted_with_its_dag_wakes_the_task(bench: Bench) -> None:
    other(bench)
    one(bench)
    bench.trigger("up", "u")
    defer(bench, "r.t", TasksWait("up", run_ids=("u",)))
    bench.fail("up/u.x")
    bench.command("delete_dag", dag_id="up")
    resumption = bench.attempt("r.t").resumption
    assert resumption is not None
    assert resumption.event == b'"gone"'
    bench.check()


def test_a_named_run_that_is_deleted_as_old_wakes_the_task(bench: Bench) -> None:
    other(bench)
    one(bench)
    bench.trigger("up", "u")
    bench.trigger("up", "newer")  # the newest stays
    defer(bench, "r.t", TasksWait("up", run_ids=("u",)))
    bench.fail("up/u.x")
    bench.clock.advance(DAY)
    bench.command("retire", before=bench.clock.wall())
    resumption = bench.attempt("r.t").resumption
    assert resumption is not None
    assert resumption.event == b'"gone"'
    bench.check()


def test_waits_notice_marks_and_clears(bench: Bench) -> None:
    other(bench, retries=0)
    one(bench)
    bench.trigger("up", "u", day=0)
    bench.fail("up/u.x")
    defer(bench, "r.t", waits_for(), None)
    assert bench.states("r")["t"] == "deferred"
    bench.clear("up", "u")
    bench.finish("up/u.x", "up/u.y")
    assert bench.states("r")["t"] == "success"
    bench.check()


def test_a_thousand_idle_waits_cost_nothing(make_bench: MakeBench) -> None:
    """A change in a run examines only the waits for this run and task."""
    bench = make_bench()
    other(bench)
    bench.dag("d", *(task(f"t{n}") for n in range(300)), max_active_tasks=1000)
    bench.pool("default_pool", 1000)
    bench.trigger("d", "r", day=0)
    for n in range(300):
        defer(bench, f"r.t{n}", TasksWait("up", (DATE + n * DAY,), task_ids=("x",)), None)
    assert not bench.scheduler.waits.noticed
    bench.trigger("up", "u", day=5)
    looked = len(bench.scheduler.waits.open)
    bench.start("up/u.x")
    bench.scheduler.push(WaitResult(0, 0, 0, TriggerEnd()))
    bench.finish("up/u.x")
    assert looked - len(bench.scheduler.waits.open) == 1
    assert [name for name, state in bench.states("r").items() if state == "success"] == ["t5"]
