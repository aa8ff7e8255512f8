"""Whatever keeps a task from running has its sentence; and where nothing does, the next step starts it."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import NOW, Bench, failing, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.errors import NotFound, StoreBusy
from tradewind.model.moments import HOUR, MINUTE
from tradewind.model.states import Outcome


def test_a_task_that_waits_for_others(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"), task("c", "a", "b"))
    bench.trigger("d", "r")
    bench.finish("r.a")
    assert bench.why("r.c") == {
        "trigger_rule": "Its trigger rule all_success wants all of its upstream tasks to succeed; of 2, 1 succeeded. "
        "Not ended: b (queued)."
    }


@pytest.mark.spec("S290", "S292")
def test_each_state_has_its_sentence(bench: Bench) -> None:
    bench.dag("d", task("a", retries=1, retry_delay=MINUTE), task("b", "a"))
    bench.trigger("d", "r")
    assert set(bench.why("r.a")) == {"queued"}
    bench.executor.ready = False
    assert set(bench.why("r.a")) == {"queued", "no_worker"}
    bench.executor.ready = True
    bench.start("r.a")
    assert bench.why("r.a") == {"running": "It is running since 2026-01-01T00:00:00Z."}
    bench.report("r.a", Outcome.FAILED, reason="ValueError: no")
    due = {"due": "It waits for its next try at 2026-01-01T00:01:00Z (ValueError: no)."}
    assert bench.why("r.a") == due
    bench.restart()
    assert bench.why("r.a") == due, "the reason is in the row"
    bench.pass_time(MINUTE)
    bench.start("r.a")
    bench.clear("d", "r", "a")
    assert set(bench.why("r.a")) == {"restarting"}
    bench.vanish("r.a")
    bench.finish("r.a", "r.b")
    assert set(bench.why("r.b")) == {"run_finished", "finished"}


def test_a_reschedule_has_its_moment(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.finish("r.a", outcome=Outcome.RESCHEDULE, reschedule_at=NOW + HOUR)
    assert bench.why("r.a") == {"due": "It waits for being called again at 2026-01-01T01:00:00Z."}


def test_setups_and_teardowns(bench: Bench) -> None:
    bench.dag(
        "d",
        task("s", is_setup=True),
        task("x", "s"),
        task("w", "x", trigger_rule="all_done"),
        task("t", "w", "s", is_teardown=True, trigger_rule="all_done_setup_success"),
    )
    bench.trigger("d", "r")
    assert "It waits for the setup s" in bench.why("r.w")["setup"]
    bench.finish("r.s")
    assert "still uses" in bench.why("r.t").get("teardown", "") or "trigger_rule" in bench.why("r.t")


def test_a_store_that_cannot_be_written(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    with failing(bench.watched, lambda batch: StoreBusy("another process holds it")):
        bench.ask("r.a")
    assert "another process holds it" in bench.why("r.a")["store"]
    assert bench.scheduler.recover()
    bench.process()
    assert "store" not in bench.why("r.a")


def test_a_huge_run_whose_rows_are_being_written(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", *(task(f"t{i}", empty=True) for i in range(2500)))
    bench.commands.run(bench.ask_for("trigger", dag_id="d", run_id="r"))
    bench.scheduler.refresh_dag("d")
    assert bench.why("r.t1")["rows"] == "2000 of its run's 2500 task instances are written so far."


def test_a_dag_that_is_gone(bench: Bench) -> None:
    bench.dag("d", task("a"), max_active_runs=1)
    bench.trigger("d", "r1")
    bench.trigger("d", "r2")
    bench.command("forget_files", bundle="dags", files=["d.py"])
    bench.work()
    assert "gone from the DAG folder (it was in d.py)" in bench.why("r2.a")["inactive"]


def test_the_nearest_name_is_offered(bench: Bench) -> None:
    bench.dag("daily", task("extract"))
    bench.trigger("daily", "r")
    with pytest.raises(NotFound, match="'extract'"):
        bench.why("daily/r.extrct")
    with pytest.raises(NotFound, match="'daily'"):
        bench.why("dialy/r.extract")
    with pytest.raises(NotFound, match="Its latest runs: r"):
        bench.why("daily/other.extract")


# --- with no scheduler there -----------------------------------------------------------------------------------------------


def test_offline_the_truth_of_the_store_is_told(bench: Bench) -> None:
    bench.dag("d", task("a", pool="nowhere"), task("b"), task("c", "b"), task("e", pool_slots=200))
    bench.trigger("d", "r")
    told = {name: bench.why(f"r.{name}", live=False) for name in "abce"}
    assert all("no_scheduler" in rules for rules in told.values())
    assert set(told["a"]) == {"no_scheduler", "pool"}
    assert "There is no pool 'nowhere'" in told["a"]["pool"]
    assert set(told["b"]) == {"no_scheduler", "queued", "no_worker"}
    assert "Not ended: b (queued)" in told["c"]["trigger_rule"]
    assert "it can never start" in told["e"]["pool"]


def test_offline_a_scheduled_task_is_not_said_to_meet_limits_nobody_knows(bench: Bench) -> None:
    bench.pool("p", 1)
    bench.dag("d", task("a", pool="p"), task("b", pool="p"))
    bench.trigger("d", "r")
    assert set(bench.why("r.b", live=False)) == {"no_scheduler"}
    bench.command("set_paused", dag_id="d", is_paused=True)
    assert set(bench.why("r.b", live=False)) == {"no_scheduler", "paused"}


def test_offline_the_past_is_told(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True), max_active_runs=1)
    bench.trigger("d", "r1", day=1)
    bench.fail("r1.a")
    bench.trigger("d", "r2", day=2)
    sentence = "depends_on_past: a is failed in the previous run r1; it has to be success or skipped."
    assert bench.why("r2.a", live=False)["past"] == sentence
    assert bench.why("r2.a")["past"] == sentence


# --- no blocker: it starts ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("S290")
def test_where_nothing_is_in_the_way_the_next_step_starts_it(bench: Bench) -> None:
    """The limits are lifted without a step of the scheduler: why says so first, the step does so then."""
    bench.pool("p", 0)
    bench.dag("d", task("a", pool="p"))
    bench.trigger("d", "r")
    bench.command("set_paused", dag_id="d", is_paused=True)
    while blockers := bench.why("r.a"):
        assert set(blockers) <= {"pool", "paused"}
        if "pool" in blockers:
            bench.store.set_pool(next(p for p in bench.store.pools() if p.name == "p")._replace(slots=1), "ann", NOW)
            bench.scheduler.refresh_pools()
        else:
            bench.store.set_paused("d", False, "ann", NOW)
            bench.scheduler.refresh_dag("d")
    assert bench.states("r")["a"] == "scheduled"
    bench.scheduler.readmit()
    bench.process()
    assert bench.states("r")["a"] == "queued"
