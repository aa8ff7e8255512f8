"""What runs, what waits for a limit, and who holds a pool."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import Bench, task
from tradewind.model.errors import NotFound
from tradewind.model.moments import MINUTE
from tradewind.scheduler.explain.activity import activity, pool_activity


def test_what_runs_and_what_waits(bench: Bench) -> None:
    bench.pool("p", 2)
    bench.dag("d", *(task(f"t{i}", pool="p", priority_weight=9 - i) for i in range(5)), task("after", "t0"))
    bench.trigger("d", "r")
    bench.pass_time(MINUTE)
    bench.start("r.t0")
    found = activity(bench.scheduler)
    assert [(one["task_id"], one["state"]) for one in found["running"]] == [("t0", "running")]
    assert (found["running_total"], found["blocked_total"]) == (2, 3)
    (pool,) = found["blocked"]
    assert (pool["rule"], pool["owner"], pool["capacity"], pool["used"], pool["waiting"]) == ("pool", "p", 2, 2, 3)
    assert [one["task_id"] for one in pool["first"]] == ["t2", "t3", "t4"]
    assert list(found["progress"].values()) == [[6, 6, 5]]


def test_task_instances_of_a_paused_dag_wait_for_it(bench: Bench) -> None:
    bench.pool("p", 1)
    bench.dag("d", task("a", pool="p"), task("b", pool="p"))
    bench.trigger("d", "r")
    bench.command("set_paused", dag_id="d", is_paused=True)
    bench.finish("r.a")
    assert [(one["rule"], one["waiting"]) for one in activity(bench.scheduler)["blocked"]] == [("paused", 1)]


def test_a_pool_has_holders_and_a_waiting_list_in_order(bench: Bench) -> None:
    bench.pool("p", 3)
    bench.dag("d", task("big", pool="p", pool_slots=2, priority_weight=9), *(task(f"t{i}", pool="p") for i in range(3)))
    bench.trigger("d", "r")
    found = pool_activity(bench.store, bench.scheduler, "p")
    assert [(one["task_id"], one["slots"]) for one in found["holders"]] == [("big", 2), ("t0", 1)]
    assert [(one["task_id"], one["place"]) for one in found["waiting"]] == [("t1", 1), ("t2", 2)]
    assert (found["used"], found["capacity"], found["holder_count"], found["waiting_count"]) == (3, 3, 2, 2)
    with pytest.raises(NotFound, match="'p'"):
        pool_activity(bench.store, bench.scheduler, "pp")


def test_without_a_scheduler_nothing_is_known(bench: Bench) -> None:
    assert activity(None)["answers"] is False
    assert pool_activity(bench.store, None, "default_pool")["answers"] is False
