"""Clears that include tasks of other DAGs by external task markers, and the waiting tasks there."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import Bench, task
from tests.unit.scheduler.test_planned_waits import waiting
from tradewind.model.definition import ExternalMark
from tradewind.model.errors import Conflict
from tradewind.model.wait_plans import TasksPlan


def chain(bench: Bench, depth: int = 10) -> None:
    """up.x ─▶ up.mark ┄▶ mid.wait ─▶ mid.work ─▶ mid.mark ┄▶ low.wait ─▶ low.work; each run of one date."""
    bench.dag("up", task("x"), task("mark", "x", empty=True, external=ExternalMark("mid", "wait", depth)))
    bench.dag(
        "mid",
        waiting(TasksPlan("up", task_ids=("mark",)), "wait"),
        task("work", "wait"),
        task("mark", "work", empty=True, external=ExternalMark("low", "wait", depth)),
    )
    bench.dag("low", waiting(TasksPlan("mid", task_ids=("mark",)), "wait"), task("work", "wait"))
    for dag_id in ("low", "mid", "up"):
        bench.trigger(dag_id, dag_id, day=0)


def done(bench: Bench) -> None:
    """Let everything run."""
    for attempt in ("up/up.x", "mid/mid.work", "low/low.work"):
        bench.finish(attempt)
    assert {bench.run(name).state.value for name in ("up", "mid", "low")} == {"success"}


@pytest.mark.spec("S184", "S407")
def test_a_clear_follows_external_task_markers_over_several_dags(bench: Bench) -> None:
    """A clear of the first DAG clears the waiting tasks and their downstream tasks in all DAGs behind it."""
    chain(bench)
    assert [bench.states(name)["wait"] for name in ("mid", "low")] == ["deferred", "deferred"]
    done(bench)
    bench.clear("up", "up", "x", downstream=True)
    assert bench.states("up") == {"x": "queued", "mark": "none"}
    assert bench.states("mid") == {"wait": "deferred", "work": "none", "mark": "none"}
    assert bench.states("low") == {"wait": "deferred", "work": "none"}
    bench.restart()
    done(bench)
    bench.check()


def test_a_clear_restarts_a_wait_in_another_dag(bench: Bench) -> None:
    """Clearing the awaited task clears the waiting task, too: it begins another wait, and the old one is dropped."""
    chain(bench)
    bench.finish("up/up.x")
    assert bench.states("mid")["wait"] == "success"
    bench.clear("up", "up", "x", downstream=True)
    assert bench.states("mid") == {"wait": "deferred", "work": "restarting", "mark": "none"}
    bench.vanish("mid/mid.work")
    assert bench.states("mid") == {"wait": "deferred", "work": "none", "mark": "none"}
    assert bench.states("low")["wait"] == "deferred", "what it waits for has not come yet anyway"
    done(bench)
    bench.check()


def test_too_many_external_task_markers_in_a_row_are_refused(bench: Bench) -> None:
    chain(bench, depth=1)
    done(bench)
    with pytest.raises(Conflict, match="more than 1 external markers follow each other"):
        bench.clear("up", "up", "x", downstream=True)
    assert bench.states("mid")["wait"] == "success"


def test_an_external_task_marker_without_a_run_is_ignored(bench: Bench) -> None:
    bench.dag("up", task("x", external=ExternalMark("mid", "wait", 10)))
    bench.dag("mid", waiting(TasksPlan("up"), "wait"))
    bench.trigger("up", "u", day=0)
    bench.trigger("mid", "m", day=1)
    bench.finish("up/u.x")
    bench.clear("up", "u", "x")
    assert bench.states("m")["wait"] == "deferred"
