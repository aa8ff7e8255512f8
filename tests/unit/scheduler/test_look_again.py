"""The safety net behind commands: what the store holds and nobody told is found."""

from __future__ import annotations

from tests.unit.scheduler.bench import NOW, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.states import RunType
from tradewind.store.nouns import NewRun, PoolRow


def test_nothing_is_found_when_everybody_told(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.process()
    assert bench.scheduler.look_again() == 0


def test_a_run_a_pause_and_a_pool_that_nobody_told_of_are_found(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a", pool="later"))
    plan = bench.store.need_dag("d")
    bench.store.create_run(NewRun("d", "r", RunType.MANUAL, plan.version, None, None, None, NOW, NOW, "test"))
    bench.process()
    assert bench.executor.submitted == []
    assert bench.scheduler.look_again() >= 1
    bench.process()
    assert bench.states("r", "d") == {"a": "scheduled"}
    bench.store.set_pool(PoolRow("later", 1, None, False), "test", NOW)
    bench.scheduler.look_again()
    bench.process()
    assert bench.states("r", "d") == {"a": "queued"}
    bench.store.set_paused("d", True, "test", NOW)
    bench.scheduler.look_again()
    assert bench.scheduler.dags["d"].plan.is_paused


def test_a_clear_that_nobody_told_of_is_found(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.work()
    run = bench.run("r", "d")
    bench.store.clear(run.id, [1], "test", NOW)
    assert bench.scheduler.look_again() == 1
    bench.work()
    assert bench.states("r", "d") == {"a": "success", "b": "success"}
    assert bench.run("r", "d").clear_number == 1
