"""Rows that cannot be read, changes that cannot be computed: only their run is quarantined, and tried again later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.scheduler.bench import Bench, failing, on_commit, task
from tests.unit.scheduler.test_waits import DATE, defer
from tradewind.model.errors import NotFound, StatementError, StoreBusy, StoreRefused
from tradewind.model.moments import MINUTE, SECOND
from tradewind.model.waits import TasksWait
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.store.sql.store import SqlStore

AGAIN = 31 * SECOND


def spoilt(real: Callable[..., Any], bad: Callable[..., bool], error: Exception) -> Callable[..., Any]:
    """Return a function that raises where `bad` says so."""

    def called(*given: Any, **more: Any) -> Any:
        if bad(*given):
            raise error
        return real(*given, **more)

    return called


def others_go_on(bench: Bench) -> None:
    bench.dag("other", task("a"))
    bench.trigger("other", "o1")
    bench.finish("o1.a")
    assert bench.run_states("other") == {"o1": "success"}


@pytest.mark.parametrize(
    "error", [NotFound("there is no DAG version 1"), ValueError("truncated"), StoreRefused("a constraint")]
)
def test_a_wait_that_cannot_be_examined_is_examined_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    bench.dag("up", task("x"))
    bench.dag("d", task("bad"), task("good"))
    bench.trigger("d", "r", day=0)
    for name in ("bad", "good"):
        defer(bench, f"r.{name}", TasksWait("up", (DATE,), task_ids=("x",)))
    first = next(iter(bench.scheduler.waits.open))
    with monkeypatch.context() as patched:
        look = bench.scheduler.waits.examine
        patched.setattr(bench.scheduler.waits, "examine", spoilt(look, lambda key, active_runs_by_id: key == first, error))
        bench.trigger("up", "u", day=0)
        bench.finish("u.x")
        assert bench.states("r") == {"bad": "deferred", "good": "queued"}
        others_go_on(bench)
        bench.scheduler.waits.notice_all()
        bench.process()
        assert not bench.scheduler.busy, "it has to wait"
    bench.pass_time(AGAIN)
    assert bench.states("r")["bad"] == "queued"


def test_a_run_whose_changes_cannot_be_computed_is_quarantined(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r1")
    bench.trigger("d", "r2")
    victim = bench.run("r1").id
    with monkeypatch.context() as patched:
        patched.setattr(
            ActiveRun,
            "write",
            spoilt(ActiveRun.write, lambda active_run, at: active_run.row.id == victim, ValueError("no integer")),
        )
        assert bench.ask("r1.a") is None
        bench.finish("r2.a")
        assert bench.run_states("d") == {"r1": "running", "r2": "success"}
        assert "quarantined" in bench.why("r1.a")
        others_go_on(bench)
    bench.pass_time(AGAIN)
    bench.finish("r1.a")
    bench.check()


def test_a_run_that_fails_after_its_commit_is_reloaded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r1")
    victim = bench.run("r1").id
    with monkeypatch.context() as patched:
        bad = spoilt(ActiveRun.written, lambda active_run, at: active_run.row.id == victim, ValueError("no integer"))
        patched.setattr(ActiveRun, "written", bad)
        bench.ask("r1.a")
        others_go_on(bench)
    bench.pass_time(AGAIN)
    assert bench.states("r1") == {"a": "running"}, "it was committed"
    bench.finish("r1.a")
    bench.check()


def test_an_attempt_that_cannot_be_encoded_affects_only_its_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another attempt of the same batch is submitted; a worker host that registers later gets the others, too."""
    bench.dag("d", task("a"))
    submit = bench.executor.submit
    with monkeypatch.context() as patched:
        bad = spoilt(submit, lambda works: any(work.run_id == "bad" for work in works), OverflowError("beyond 64 bits"))
        patched.setattr(bench.executor, "submit", bad)
        with failing(bench.watched, on_commit({1: StoreBusy("held")})):
            bench.trigger("d", "bad")
        bench.trigger("d", "good")
        assert bench.scheduler.recover()
        bench.process()
        assert {work.run_id for work in bench.executor.submitted} == {"good"}
        bench.scheduler.hosts.register("host", frozenset())
        bench.scheduler.hosts.resubmit_old(bench.clock.wall())
        assert {work.run_id for work in bench.executor.submitted} == {"good"}
        assert "quarantined" in bench.why("bad.a")
    bench.pass_time(5 * MINUTE)
    bench.scheduler.hosts.resubmit_old(bench.clock.wall())
    bench.work()
    assert bench.run_states("d") == {"bad": "success", "good": "success"}


