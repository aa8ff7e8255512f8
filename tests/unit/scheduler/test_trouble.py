"""Stores that fail, runs that raise, rows changed by others: nothing is lost or duplicated, and other runs continue."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.bench import NOW, Bench, failing, on_commit, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.kernel.events import Admitted, AttemptEnded, TimerDue
from tradewind.kernel.machine import RunMachine
from tradewind.model.errors import StoreBusy, StoreError, StoreFull
from tradewind.model.moments import SECOND
from tradewind.model.rows import NewRun
from tradewind.model.states import Outcome, RunState, RunType, TaskState
from tradewind.scheduler.inbox import FromWorker, RunEvent
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.wire.messages import Accepted, Refused, Report, Start


def two_runs(bench: Bench, **more: Any) -> None:
    bench.dag("d", task("a"), task("b", "a"), **more)
    bench.trigger("d", "r1")
    bench.trigger("d", "r2")


def throw(patched: pytest.MonkeyPatch, kind: type, run: int | None = None) -> None:
    """Have machines (of one run) raise when they get such an event."""
    real = RunMachine.apply

    def apply(machine: RunMachine, event: Any, **more: Any) -> Any:
        if isinstance(event, kind) and run in (None, machine.facts.number):
            raise ZeroDivisionError("a bug")
        return real(machine, event, **more)

    patched.setattr(RunMachine, "apply", apply)


@pytest.mark.parametrize("error", [StoreBusy("held"), StoreFull("full"), StoreError("readonly"), "unknown"])
@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_a_failed_commit_loses_and_duplicates_nothing(make_bench: MakeBench, error: Any, at: int) -> None:
    bench = make_bench()
    two_runs(bench)
    with failing(bench.watched, on_commit({at: error})):
        for name in ("r1.a", "r2.a", "r1.b", "r2.b"):
            for _ in range(10):
                before = len(bench.executor.submitted)
                if bench.scheduler.trouble is not None:
                    assert bench.scheduler.recover()
                    bench.process()
                    # the executor's host lacks what was never submitted
                    bench.scheduler.hosts.register("host", frozenset(w.key for w in bench.executor.submitted[:before]))
                    bench.process()
                if bench.in_state("queued").count(name) and bench.ask(name) is None:
                    continue
                if isinstance(bench.report(name), Accepted | Refused):
                    break
            else:
                raise AssertionError(f"{name} never gets an answer")
    bench.work()
    assert bench.run_states("d") == {"r1": "success", "r2": "success"}
    # an attempt may be handed over twice, which changes nothing; it is started once
    assert len(bench.accepted) == len({w.key for w in bench.executor.submitted}) == 4
    bench.check()


def test_nothing_is_sent_before_the_commit(bench: Bench) -> None:
    two_runs(bench)
    bench.start("r1.a")
    sent, answers = len(bench.executor.submitted), len(bench.executor.answers)
    with failing(bench.watched, lambda batch: StoreBusy("held")):
        assert bench.report("r1.a") is None
        assert bench.ask("r2.a") is None
        assert bench.scheduler.trouble is not None
        bench.pass_time(SECOND)
    assert (len(bench.executor.submitted), len(bench.executor.answers)) == (sent, answers)
    bench.scheduler.recover()
    bench.process()
    assert bench.states("r1") == {"a": "success", "b": "queued"}
    assert bench.states("r2")["a"] == "running"
    assert len(bench.executor.answers) == answers + 2
    bench.check()


def test_recovery_waits_until_the_store_can_be_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(bench)

    def unreadable() -> Any:
        raise StoreError("the disk is gone")

    with failing(bench.watched, lambda batch: StoreBusy("held")):
        bench.ask("r1.a")
    with monkeypatch.context() as patched:
        patched.setattr(bench.store, "plans", unreadable, raising=False)
        for _ in range(5):
            assert bench.scheduler.recover() is False
            bench.process()
        assert bench.scheduler.trouble == "the disk is gone"
        assert len(bench.scheduler.inbox) < 10, "what is found in the store anew is not heaped up"
    assert bench.scheduler.recover()
    bench.process()
    assert bench.states("r1")["a"] == "running"
    bench.check()


def test_a_superseded_scheduler_writes_nothing_and_stops(bench: Bench) -> None:
    two_runs(bench)
    old = bench.scheduler
    bench.start("r1.a")
    bench.restart()
    new, bench.scheduler = bench.scheduler, old
    assert bench.report("r1.a") is None
    assert old.superseded
    assert bench.states("r1")["a"] == "running"
    bench.scheduler = new
    bench.finish("r1.a")
    bench.work()
    assert bench.run_states("d") == {"r1": "success", "r2": "success"}
    bench.check()


def test_a_superseded_scheduler_submits_nothing(bench: Bench) -> None:
    """Its last decision was never committed, and a worker host that registers must not get it."""
    bench.dag("d", task("a"))
    plan = bench.store.need_dag("d")
    bench.store.create_run(NewRun("d", "r", RunType.MANUAL, plan.version, None, None, None, NOW, NOW, "test"))
    old, executor = bench.scheduler, bench.executor
    old.schedules.refresh("d")
    bench.store.begin_epoch("newer", 2, "boot", NOW)
    old.process()
    assert old.superseded
    assert [state for _, state, _ in old.hosts.attempts()] == [TaskState.QUEUED]
    old.hosts.register("host", frozenset())
    assert executor.submitted == []


def test_only_the_changed_run_is_reloaded(bench: Bench) -> None:
    """r1 was cleared without the scheduler knowing; r2 of the same batch is written at once."""
    two_runs(bench)
    bench.start("r1.a", "r2.a")
    active_runs_by_id = dict(bench.scheduler.active_runs_by_id)
    bench.store.clear(bench.run("r1").id, [0], "ann", bench.clock.wall())
    for number, name in enumerate(("r1.a", "r2.a")):
        bench.scheduler.push(FromWorker(bench.attempt(name).key, "host", Report(700 + number, Outcome.SUCCESS)))
    bench.process()
    first, second = bench.run("r1").id, bench.run("r2").id
    assert bench.scheduler.active_runs_by_id[first] is not active_runs_by_id[first]
    assert bench.scheduler.active_runs_by_id[second] is active_runs_by_id[second]
    assert bench.states("r2") == {"a": "success", "b": "queued"}
    assert bench.states("r1") == {"a": "queued", "b": "none"}, "the report ended the restarting attempt"
    assert bench.attempt("r1.a").fence == 2
    bench.work()
    assert bench.run_states("d") == {"r1": "success", "r2": "success"}
    bench.check()


def test_a_run_is_committed_only_together_with_its_previous_run(bench: Bench) -> None:
    """The success of r1 is decided but not written, because r1 was cleared meanwhile: then r2 has not started either."""
    bench.dag("d", task("a", depends_on_past=True))
    bench.trigger("d", "r1", day=1)
    bench.trigger("d", "r2", day=2)
    bench.start("r1.a")
    bench.store.clear(bench.run("r1").id, [0], "ann", bench.clock.wall())
    handed_over = len(bench.executor.submitted)
    bench.scheduler.push(FromWorker(bench.attempt("r1.a").key, "host", Report(700, Outcome.SUCCESS)))
    bench.process()
    assert bench.states("r2") == {"a": "none"}
    assert {work.run for work in bench.executor.submitted[handed_over:]} == {bench.run("r1").id}
    bench.work()
    assert bench.run_states("d") == {"r1": "success", "r2": "success"}
    bench.check()


@pytest.mark.spec("S217")
def test_a_run_that_raises_is_quarantined_and_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(bench, max_active_runs=2)
    bench.trigger("d", "r3")
    bench.start("r1.a", "r2.a")
    victim = bench.run("r1").id
    live = bench.attempt("r1.a").key
    with monkeypatch.context() as patched:
        throw(patched, object, victim)
        assert bench.report("r1.a") is None
        bench.finish("r2.a", "r2.b")
        assert "quarantined" in bench.why("r1.b")
        assert bench.run_states("d") == {"r1": "running", "r2": "success", "r3": "running"}
        bench.scheduler.hosts.register("host", frozenset({live}))
        assert bench.executor.cancelled == [], "the attempts of a run that is set aside may live"
        bench.pass_time(31 * SECOND)
        assert bench.report("r1.a") is None, "tried again, and failed again"
        bench.pass_time(31 * SECOND)
        assert "quarantined" in bench.why("r1.b"), "the second wait is longer than the first"
    bench.pass_time(31 * SECOND)
    bench.finish("r1.a")
    bench.work()
    assert bench.run_states("d") == {"r1": "success", "r2": "success", "r3": "success"}
    bench.check()


def test_a_run_that_cannot_start_is_quarantined_and_counts_as_running(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.dag("d", task("a"), max_active_runs=1)
    with monkeypatch.context() as patched:
        patched.setattr(ActiveRun, "candidate", lambda active_run, slot: 1 / 0)
        bench.trigger("d", "r1")
        bench.trigger("d", "r2")
        assert bench.run_states("d") == {"r1": "queued", "r2": "queued"}
        assert "quarantined" in bench.why("r1.a")
    bench.pass_time(31 * SECOND)
    assert bench.run_states("d") == {"r1": "running", "r2": "queued"}
    bench.work()
    assert bench.run_states("d") == {"r1": "success", "r2": "success"}
    bench.check()


def test_a_dispatch_that_raises_releases_its_limits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.pool("p", 2)
    bench.dag("d", task("a", pool="p"), task("b", pool="p"))
    with monkeypatch.context() as patched:
        throw(patched, Admitted)
        bench.trigger("d", "r1")
    bench.pass_time(31 * SECOND)
    assert bench.states("r1") == {"a": "queued", "b": "queued"}
    bench.work()
    bench.check()


def test_a_clear_releases_a_quarantined_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(bench)
    bench.start("r1.a")
    with monkeypatch.context() as patched:
        throw(patched, AttemptEnded)
        assert bench.report("r1.a") is None
    bench.clear("d", "r1", "a")
    assert bench.states("r1")["a"] == "restarting"
    bench.vanish("r1.a")
    bench.work()
    assert bench.run("r1").state is RunState.SUCCESS
    bench.check()


def test_answers_of_a_discarded_decision_are_not_sent(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start was accepted, but something else in the same batch raised: the start was not written."""
    two_runs(bench)
    work = bench.attempt("r1.a")
    with monkeypatch.context() as patched:
        throw(patched, TimerDue)
        bench.scheduler.push(FromWorker(work.key, "host", Start(900, "n", 1)))
        bench.scheduler.push(RunEvent(work.run, TimerDue(0, 0)))
        bench.process()
    assert [answer for answer in bench.executor.answers if answer.body.op == 900] == []
    assert bench.states("r1")["a"] == "queued"
    bench.pass_time(31 * SECOND)
    bench.finish("r1.a")
    bench.work()
    bench.check()
