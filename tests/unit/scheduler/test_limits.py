"""Admission: pools, limits, priorities, pauses."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import Bench, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.errors import Conflict
from tradewind.model.states import RunState


@pytest.mark.spec("S11", "S167", "S263")
def test_a_pool_limits_its_tasks(bench: Bench) -> None:
    bench.pool("small", 3)
    bench.dag("d", task("big", pool="small", pool_slots=2, priority_weight=9), *(task(f"t{i}", pool="small") for i in range(3)))
    bench.trigger("d", "r")
    assert sorted(bench.in_state("queued")) == ["r.big", "r.t0"]
    assert bench.why("r.t1") == {"pool": "Pool small has 0 of 3 slots free; it needs 1."}
    answer = bench.why_answer("r.t2")
    assert answer["position"] == {
        "ahead": 1,
        "first": {"dag_id": "d", "run_id": "r", "task_id": "t1", "map_index": -1, "priority_weight": 1},
    }
    (pool,) = answer["blockers"]
    assert [holder["task_id"] for holder in pool["holders"]] == ["big", "t0"]
    bench.finish("r.big")
    assert sorted(bench.in_state("queued")) == ["r.t0", "r.t1", "r.t2"]
    bench.check()


@pytest.mark.spec("S139", "S157", "S263")
def test_tasks_of_an_unknown_pool_wait_until_it_exists(bench: Bench) -> None:
    bench.dag("d", task("a", pool="nowhere"), task("b"))
    bench.trigger("d", "r")
    assert bench.states("r") == {"a": "scheduled", "b": "queued"}
    assert "There is no pool 'nowhere'" in bench.why("r.a")["pool"]
    bench.pool("nowhere", 1)
    assert bench.states("r")["a"] == "queued"
    bench.command("delete_pool", name="nowhere")
    bench.finish("r.a", "r.b")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


@pytest.mark.spec("S264")
def test_tasks_without_a_pool_use_the_default_pool(bench: Bench) -> None:
    bench.pool("default_pool", 1)
    bench.dag("d", task("a"), task("b"))
    bench.trigger("d", "r")
    assert bench.states("r") == {"a": "queued", "b": "scheduled"}
    assert bench.why("r.b") == {"pool": "Pool default_pool has 0 of 1 slots free; it needs 1."}
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_a_smaller_pool_stops_no_task_and_admits_none(bench: Bench) -> None:
    bench.pool("p", 3)
    bench.dag("d", *(task(f"t{i}", pool="p") for i in range(5)))
    bench.trigger("d", "r")
    assert len(bench.in_state("queued")) == 3
    bench.pool("p", 1)
    bench.finish("r.t0", "r.t1")
    assert bench.in_state("queued") == ["r.t2"]
    bench.finish("r.t2")
    assert bench.in_state("queued") == ["r.t3"]
    bench.pool("p", -1)
    assert sorted(bench.in_state("queued")) == ["r.t3", "r.t4"]
    bench.check()


def test_a_task_larger_than_its_pool_does_not_block_others(bench: Bench) -> None:
    bench.pool("p", 2)
    bench.dag("d", task("huge", pool="p", pool_slots=3, priority_weight=9), task("a", pool="p"))
    bench.trigger("d", "r")
    assert bench.states("r") == {"huge": "scheduled", "a": "queued"}
    assert "it can never start" in bench.why("r.huge")["pool"]
    bench.pool("p", 4)
    assert bench.states("r")["huge"] == "queued"
    bench.check()


def test_max_active_tasks_is_per_run(bench: Bench) -> None:
    bench.dag("d", *(task(f"t{i}") for i in range(4)), max_active_tasks=2)
    bench.trigger("d", "r1")
    bench.trigger("d", "r2")
    assert sorted(bench.in_state("queued")) == ["r1.t0", "r1.t1", "r2.t0", "r2.t1"]
    bench.finish("r1.t1")
    assert "r1.t2" in bench.in_state("queued")
    bench.check()


@pytest.mark.spec("S265")
def test_max_active_tasks_all_runs_counts_all_runs_and_names_holders(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"), max_active_tasks_all_runs=3)
    bench.dag("other", task("a"))
    for name in ("r1", "r2"):
        bench.trigger("d", name)
    bench.trigger("other", "r")
    assert sorted(bench.in_state("queued")) == ["r.a", "r1.a", "r1.b", "r2.a"]
    (blocker,) = bench.why_answer("r2.b")["blockers"]
    assert blocker["rule"] == "max_active_tasks_all_runs"
    assert blocker["sentence"] == "d has 3 live task instances over all its runs; its max_active_tasks_all_runs is 3."
    assert [f"{one['run_id']}.{one['task_id']}" for one in blocker["holders"]] == ["r1.a", "r1.b", "r2.a"]
    bench.finish("r1.b")
    assert bench.states("r2")["b"] == "queued"
    bench.check()


def test_max_active_tasks_all_runs_can_be_changed_at_run_time(bench: Bench) -> None:
    tasks = [task(name) for name in "abc"]
    bench.dag("d", *tasks, max_active_tasks_all_runs=1)
    bench.trigger("d", "r1")
    bench.trigger("d", "r2")
    assert bench.in_state("queued") == ["r1.a"]
    bench.dag("d", *tasks, max_active_tasks_all_runs=3)
    assert sorted(bench.in_state("queued")) == ["r1.a", "r1.b", "r1.c"]
    bench.dag("d", *tasks)
    assert len(bench.in_state("queued")) == 6
    bench.dag("d", *tasks, max_active_tasks_all_runs=1)
    bench.trigger("d", "r3")
    bench.finish("r1.a", "r1.b", "r1.c", "r2.a", "r2.b")
    assert bench.in_state("queued") == ["r2.c"]
    bench.finish("r2.c")
    assert bench.in_state("queued") == ["r3.a"]
    bench.check()


def test_max_active_tasks_all_runs_is_counted_again_after_a_restart(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"), max_active_tasks_all_runs=1)
    bench.trigger("d", "r1")
    bench.trigger("d", "r2")
    bench.restart()
    assert bench.in_state("queued") == ["r1.a"]
    bench.finish("r1.a")
    assert bench.in_state("queued") == ["r1.b"]
    bench.check()


@pytest.mark.spec("S192", "S266")
def test_max_active_tis_per_dag_is_over_all_runs_and_per_dagrun_in_one(bench: Bench) -> None:
    bench.dag("d", task("a", max_active_tis_per_dag=2), task("b", max_active_tis_per_dagrun=1))
    for name in ("r1", "r2", "r3"):
        bench.trigger("d", name)
    assert sorted(bench.in_state("queued")) == ["r1.a", "r1.b", "r2.a", "r2.b", "r3.b"]
    assert "max_active_tis_per_dag" in bench.why("r3.a")
    bench.finish("r2.a")
    assert bench.states("r3")["a"] == "queued"
    bench.check()


@pytest.mark.spec("S271", "S272")
@pytest.mark.parametrize(("parallelism", "ready", "handed_over"), [(3, 5, 3), (5, 3, 3), (0, 5, 5)])
def test_every_ready_task_within_the_limits_is_submitted(
    make_bench: MakeBench, parallelism: int, ready: int, handed_over: int
) -> None:
    """The smaller of the two numbers; without a limit all. A released slot admits one more."""
    bench = make_bench(parallelism=parallelism)
    bench.dag("d", *(task(f"t{number}") for number in range(ready)))
    bench.trigger("d", "r")
    assert len(bench.executor.submitted) == handed_over
    bench.finish("r.t0")
    assert len(bench.executor.submitted) == min(ready, handed_over + 1)
    bench.check()


@pytest.mark.spec("S98", "S219")
def test_parallelism_limits_all_dags_together(make_bench: MakeBench) -> None:
    bench = make_bench(parallelism=2)
    bench.dag("x", task("a"), task("b"))
    bench.dag("y", task("a", priority_weight=5), task("b"))
    bench.trigger("x", "r1")
    bench.trigger("y", "r2")
    assert sorted(bench.in_state("queued")) == ["r1.a", "r1.b"]
    assert "2 of 2 attempts are live" in bench.why("r2.a")["parallelism"]
    bench.finish("r1.a")
    assert sorted(bench.in_state("queued")) == ["r1.b", "r2.a"]
    bench.finish("r1.b", "r2.a")
    bench.check()


@pytest.mark.spec("S268", "S269", "S313")
def test_admission_order_is_priority_then_date_then_slot(make_bench: MakeBench) -> None:
    bench = make_bench(parallelism=1)
    bench.dag("d", task("hold"))
    bench.trigger("d", "first")
    bench.dag("e", task("low"), task("high", priority_weight=7), task("low2"))
    bench.trigger("e", "late", day=2)
    bench.trigger("e", "early", day=1)
    bench.finish("first.hold")
    bench.work()
    order = [f"{w.run_id}.{w.task_id}" for w in bench.executor.submitted]
    assert order == ["first.hold", "early.high", "late.high", "early.low", "early.low2", "late.low", "late.low2"]
    bench.check()


@pytest.mark.spec("S270")
def test_priority_weights_add_up_downstream(make_bench: MakeBench) -> None:
    bench = make_bench(parallelism=1)
    bench.dag("d", task("alone"), task("head"), task("x", "head"), task("y", "head"))
    bench.trigger("d", "r")
    assert [(w.task_id, w.priority) for w in bench.executor.submitted] == [("head", 3)]


@pytest.mark.spec("S219", "S262", "S278")
def test_a_paused_dag_lets_its_tasks_finish_and_starts_none(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.command("set_paused", dag_id="d", is_paused=True)
    bench.finish("r.a")
    assert bench.states("r") == {"a": "success", "b": "scheduled"}
    assert bench.why("r.b") == {"paused": "Its DAG is paused: unpause it."}
    bench.trigger("d", "later")
    assert bench.run_states("d") == {"r": "running", "later": "queued"}
    assert set(bench.why("later.a")) == {"paused"}
    bench.check()
    bench.command("set_paused", dag_id="d", is_paused=False)
    assert bench.run_states("d") == {"r": "running", "later": "running"}
    bench.work()
    assert set(bench.run_states("d").values()) == {"success"}
    bench.check()


def test_a_dag_stays_paused_after_a_restart(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.command("set_paused", dag_id="d", is_paused=True)
    bench.restart()
    bench.finish("r.a")
    assert bench.states("r")["b"] == "scheduled"
    bench.restart()
    assert bench.states("r")["b"] == "scheduled"
    bench.check()


@pytest.mark.spec("S252", "S267")
def test_max_active_runs_applies_to_manual_runs(bench: Bench) -> None:
    bench.dag("d", task("a"), max_active_runs=2)
    for name in ("r1", "r2", "r3", "r4"):
        bench.trigger("d", name)
    assert list(bench.run_states("d").values()) == ["running", "running", "queued", "queued"]
    assert "its max_active_runs is 2" in bench.why("r3.a")["max_active_runs"]
    bench.finish("r2.a")
    assert list(bench.run_states("d").values()) == ["running", "success", "running", "queued"]
    bench.check()


def test_the_same_run_is_not_created_twice(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r", day=1)
    with pytest.raises(Conflict, match="already has a run 'r'"):
        bench.trigger("d", "r")
    with pytest.raises(Conflict, match="for this logical date"):
        bench.trigger("d", "other", day=1)
    bench.check()