def test_an_answer_that_cannot_be_sent_affects_only_its_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "bad")
    bench.trigger("d", "good")
    key = bench.attempt("bad.a").key
    with monkeypatch.context() as patched:
        bad = spoilt(bench.executor.answer, lambda host, answer: answer.attempt == key, OverflowError("beyond 64 bits"))
        patched.setattr(bench.executor, "answer", bad)
        assert bench.ask("bad.a", "n") is None
        bench.finish("good.a")
    bench.pass_time(AGAIN)
    assert bench.ask("bad.a", "n") is not None, "its worker asks again"
    bench.finish("bad.a")
    bench.check()


def test_a_scheduler_starts_with_rows_that_cannot_be_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that is missing, a snapshot that cannot be decoded: these runs are quarantined."""
    bench.dag("gone", task("a"), max_active_runs=1)
    bench.dag("torn", task("a"))
    for run_id in ("g1", "g2"):
        bench.trigger("gone", run_id)
    bench.trigger("torn", "t1")
    version, torn = bench.store.need_dag("gone").version, bench.run("t1").id
    with monkeypatch.context() as patched:
        gone = NotFound(f"there is no DAG version {version}")
        patched.setattr(
            bench.watched, "definition", spoilt(bench.store.definition, lambda one: one == version, gone), raising=False
        )
        broken = spoilt(bench.store.snapshot, lambda run: run == torn, ValueError("MessagePack is malformed"))
        patched.setattr(bench.watched, "snapshot", broken, raising=False)
        bench.restart()
        others_go_on(bench)
        assert bench.scheduler.compare_with_store() == 0
        bench.pass_time(AGAIN)
        others = bench.scheduler.active_runs_by_id.keys() & {torn, bench.run("g1").id}
        assert others == set()
    bench.pass_time(2 * MINUTE)
    assert bench.scheduler.compare_with_store() == 0
    bench.work()
    assert bench.run_states("gone") == {"g1": "success", "g2": "success"}
    assert bench.run_states("torn") == {"t1": "success"}
    bench.check()


def test_a_scheduler_starts_with_a_run_of_an_unknown_type(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    store = bench.watched.inner
    assert isinstance(store, SqlStore)
    bench.dag("d", task("a"))
    bench.trigger("d", "r1")
    store.engine.run("UPDATE dag_run SET run_type = 'of a newer release'")
    bench.restart()
    assert [record.values["run_id"] for record in caplog.records if "cannot be read" in record.message] == ["r1"]  # type: ignore[attr-defined]
    others_go_on(bench)
    store.engine.run("UPDATE dag_run SET run_type = 'manual' WHERE run_type = 'of a newer release'")
    assert bench.scheduler.compare_with_store() == 1
    bench.process()
    bench.work()
    assert bench.run_states("d") == {"r1": "success"}


def test_a_recovery_that_raises_is_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r1")
    with failing(bench.watched, on_commit({1: StoreBusy("held")})):
        bench.ask("r1.a")
    with monkeypatch.context() as patched:
        patched.setattr(bench.watched, "plans", spoilt(bench.store.plans, lambda: True, KeyError("schedule")), raising=False)
        assert bench.scheduler.recover() is False
        assert "a bug in Tradewind" in str(bench.scheduler.trouble)
    assert bench.scheduler.recover()
    bench.process()
    bench.work()
    assert bench.run_states("d") == {"r1": "success"}


def test_a_bug_outside_of_any_run_loses_no_message(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server reloads everything then; worker hosts repeat their messages."""
    bench.dag("d", task("a"))
    bench.trigger("d", "r1")
    bench.start("r1.a")
    with monkeypatch.context() as patched:
        patched.setattr(bench.scheduler.schedules, "decide", spoilt(list, lambda now: True, ZeroDivisionError("a bug")))
        with pytest.raises(ZeroDivisionError):
            bench.report("r1.a")
    bench.scheduler.record_failure("a bug")
    assert bench.scheduler.recover()
    bench.process()
    assert bench.run_states("d") == {"r1": "success"}
    bench.check()


def test_a_bug_in_a_statement_affects_only_its_run(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r1")
    bench.trigger("d", "r2")
    victim, error = bench.run("r1").id, StatementError("no such column: full")
    with failing(bench.watched, lambda batch: error if any(one.run == victim for one in batch.runs) else None):
        assert bench.ask("r1.a") is None
        assert bench.scheduler.trouble is None
        assert not bench.scheduler.paused
        assert "quarantined" in bench.why("r1.a")
        others_go_on(bench)
    bench.pass_time(AGAIN)
    bench.work()
    assert bench.run_states("d") == {"r1": "success", "r2": "success"}
