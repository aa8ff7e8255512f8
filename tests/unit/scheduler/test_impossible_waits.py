"""Waits that can never end: which are reported, and which are not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tests.unit.scheduler.test_planned_waits import waiting
from tradewind.model.definition import CronSchedule, GroupDefinition, TaskDefinition
from tradewind.model.moments import DAY, HOUR
from tradewind.model.wait_plans import MomentPlan, TasksPlan
from tradewind.scheduler.waits.impossible_wait_reporter import ImpossibleWaitReporter
from tradewind.scheduler.waits.impossible_waits import why_impossible
from tradewind.scheduler.waits.listing import list_waits
from tradewind.wire.explanations import OpenWaitView

DATE = NOW - 100 * DAY
DAILY = CronSchedule(("0 0 * * *",))


def waits(bench: Bench, until: TasksPlan, dag_id: str = "d", run_id: str = "r") -> None:
    """Return a task that waits for this, in the run of DATE."""
    bench.dag(dag_id, waiting(until), task("after", "t"))
    bench.trigger(dag_id, run_id, day=0)


def said(bench: Bench, dag_id: str = "d") -> list[tuple[str, str]]:
    """Return (rule, sentence) of the impossible waits in the listing."""
    (one,) = list_waits(bench.store, bench.clock.wall(), dag_id=dag_id)
    return [(why.rule, why.sentence) for why in one.impossible]


def up(bench: Bench, *tasks: TaskDefinition, **more: Any) -> None:
    bench.dag(
        "up", *(tasks or (task("x"), task("y", "x"))), **{"schedule": DAILY, "start_date": DATE - DAY, "catchup": True, **more}
    )


def test_a_wait_that_may_still_end_is_not_reported(bench: Bench) -> None:
    bench.dag("up", task("x"), schedule=DAILY, start_date=NOW, catchup=True)
    bench.dag("d", waiting(TasksPlan("up", -101 * DAY)))  # tomorrow's run
    bench.trigger("d", "r", day=0)
    assert said(bench) == []


def test_a_wait_for_a_running_task_is_not_reported(bench: Bench) -> None:
    up(bench, schedule=CronSchedule(("0 0 1 1 *",)))
    bench.trigger("up", "u", day=0)
    waits(bench, TasksPlan("up", task_ids=("y",)))
    assert said(bench) == []


@pytest.mark.parametrize(
    ("prepare", "until", "rule", "words"),
    [
        (lambda b: None, TasksPlan("upp"), "waits_for_nothing", "There is no DAG 'upp'. Did you mean 'up'?"),
        (lambda b: None, TasksPlan("up", HOUR), "waits_for_no_run", "is no logical date of its schedule"),
        (lambda b: None, TasksPlan("up", 10 * DAY), "waits_for_no_run", "is before the DAG's start_date"),
        (
            lambda b: up(b, end_date=DATE - 2 * DAY, start_date=DATE - 9 * DAY),
            TasksPlan("up"),
            "waits_for_no_run",
            "is after the DAG's end_date",
        ),
        (lambda b: up(b, catchup=False, start_date=DATE - DAY), TasksPlan("up"), "waits_for_no_run", "catchup is off"),
        (lambda b: b.dag("up", task("x")), TasksPlan("up"), "waits_for_no_run", "its schedule has no fixed dates"),
        (
            lambda b: b.command("set_paused", dag_id="up", is_paused=True),
            TasksPlan("up", 10 * DAY),
            "waits_for_paused",
            "DAG 'up', which it waits for, is paused: it has no run of",
        ),
    ],
)
def test_a_wait_for_a_run_that_no_schedule_creates(bench: Bench, prepare: Any, until: TasksPlan, rule: str, words: str) -> None:
    up(bench, max_active_runs=1)
    prepare(bench)
    bench.dag("d", waiting(until))
    bench.trigger("d", "r", day=0)
    found = said(bench)
    assert (rule, True) in [(one, words in sentence) for one, sentence in found], found


def test_a_dag_that_is_not_in_the_dag_folder(bench: Bench) -> None:
    up(bench, schedule=CronSchedule(("0 0 1 1 *",)))
    waits(bench, TasksPlan("up", 10 * DAY))
    bench.command("forget_files", bundle="dags", files=["up.py"])
    assert said(bench)[0][0] == "waits_for_nothing"
    assert "DAG 'up' is not in the DAG folder any more (it was in up.py), and has no run of" in said(bench)[0][1]


def test_waits_for_missing_tasks_and_groups(bench: Bench) -> None:
    up(bench, task("x"), schedule=CronSchedule(("0 0 1 1 *",)), groups=(GroupDefinition("load"),))
    bench.trigger("up", "u", day=0)
    waits(bench, TasksPlan("up", task_ids=("xx",)))
    assert "has no task 'xx'. Did you mean 'x'?" in said(bench)[0][1]
    waits(bench, TasksPlan("up", group="laod"), "e", "s")
    assert "has no task group 'laod'. Did you mean 'load'?" in said(bench, "e")[0][1]
    waits(bench, TasksPlan("up", group="load"), "f", "s")
    assert "has no tasks" in said(bench, "f")[0][1]


def test_a_wait_for_something_that_ended_in_another_state(bench: Bench) -> None:
    up(bench, task("x"), schedule=CronSchedule(("0 0 1 1 *",)))
    bench.trigger("up", "u", day=0)
    waits(bench, TasksPlan("up", task_ids=("x",)))
    waits(bench, TasksPlan("up"), "e", "s")
    assert said(bench) == []
    bench.fail("up/u.x")
    assert said(bench) == [("waits_for_other_end", "up.x in 'u' is failed already; only success ends the wait.")]
    assert said(bench, "e") == [("waits_for_other_end", "Run 'u' of DAG 'up' is failed already; only success ends the wait.")]
    answer = {one["rule"]: one for one in bench.why_answer("r.t")["blockers"]}
    assert answer["waits_for_other_end"]["command"] == "tradewind tasks clear up --run-id u -t '^x$'"
    assert answer["deferred"]["sentence"].startswith("It waits without a process until 'x' of DAG 'up' is success")
    bench.clear("up", "u")
    assert said(bench) == []


def test_circles_over_several_dags_and_through_dependencies(bench: Bench) -> None:
    """a.t waits for b.end, before which b.w waits for run c, in which c.z waits for a.after, which comes after a.t."""
    bench.dag("a", waiting(TasksPlan("b", task_ids=("end",))), task("after", "t"))
    bench.dag("b", waiting(TasksPlan("c"), "w"), task("middle", "w"), task("end", "middle"))
    bench.dag("c", waiting(TasksPlan("a", task_ids=("after",)), "z"))
    bench.trigger("a", "ra", day=0)
    bench.trigger("b", "rb", day=0)
    assert "circle" not in str(said(bench, "a"))
    bench.trigger("c", "rc", day=0)
    circle = "a.t in 'ra' → b.w in 'rb' → c.z in 'rc' → a.t in 'ra'"
    assert (
        "waits_in_a_circle",
        f"It waits in a circle, in which each task instance waits for the next one: {circle}.",
    ) in said(bench, "a")
    assert "b.w in 'rb' → c.z in 'rc' → a.t in 'ra' → b.w in 'rb'" in str(said(bench, "b"))


def test_a_wait_for_the_own_run_is_a_circle(bench: Bench) -> None:
    waits(bench, TasksPlan("d"))
    assert "d.t in 'r' → d.t in 'r'" in str(said(bench))


def test_a_wait_for_an_upstream_task_is_no_circle(bench: Bench) -> None:
    bench.dag("d", task("first"), waiting(TasksPlan("d", task_ids=("first",))))
    bench.dag("e", task("first"), waiting(TasksPlan("d", task_ids=("first",))))
    bench.trigger("e", "s", day=0)
    bench.trigger("d", "r", day=0)
    assert said(bench, "e") == []


def test_the_listing_has_every_kind_of_wait_and_nothing_else(bench: Bench) -> None:
    waits(bench, TasksPlan("nowhere"))
    bench.dag("m", waiting(MomentPlan("start", HOUR), timeout=DAY))
    bench.trigger("m", "q")
    rows = {one.dag_id: one for one in list_waits(bench.store, bench.clock.wall())}
    assert rows["m"] == OpenWaitView(
        dag_id="m",
        run_id="q",
        task_id="t",
        map_index=-1,
        since="2026-01-01T00:00:00Z",
        kind="moment",
        waits_for="2026-01-01T01:00:00Z",
        until="2026-01-01T01:00:00Z",
        timeout_at="2026-01-02T00:00:00Z",
        impossible=[],
    )
    assert rows["d"].waits_for == "DAG 'nowhere' to be success (2025-09-23T00:00:00Z)"
    assert [one.dag_id for one in list_waits(bench.store, bench.clock.wall(), impossible_only=True)] == ["d"]
    assert len(list_waits(bench.store, bench.clock.wall(), limit=1, offset=1)) == 1
    bench.pass_time(HOUR)
    assert [one.dag_id for one in list_waits(bench.store, bench.clock.wall())] == ["d"]


def test_each_impossible_wait_is_reported_once(bench: Bench) -> None:
    waits(bench, TasksPlan("nowhere"))
    bench.notices.clear()
    watch = ImpossibleWaitReporter(bench.store, bench.scheduler.waits, bench.notices.append)
    for _ in range(4):
        watch.report(bench.scheduler.active_runs_by_id, bench.clock.wall())
    (notice,) = bench.notices
    assert (notice.kind, notice.dag_id, notice.task_id, notice.state) == ("wait", "d", "t", "impossible")
    assert "There is no DAG 'nowhere'" in notice.text
    bench.clear("d", "r", "t")
    for _ in range(3):
        watch.report(bench.scheduler.active_runs_by_id, bench.clock.wall())
    assert len([one for one in bench.notices if one.kind == "wait"]) == 2, "it is another wait"
    assert bench.states("r")["t"] == "deferred", "nothing fails because of it"


def test_a_thousand_waits_are_examined_in_bounded_time(bench: Bench) -> None:
    """Only reads, and a bounded number of waits per call."""
    bench.dag("d", *(waiting(TasksPlan("nowhere"), f"t{n}") for n in range(120)))
    bench.trigger("d", "r", day=0)
    bench.notices.clear()
    watch = ImpossibleWaitReporter(bench.store, bench.scheduler.waits, bench.notices.append)
    watch.report(bench.scheduler.active_runs_by_id, bench.clock.wall())
    assert len(bench.notices) == 50
    for _ in range(3):
        watch.report(bench.scheduler.active_runs_by_id, bench.clock.wall())
    assert len(bench.notices) == 120


def test_waits_are_listed_without_a_scheduler(bench: Bench) -> None:
    waits(bench, TasksPlan("nowhere"))
    run = bench.run("r")
    wait = bench.scheduler.waits.open[run.id, 0].deferral.wait
    assert [one.by_hand for one in why_impossible(bench.store, run, 0, (wait,), NOW)] == [True]  # type: ignore[arg-type]
