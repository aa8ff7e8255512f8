"""Large runs: every transaction is bounded, and other runs do not wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.definition import CronSchedule, TaskDefinition
from tradewind.model.moments import DAY, MINUTE, SECOND
from tradewind.model.rows import Batch
from tradewind.model.states import RunState

BOUND = 2300
"""Rows of one commit with batch_max_rows 2000: a little is kept for what waits."""


@contextmanager
def measured(bench: Bench) -> Iterator[list[int]]:
    """Record the rows of each commit inside of this context, and check their bound at the end."""
    rows: list[int] = []
    count = len(bench.watched.commits)
    yield rows
    rows += [bench.watched.rows_of(batch) for batch in bench.watched.commits[count:]]
    assert max(rows) <= BOUND, sorted(rows)[-5:]


def wide(width: int, **more: object) -> list[TaskDefinition]:
    """Return a DAG of one task, `width` empty tasks after it, and one task after these."""
    middle = [task(f"m{i}", "first", empty=True, **more) for i in range(width)]
    return [task("first"), *middle, task("last", *(one.task_id for one in middle))]


def test_a_run_of_ten_thousand_tasks(make_bench: MakeBench) -> None:
    """Rows are created and verdicts applied in parts, and a small run ends in between."""
    bench = make_bench()
    bench.dag("huge", *wide(10_000))
    bench.dag("small", task("a"), task("b", "a"))
    seen: list[str] = []

    def note(batch: Batch) -> None:
        seen.extend("rows" for _ in batch.more_rows)
        small = bench.store.find_run("small", "s")
        if small is not None and any(write.run == small.id for write in batch.runs):
            seen.append("small")

    bench.watched.faults.append(note)
    with measured(bench):
        for dag_id, run_id in (("huge", "h"), ("small", "s")):  # both are there before anything is decided
            bench.commands.run(bench.ask_for("trigger", dag_id=dag_id, run_id=run_id))
            bench.scheduler.schedules.refresh(dag_id)
        bench.process()
        assert seen.index("small") < len(seen) - 1 - seen[::-1].index("rows"), "the small one did not wait"
        bench.finish("h.first")
        bench.finish("s.a", "s.b", "h.last")
    assert bench.run("h").state is bench.run("s").state is RunState.SUCCESS
    bench.check()


@pytest.mark.parametrize("how", ["timeout", "fail_fast", "short circuit"])
def test_sweeps_over_thousands_of_tasks_are_bounded(make_bench: MakeBench, how: str) -> None:
    bench = make_bench()
    bench.dag(
        "huge",
        task("other"),
        *(task(f"m{i}", "first") for i in range(4_000)),
        task("first"),
        fail_fast=how == "fail_fast",
        dagrun_timeout=MINUTE if how == "timeout" else None,
    )
    bench.trigger("huge", "h")
    bench.start("h.first", "h.other")
    with measured(bench) as rows:
        if how == "timeout":
            bench.pass_time(MINUTE + SECOND)
        elif how == "fail_fast":
            bench.fail("h.first")
        else:
            bench.branch("h.first", "stop")
            bench.finish("h.other")
    assert len([count for count in rows if count > 1000]) >= 3
    states = bench.states("h")
    assert {states[f"m{i}"] for i in range(4_000)} == {"skipped"}
    assert bench.run("h").state is (RunState.SUCCESS if how == "short circuit" else RunState.FAILED)
    bench.check()


@pytest.mark.parametrize("how", ["timeout", "fail_fast", "short circuit"])
def test_a_sweep_continues_after_a_restart(make_bench: MakeBench, how: str) -> None:
    """The scheduler dies after the first part. Tasks with rule `always` show the difference."""
    bench = make_bench(batch_max_rows=40)
    bench.dag(
        "d",
        task("first"),
        *(task(f"m{i:02}", "first", trigger_rule="all_done") for i in range(60)),
        *(task(f"n{i:02}", f"m{i:02}", trigger_rule="all_done") for i in range(60)),
        fail_fast=how == "fail_fast",
        dagrun_timeout=MINUTE if how == "timeout" else None,
    )
    bench.trigger("d", "r")
    bench.start("r.first")

    class Died(BaseException):
        pass

    parts = 0

    def die(batch: Batch) -> None:
        nonlocal parts
        parts += 1
        if parts == 2:
            raise Died

    bench.watched.faults.append(die)
    causes: dict[str, Callable[[], None]] = {
        "timeout": lambda: bench.pass_time(MINUTE + SECOND),
        "fail_fast": lambda: bench.fail("r.first"),
        "short circuit": lambda: bench.branch("r.first", "stop"),
    }
    with pytest.raises(Died):
        causes[how]()
    bench.watched.faults.clear()
    assert 0 < list(bench.states("r").values()).count("skipped") < 120
    bench.restart()
    states = bench.states("r")
    assert {state for name, state in states.items() if name != "first"} == {"skipped"}
    assert states["first"] == {"timeout": "skipped", "fail_fast": "failed", "short circuit": "success"}[how]
    assert bench.run("r").state is (RunState.FAILED if how == "timeout" else RunState.SUCCESS), "leaves decide"
    first = bench.snapshot("r").rows[0]
    assert not first.resume
    assert first.ended_at
    bench.check()


def test_many_runs_that_start_at_once_are_bounded(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", *(task(f"t{i}") for i in range(400)), max_active_runs=40, max_active_tasks=1000, paused=True)
    for number in range(40):
        bench.trigger("d", f"r{number}")
    with measured(bench):
        bench.command("set_pool", name="default_pool", slots=-1)
        bench.command("set_paused", dag_id="d", is_paused=False)
    assert len(bench.in_state("queued")) == 16_000
    bench.check()


def test_many_runs_that_are_created_at_once_are_bounded(make_bench: MakeBench) -> None:
    bench = make_bench()
    daily = CronSchedule(("0 0 * * *",), interval_kind="data")
    with measured(bench):
        bench.dag(
            "d",
            *(task(f"t{i}", empty=True) for i in range(500)),
            schedule=daily,
            start_date=NOW - 30 * DAY,
            catchup=True,
            max_active_runs=30,
        )
    assert list(bench.run_states("d").values()) == ["success"] * 30
    bench.check()


@pytest.mark.parametrize("how", ["timeout", "fail_fast"])
def test_nothing_is_admitted_during_a_sweep(make_bench: MakeBench, how: str) -> None:
    """The first part releases pool slots, and the next parts end tasks that wait for slots, except a teardown."""
    bench = make_bench(batch_max_rows=20)
    bench.pool("p", 2)
    bench.dag(
        "d",
        task("first", pool="p", is_setup=True, priority_weight=9),
        *(task(f"m{i:02}", pool="p") for i in range(40)),
        task("tidy", "first", pool="p", is_teardown=True),
        fail_fast=how == "fail_fast",
        dagrun_timeout=MINUTE if how == "timeout" else None,
    )
    bench.trigger("d", "r")
    bench.finish("r.first")
    bench.start("r.m00", "r.m01")
    submitted = len(bench.executor.submitted)
    if how == "timeout":
        bench.pass_time(MINUTE + SECOND)
    else:
        bench.fail("r.m00")
    begun = [work.task_id for work in bench.executor.submitted[submitted:]]
    assert begun == ([] if how == "timeout" else ["tidy"])
    assert not [row for row in bench.in_state("queued") if "tidy" not in row]
    bench.check()
