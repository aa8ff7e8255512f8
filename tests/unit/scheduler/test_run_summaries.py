"""The summary of a run is written with its end, and is the same as one made from the rows."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import Bench, task
from tradewind.kernel.run_summary import summarise
from tradewind.model.definition import MapLiteral
from tradewind.model.states import Outcome


def assert_written(bench: Bench, run_id: str) -> None:
    store = bench.store
    run = store.need_run("d", run_id)
    seq, summary = store.run_summaries([run.id])[run.id]
    assert seq == run.journal_seq
    tasks = {one.task_id: number for number, one in enumerate(store.definition(run.version).tasks)}
    rows = [(task_id, state) for _, task_id, state in store.instance_states(run.id)]
    assert summary == summarise(run.version, tasks, rows)


def test_a_run_has_a_summary_when_it_ends(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), task("c", "b"))
    bench.trigger("d", "r")
    run = bench.store.need_run("d", "r")
    bench.finish("r.a")
    assert bench.store.run_summaries([run.id]) == {}
    bench.finish("r.b", outcome=Outcome.FAILED)
    assert_written(bench, "r")


def test_a_cleared_run_has_a_new_summary_at_its_next_end(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.finish("r.a", outcome=Outcome.FAILED)
    run = bench.store.need_run("d", "r")
    before = bench.store.run_summaries([run.id])[run.id]
    bench.clear("d", "r", "a")
    assert bench.store.need_run("d", "r").journal_seq > before[0], "the old summary is not valid any more"
    bench.finish("r.a")
    assert_written(bench, "r")


def test_a_run_with_mapped_tasks_and_a_changed_dag(bench: Bench) -> None:
    bench.dag("d", task("a"), task("m", "a", mapped=True, expand=(MapLiteral(3),)))
    bench.trigger("d", "r")
    bench.dag("d", task("new"), task("a"), task("m", "a", mapped=True, expand=(MapLiteral(3),)), task("z", "m"))
    bench.finish("r.new", "r.a")
    for index in range(3):
        bench.finish(f"r.m[{index}]", outcome=Outcome.FAILED if index == 1 else Outcome.SUCCESS)
    assert_written(bench, "r")


def test_a_deleted_run_takes_its_summary_with_it(bench: Bench) -> None:
    bench.dag("d", task("a"))
    for name in ("r", "later"):
        bench.trigger("d", name)
        bench.finish(f"{name}.a")
    run = bench.store.need_run("d", "r")
    assert bench.store.delete_old_runs(2**62, 0, 1).runs >= 1
    assert bench.store.run_summaries([run.id]) == {}


@pytest.mark.parametrize("tasks", [1, 200])
def test_empty_tasks_end_in_one_batch_with_a_summary(bench: Bench, tasks: int) -> None:
    bench.dag("d", *(task(f"t{i}", empty=True) for i in range(tasks)))
    bench.trigger("d", "r")
    assert_written(bench, "r")
