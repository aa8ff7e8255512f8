"""Tasks whose wait is known from their definition: they have no attempt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.kernel.admission import PARALLELISM
from tradewind.model.definition import TaskDefinition
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND
from tradewind.model.states import Outcome
from tradewind.model.wait_plans import MomentPlan, TasksPlan, WaitPlan
from tradewind.model.waits import MomentWait, TriggerEnd
from tradewind.scheduler.waits.wait_index import WaitResult

DATE = NOW - 100 * DAY
"""The logical date of `bench.trigger(…, day=0)`."""


def waiting(
    until: MomentPlan | TasksPlan, task_id: str = "t", *upstream: str, timeout: int = DAY, **more: Any
) -> TaskDefinition:
    soft = more.pop("soft_fail", False)
    return task(task_id, *upstream, wait=WaitPlan(until, timeout, soft), **more)


def one(bench: Bench, until: MomentPlan | TasksPlan, **more: Any) -> None:
    bench.dag("up", task("x"), task("y", "x"))
    bench.dag("d", waiting(until, **more), task("after", "t"))


def made(bench: Bench) -> list[str]:
    """Return the attempts of the waiting task."""
    return [work.task_id for work in bench.executor.submitted if work.task_id == "t"]


def test_a_planned_wait_for_another_dag_has_no_attempt(bench: Bench) -> None:
    one(bench, TasksPlan("up", task_ids=("x",)))
    bench.trigger("d", "r", day=0)
    assert bench.states("r") == {"t": "deferred", "after": "none"}
    assert (made(bench), bench.scheduler.admission.used(PARALLELISM)) == ([], 0)
    bench.restart()
    bench.trigger("up", "u", day=0)
    bench.finish("up/u.x")
    assert bench.states("r") == {"t": "success", "after": "queued"}
    assert made(bench) == []
    row = bench.snapshot("r").rows[0]
    assert (row.try_number, row.fence, bench.snapshot("r").deferrals) == (1, 1, [])
    bench.finish("r.after")
    assert bench.run("r").state.value == "success"
    bench.check()


@pytest.mark.parametrize(
    ("until", "at"),
    [
        (MomentPlan("epoch", NOW + HOUR), NOW + HOUR),
        (MomentPlan("start", 90 * SECOND), NOW + 90 * SECOND),
        (MomentPlan("midnight", 5 * HOUR), NOW + 5 * HOUR),
        (MomentPlan("midnight", 5 * HOUR, "Europe/Paris"), NOW + 4 * HOUR),
        (MomentPlan("midnight", 30 * MINUTE, "-03:00"), NOW - 24 * HOUR + 3 * HOUR + 30 * MINUTE),
        (MomentPlan("interval_end", 101 * DAY), NOW + DAY),
    ],
)
def test_a_planned_wait_for_a_moment(bench: Bench, until: MomentPlan, at: int) -> None:
    one(bench, until, timeout=10 * DAY)
    bench.trigger("d", "r", day=0)
    if at > NOW:
        assert bench.scheduler.waits.open[bench.run("r").id, 0].deferral.wait == MomentWait(at)
        bench.restart()
        bench.pass_time(at - NOW - 1)
        assert bench.states("r")["t"] == "deferred"
        bench.pass_time(1)
    assert bench.states("r") == {"t": "success", "after": "queued"}
    assert made(bench) == []
    bench.check()


def test_a_planned_wait_begins_after_upstream_tasks(bench: Bench) -> None:
    bench.dag("d", task("first"), waiting(MomentPlan("start", 60 * SECOND), "t", "first"))
    bench.trigger("d", "r")
    assert bench.states("r") == {"first": "queued", "t": "none"}
    bench.pass_time(MINUTE)
    bench.finish("r.first")
    assert bench.states("r")["t"] == "deferred"
    bench.pass_time(59 * SECOND)
    assert bench.states("r")["t"] == "deferred"
    bench.pass_time(SECOND)
    assert bench.run("r").state.value == "success"
    bench.check()


@pytest.mark.parametrize(("soft_fail", "state"), [(False, "failed"), (True, "skipped")])
def test_the_timeout_of_a_planned_wait_counts_from_its_beginning(bench: Bench, soft_fail: bool, state: str) -> None:
    one(bench, TasksPlan("up"), timeout=HOUR, soft_fail=soft_fail, retries=3)
    bench.trigger("d", "r", day=0)
    bench.restart()
    bench.pass_time(HOUR - 1)
    assert bench.states("r")["t"] == "deferred"
    bench.pass_time(1)
    assert bench.states("r")["t"] == state
    bench.check()


def test_a_failed_planned_wait_is_retried(bench: Bench) -> None:
    """Each try is a wait of its own, with a fence of its own."""
    one(bench, TasksPlan("up", failed=("failed",)), retries=1, retry_delay=MINUTE)
    bench.trigger("up", "u", day=0)
    bench.trigger("d", "r", day=0)
    bench.fail("up/u.x")
    assert bench.states("r")["t"] == "up_for_retry"
    bench.clear("up", "u")
    bench.next_timer()
    assert bench.states("r")["t"] == "deferred"
    row = bench.snapshot("r").rows[0]
    assert (row.try_number, row.fence) == (2, 2)
    bench.finish("up/u.x", "up/u.y")
    assert bench.states("r")["t"] == "success"
    bench.check()


def test_a_clear_begins_a_new_wait_under_a_new_fence(bench: Bench) -> None:
    one(bench, TasksPlan("up"))
    bench.trigger("d", "r", day=0)
    number = bench.run("r").id
    old = bench.scheduler.waits.open[number, 0].key
    bench.clear("d", "r", "t")
    new = bench.scheduler.waits.open[number, 0].key
    assert new[2] > old[2]
    bench.scheduler.push(WaitResult(*old, TriggerEnd(outcome=Outcome.SUCCESS)))
    bench.process()
    assert bench.states("r")["t"] == "deferred"
    bench.restart()
    bench.scheduler.push(WaitResult(*new, TriggerEnd(outcome=Outcome.SUCCESS)))
    bench.process()
    assert bench.states("r")["t"] == "success"
    bench.clear("d", "r", "t")
    assert bench.states("r")["t"] == "deferred"
    bench.check()


def test_without_a_logical_date_an_attempt_fails_with_the_reason(bench: Bench) -> None:
    one(bench, TasksPlan("up"))
    bench.trigger("d", "r", logical_date=None)
    assert bench.run("r").logical_date is None
    assert bench.states("r")["t"] == "queued"
    bench.check()


def test_a_task_with_a_planned_wait_can_be_run_by_hand(bench: Bench) -> None:
    """The task then gets an attempt, which checks the condition itself."""
    bench.dag("d", task("first"), waiting(MomentPlan("start", 60 * SECOND), "t", "first"))
    bench.trigger("d", "r", day=0)
    bench.command("run_task", dag_id="d", run_id="r", task_id="t", map_index=-1, ignore=["task"], force=True)
    assert bench.states("r")["t"] == "queued"
    bench.finish("r.t")
    bench.finish("r.first")
    assert bench.run("r").state.value == "success"
    bench.check()


def test_pools_and_limits_do_not_delay_a_planned_wait(bench: Bench) -> None:
    bench.pool("none", 0)
    one(bench, MomentPlan("start", MINUTE), pool="none", max_active_tis_per_dag=1)
    for name in ("r", "s"):
        bench.trigger("d", name)
    assert [bench.states(name)["t"] for name in ("r", "s")] == ["deferred", "deferred"]
    bench.check()


def test_ten_thousand_planned_waits_are_written_in_bounded_transactions(make_bench: MakeBench) -> None:
    bench = make_bench(batch_max_rows=100)
    bench.dag("up", task("x"))
    bench.dag("d", *(waiting(TasksPlan("up", task_ids=("x",)), f"t{n}") for n in range(500)))
    bench.trigger("d", "r", day=0)
    assert set(bench.states("r").values()) == {"deferred"}
    written = [bench.watched.rows_of(b) + sum(len(w.deferrals) for w in b.runs) for b in bench.watched.commits if b.runs]
    assert max(written) <= 110
    assert bench.executor.submitted == []
    bench.trigger("up", "u", day=0)
    bench.finish("up/u.x")
    assert bench.run("r").state.value == "success"
    bench.check()
