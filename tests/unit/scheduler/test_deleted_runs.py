"""Finished runs are deleted: running runs whose previous run they were, or which waited for them, notice at once."""

from __future__ import annotations

from tests.unit.scheduler.bench import Bench, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.moments import SECOND
from tradewind.model.states import Outcome, TaskState
from tradewind.model.waits import Deferral, TasksWait
from tradewind.scheduler.duties.retention import Retention


def retire(bench: Bench, dag_id: str) -> None:
    bench.clock.advance(SECOND)
    bench.command("retire", before=bench.clock.wall(), dag_id=dag_id)


def test_after_a_deletion_an_earlier_run_is_the_previous_run(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True), task("b"))
    bench.trigger("d", "good", 1)
    bench.finish("good.a")
    bench.trigger("d", "bad", 2)
    bench.fail("bad.a")
    bench.finish("bad.b")
    bench.trigger("d", "last", 3)
    assert bench.state("last.a") is TaskState.NONE
    retire(bench, "d")
    assert bench.run_states("d") == {"good": "running", "last": "running"}
    assert bench.state("last.a") is TaskState.QUEUED
    bench.check()


def test_a_task_that_only_a_deleted_run_had_counts_as_new(bench: Bench) -> None:
    """The previous run does not have the task; older runs decide whether it ever ran."""
    bench.dag("d", task("a"), task("b"))
    bench.trigger("d", "old", 1)
    bench.finish("old.a", "old.b")
    bench.clock.advance(10 * SECOND)
    bench.dag("d", task("a"))
    bench.trigger("d", "without", 2)
    bench.finish("without.a")
    bench.dag("d", task("a"), task("b", depends_on_past=True))
    bench.trigger("d", "last", 3)
    assert bench.state("last.b") is TaskState.NONE
    assert "no task instance of b" in str(bench.why("last.b"))
    bench.command("retire", before=bench.clock.wall() - SECOND, dag_id="d")
    assert bench.run_states("d") == {"without": "success", "last": "running"}
    assert bench.state("last.b") is TaskState.QUEUED
    bench.check()


def test_a_task_that_waits_for_a_deleted_run_resumes(make_bench: MakeBench) -> None:
    """Retention deletes the run, not a person."""
    bench = make_bench()
    bench.dag("watched", task("a"), task("b"))
    bench.trigger("watched", "w")
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    wait = TasksWait("watched", run_ids=("w",), task_ids=("a",), allowed=("failed",))
    bench.finish("d/r.a", outcome=Outcome.DEFERRED, deferral=Deferral(wait, "go_on"))
    bench.finish("watched/w.a", "watched/w.b")
    assert bench.state("d/r.a") is TaskState.DEFERRED
    bench.clock.advance(2 * SECOND)
    Retention(bench.scheduler, SECOND, 0, SECOND).run_once()
    bench.process()
    assert bench.run_states("watched") == {}
    assert bench.state("d/r.a") is TaskState.QUEUED
    bench.check()


def test_a_note_on_a_queued_run_is_kept_when_it_starts(bench: Bench) -> None:
    bench.dag("d", task("a"), max_active_runs=1)
    bench.trigger("d", "first", 1)
    bench.trigger("d", "second", 2)
    bench.command("note_run", dag_id="d", run_id="second", note="so")
    bench.finish("first.a")
    assert bench.run("second").note == "so"
    assert bench.scheduler.active_runs_by_id[bench.run("second").id].row.note == "so"
    bench.check()


def test_an_unfinished_previous_run_is_started(bench: Bench) -> None:
    """It is the previous run of the run after it, not of a later one."""
    bench.dag("d", task("a", depends_on_past=True))
    bench.dag("other", task("a", depends_on_past=True))
    bench.trigger("other", "o", 5)
    bench.trigger("d", "second", 2)
    bench.trigger("d", "third", 3)
    assert bench.in_state("queued") == ["second.a", "o.a"]
    bench.trigger("d", "first", 1)
    ids = {run_id: bench.run(run_id).id for run_id in ("first", "second", "third")}
    past = bench.scheduler.previous_runs
    assert [past.before(ids[run_id]) for run_id in ids] == [None, ids["first"], ids["second"]]
    assert past.before(bench.run("o").id) is None
    bench.finish("first.a", "second.a", "third.a")
    bench.check()
