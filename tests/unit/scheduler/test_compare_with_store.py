"""Comparing the state in memory with the store finds what no notification has reported."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import NOW, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.moments import DAY
from tradewind.model.rows import NewRun, PoolRow
from tradewind.model.states import RunType


def test_no_difference_is_found_after_ordinary_commands(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.process()
    assert bench.scheduler.compare_with_store() == 0


def test_an_unreported_run_pause_and_pool_are_found(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a", pool="later"))
    plan = bench.store.need_dag("d")
    bench.store.create_run(NewRun("d", "r", RunType.MANUAL, plan.version, None, None, None, NOW, NOW, "test"))
    bench.process()
    assert bench.executor.submitted == []
    assert bench.scheduler.compare_with_store() >= 1
    bench.process()
    assert bench.states("r", "d") == {"a": "scheduled"}
    bench.store.set_pool(PoolRow("later", 1, None, False), "test", NOW)
    bench.scheduler.compare_with_store()
    bench.process()
    assert bench.states("r", "d") == {"a": "queued"}
    bench.store.set_paused("d", True, "test", NOW)
    bench.scheduler.compare_with_store()
    assert bench.scheduler.dags["d"].plan.is_paused


def test_an_unreported_clear_is_found(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.work()
    run = bench.run("r", "d")
    bench.store.clear(run.id, [1], "test", NOW)
    assert bench.scheduler.compare_with_store() == 1
    bench.work()
    assert bench.states("r", "d") == {"a": "success", "b": "success"}
    assert bench.run("r", "d").clear_number == 1


def test_an_unreported_end_of_a_run_frees_its_run_slot(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a"), max_active_runs=1)
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.trigger("d", "later")
    bench.commands.run(bench.ask_for("set_run_state", dag_id="d", run_id="r", state="success"))
    assert bench.scheduler.compare_with_store() >= 1
    bench.process()
    assert bench.run_states("d") == {"r": "success", "later": "running"}


@pytest.mark.parametrize("deleted", [False, True])
def test_an_unreported_end_of_a_queued_run_removes_it(make_bench: MakeBench, deleted: bool) -> None:
    bench = make_bench()
    bench.dag("d", task("a"), max_active_runs=1)
    for run_id in ("r", "over", "last"):
        bench.trigger("d", run_id)
    over = bench.run("over", "d").id
    bench.commands.run(bench.ask_for("set_run_state", dag_id="d", run_id="over", state="failed"))
    if deleted:
        bench.store.delete_old_runs(NOW + DAY, 0, NOW)
    assert (bench.store.run(over) is None) == deleted
    assert over in bench.scheduler.dags["d"].waiting
    assert bench.scheduler.compare_with_store() == 1
    assert over not in bench.scheduler.dags["d"].waiting
    assert bench.scheduler.compare_with_store() == 0


def test_an_unreported_deletion_of_a_dag_is_found(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a"))
    bench.commands.run(bench.ask_for("delete_dag", dag_id="d"))
    assert "d" in bench.scheduler.dags
    assert bench.scheduler.compare_with_store() == 1
    assert "d" not in bench.scheduler.dags


def test_an_unreported_end_and_clear_restarts_the_run(make_bench: MakeBench) -> None:
    """It is queued in the store, and runs in memory."""
    bench = make_bench()
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.start("r.a")
    for command, more in (("set_run_state", {"state": "failed"}), ("clear", {})):
        bench.commands.run(bench.ask_for(command, dag_id="d", run_id="r", **more))
    assert bench.run_states("d") == {"r": "queued"}
    assert bench.scheduler.compare_with_store() == 1
    bench.process()
    assert bench.run_states("d") == {"r": "running"}
    bench.check()
