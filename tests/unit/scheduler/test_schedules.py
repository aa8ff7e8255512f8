"""Runs that schedules create: which, when, how many; and their previous runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler import bench as bench_module
from tests.unit.scheduler.bench import NOW, Bench, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind import timetables
from tradewind.model.definition import CronSchedule, OnceSchedule
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND, iso
from tradewind.model.rows import NewRun
from tradewind.model.states import Outcome, RunState, RunType
from tradewind.scheduler.dags import schedule
from tradewind.store.sql.store import SqlStore

DAILY = CronSchedule(("0 0 * * *",), interval_kind="data")
TICKS = CronSchedule(("0 * * * *",))


def next_of(bench: Bench, dag_id: str) -> tuple[Any, ...] | None:
    """Return the next run in the DAG's row."""
    store = bench.watched.inner
    assert isinstance(store, SqlStore)
    return store.engine.row(
        "SELECT next_logical_date, next_start, next_end, next_run_after FROM dag WHERE dag_id = ?", (dag_id,)
    )


@pytest.mark.spec("S244", "S247", "S466")
def test_without_catchup_only_the_latest_run_is_created(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - 50 * DAY)
    assert list(bench.run_states("d")) == ["scheduled__2026-01-01T00:00:00+00:00"], "named by the end of its data interval"
    bench.work()
    bench.pass_time(5 * DAY)
    bench.work()
    dates = [row.logical_date for row in bench.runs("d")]
    assert dates == [NOW - DAY, NOW, NOW + 4 * DAY], "after five days asleep: the one that was planned, and the latest"
    bench.clock.advance(5 * DAY)
    bench.restart()
    assert [row.logical_date for row in bench.runs("d")][3:] == [NOW + 9 * DAY]
    bench.check()


@pytest.mark.spec("S244", "S466")
def test_without_catchup_unpausing_creates_no_missed_runs(bench: Bench) -> None:
    bench.dag("d", task("a", empty=True), schedule=TICKS, start_date=NOW - DAY, paused=True)
    assert bench.runs("d") == []
    bench.pass_time(7 * HOUR + MINUTE)
    bench.command("set_paused", dag_id="d", is_paused=False)
    assert [row.logical_date for row in bench.runs("d")] == [NOW + 7 * HOUR]
    bench.next_timer()
    assert [row.logical_date for row in bench.runs("d")] == [NOW + 7 * HOUR, NOW + 8 * HOUR]
    bench.check()


@pytest.mark.spec("S245", "S247", "S252")
def test_catchup_creates_every_run_in_order_within_max_active_runs(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - 6 * DAY, catchup=True, max_active_runs=2)
    seen = []
    while running := [row for row in bench.runs("d") if row.state is RunState.RUNNING]:
        assert len(running) <= 2
        seen.append(running[0].logical_date)
        bench.finish(f"{running[0].run_id}.a")
    assert seen == [NOW - n * DAY for n in (6, 5, 4, 3, 2, 1)]
    assert {row.state for row in bench.runs("d")} == {RunState.SUCCESS}
    bench.check()


def test_the_next_run_is_stored_for_display(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - 3 * DAY, catchup=True, max_active_runs=1)
    assert next_of(bench, "d") == (NOW - 2 * DAY, NOW - 2 * DAY, NOW - DAY, NOW - DAY)
    bench.work()
    assert next_of(bench, "d") == (NOW, NOW, NOW + DAY, NOW + DAY)
    bench.dag("d", task("a"), schedule=TICKS, start_date=NOW - 3 * DAY, max_active_runs=1)
    assert next_of(bench, "d") == (NOW + HOUR, NOW + HOUR, NOW + HOUR, NOW + HOUR)
    bench.command("set_paused", dag_id="d", is_paused=True)
    assert next_of(bench, "d") == (None, None, None, None)


def test_a_new_scheduler_corrects_the_stored_next_run(bench: Bench) -> None:
    """The DAG was unpaused while no scheduler was running."""
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW + DAY, paused=True)
    bench.store.set_paused("d", False, "ann", NOW)
    bench.restart()
    assert next_of(bench, "d") == (NOW + DAY, NOW + DAY, NOW + 2 * DAY, NOW + 2 * DAY)
    bench.check()


@pytest.mark.spec("S246")
def test_schedule_once_creates_one_run(bench: Bench) -> None:
    bench.dag("d", task("a", empty=True), schedule=OnceSchedule(), start_date=NOW - DAY)
    for _ in range(3):
        bench.restart()
        bench.pass_time(DAY)
    assert [(row.run_id, row.state) for row in bench.runs("d")] == [("scheduled__2025-12-31T00:00:00+00:00", RunState.SUCCESS)]


@pytest.mark.spec("S251")
def test_a_run_with_a_later_run_after_waits(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r", run_after=NOW + HOUR)
    assert "Its run starts at" in bench.why("r.a")["run_after"]
    bench.trigger("d", "now")
    assert bench.run_states("d") == {"now": "running", "r": "queued"}
    bench.restart()
    bench.next_timer()
    assert bench.clock.wall() == NOW + HOUR
    assert bench.run_states("d")["r"] == "running"
    bench.check()


def test_a_manual_run_replaces_the_scheduled_run_of_its_date(bench: Bench) -> None:
    bench.dag("d", task("a", empty=True), schedule=TICKS, start_date=NOW - DAY)
    bench.command("trigger", dag_id="d", run_id="mine", logical_date=NOW + HOUR, run_after=NOW)
    bench.pass_time(HOUR)
    assert [(row.run_id, row.state) for row in bench.runs("d")][-1] == ("mine", RunState.SUCCESS)
    bench.pass_time(HOUR)
    assert bench.runs("d")[-1].logical_date == NOW + 2 * HOUR, "the schedule went on"
    bench.check()


def test_many_dags_due_at_once(make_bench: MakeBench) -> None:
    bench = make_bench(batch_max_rows=100)
    for number in range(60):
        bench.dag(f"d{number:02}", *(task(f"t{i}", empty=True) for i in range(10)), schedule=TICKS, start_date=NOW + HOUR)
    bench.watched.commits.clear()
    bench.next_timer()
    assert all([row.state.value for row in bench.runs(f"d{n:02}")] == ["success"] for n in range(60))
    assert max(bench.watched.rows_of(batch) for batch in bench.watched.commits) <= 200
    bench.check()


def test_a_broken_schedule_affects_only_its_dag(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = timetables.next_run

    def bad(schedule: Any, last: Any, bounds: Any, now: int) -> Any:
        if bounds.earliest == NOW - 7 * DAY:
            raise ZeroDivisionError("a calendar without days")
        return real(schedule, last, bounds, now)

    monkeypatch.setattr(schedule, "next_run", bad)
    bench.dag("bad", task("a"), schedule=DAILY, start_date=NOW - 7 * DAY)
    bench.dag("good", task("a"), schedule=DAILY, start_date=NOW - 5 * DAY)
    bench.restart()
    assert (len(bench.runs("bad")), len(bench.runs("good"))) == (0, 1)
    bench.trigger("bad", "by_hand")
    assert bench.run_states("bad") == {"by_hand": "running"}
    bench.check()


def test_a_dag_whose_examination_fails_is_examined_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.dag("bad", task("a"), schedule=TICKS, start_date=NOW)
    bench.dag("good", task("a"), schedule=TICKS, start_date=NOW)
    real = schedule.scheduled_run_id
    broken = True

    def bad(times: Any) -> str:
        if broken and bench_of_bad["dag"] == "bad":
            raise RuntimeError("no id")
        return real(times)

    bench_of_bad = {"dag": ""}
    take = schedule.take_due

    def noted(entry: Any, now: int, pending: int) -> Any:
        bench_of_bad["dag"] = entry.plan.dag_id
        return take(entry, now, pending)

    monkeypatch.setattr(schedule, "scheduled_run_id", bad)
    monkeypatch.setattr("tradewind.scheduler.dags.dag_registry.take_due", noted)
    bench.pass_time(HOUR)
    before = len(bench.runs("bad"))
    assert len(bench.runs("good")) == before + 1
    broken = False
    bench.pass_time(31 * SECOND)
    assert len(bench.runs("bad")) == before + 1
    bench.check()


# --- the past -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S283")
def test_depends_on_past_waits_for_the_previous_run(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True), task("b", "a"))
    bench.trigger("d", "r1", day=1)
    bench.trigger("d", "r2", day=2)
    bench.trigger("d", "r3", day=3)
    assert [bench.states(r)["a"] for r in ("r1", "r2", "r3")] == ["queued", "none", "none"]
    assert "a is queued in the previous run r1" in bench.why("r2.a")["past"]
    bench.finish("r1.a")
    assert [bench.states(r)["a"] for r in ("r1", "r2", "r3")] == ["success", "queued", "none"]
    bench.restart()
    bench.finish("r2.a", outcome=Outcome.SKIPPED)
    assert bench.states("r3")["a"] == "queued"
    bench.check()


def test_a_failed_previous_run_blocks_until_it_is_cleared(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True))
    bench.trigger("d", "r1", day=1)
    bench.fail("r1.a")
    bench.trigger("d", "r2", day=2)
    assert "a is failed in the previous run r1" in bench.why("r2.a")["past"]
    assert bench.run("r2").state is RunState.RUNNING
    bench.clear("d", "r1", "a")
    assert "a is queued" in bench.why("r2.a")["past"]
    bench.finish("r1.a")
    assert bench.states("r2")["a"] == "queued"
    bench.check()


def test_a_cleared_previous_run_blocks_again(bench: Bench) -> None:
    bench.pool("p", 1)
    bench.dag("d", task("x", pool="p"), task("a", "x", depends_on_past=True, pool="p"))
    bench.trigger("d", "r1", day=1)
    bench.work()
    bench.trigger("d", "r2", day=2)
    bench.start("r2.x")
    bench.clear("d", "r1", "a")
    bench.finish("r2.x")
    assert bench.states("r2")["a"] == "none"
    assert bench.states("r1")["a"] == "queued"
    bench.finish("r1.a")
    assert bench.states("r2")["a"] == "queued"
    bench.check()


def test_a_previous_run_that_is_created_later_blocks_too(bench: Bench) -> None:
    bench.dag("d", task("x"), task("a", "x", depends_on_past=True))
    bench.trigger("d", "r1", day=1)
    bench.work()
    bench.trigger("d", "r3", day=3)
    bench.start("r3.x")
    bench.trigger("d", "r2", day=2, run_after=NOW + DAY)
    bench.finish("r3.x")
    assert "a is none in the previous run r2" in bench.why("r3.a")["past"]
    bench.restart()
    assert bench.states("r3")["a"] == "none"
    bench.pass_time(DAY)
    bench.finish("r2.x", "r2.a")
    assert bench.states("r3")["a"] == "queued"
    bench.check()


def test_wait_for_downstream_waits_for_downstream_tasks_of_the_previous_run(bench: Bench) -> None:
    bench.dag("d", task("a", wait_for_downstream=True, depends_on_past=True), task("b", "a"))
    bench.trigger("d", "r1", day=1)
    bench.trigger("d", "r2", day=2)
    bench.finish("r1.a")
    sentence = "wait_for_downstream: b is queued in the previous run r1. See: tradewind why d b --run-id r1"
    assert bench.why("r2.a")["past"] == sentence
    bench.finish("r1.b")
    assert bench.states("r2")["a"] == "queued"
    bench.check()


def test_with_catchup_manual_runs_are_no_previous_runs(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True), schedule=DAILY, start_date=NOW - 2 * DAY, catchup=True, max_active_runs=9)
    scheduled = [row.run_id for row in bench.runs("d")]
    bench.trigger("d", "by_hand", logical_date=NOW - 2 * DAY + HOUR)
    bench.finish(f"{scheduled[0]}.a")
    assert bench.states(scheduled[1])["a"] == "queued"
    assert bench_module.NOW == NOW
    bench.check()


def test_an_idle_run_gives_its_run_slot_to_its_previous_run(bench: Bench) -> None:
    """With max_active_runs=1 the newer run holds the run slot that the cleared older run needs."""
    bench.dag("d", task("a", depends_on_past=True, retries=1, retry_delay=0), max_active_runs=1)
    bench.trigger("d", "r1", day=1)
    bench.fail("r1.a", "r1.a")
    bench.trigger("d", "r2", day=2)
    bench.trigger("d", "r3", day=3)
    assert bench.run_states("d") == {"r1": "failed", "r2": "running", "r3": "queued"}
    bench.clear("d", "r1")
    assert bench.run_states("d") == {"r1": "running", "r2": "queued", "r3": "queued"}
    assert bench.run("r2").ended_at is None
    bench.check()
    bench.restart()
    bench.finish("r1.a")
    bench.work()
    assert set(bench.run_states("d").values()) == {"success"}
    bench.check()


def test_a_run_slot_is_freed_when_the_previous_run_is_due(bench: Bench) -> None:
    tail = task("b", "a", depends_on_past=True)
    bench.dag("d", task("x"), task("a", "x", depends_on_past=True), tail, max_active_runs=1)
    bench.trigger("d", "r0", day=0)
    bench.work()
    bench.trigger("d", "r2", day=2)
    bench.trigger("d", "r1", day=1, run_after=NOW + HOUR)
    bench.finish("r2.x")
    assert bench.run_states("d") == {"r0": "success", "r2": "running", "r1": "queued"}
    bench.next_timer()
    assert bench.clock.wall() == NOW + HOUR
    assert bench.run_states("d")["r1"] == "running"
    bench.work()
    assert set(bench.run_states("d").values()) == {"success"}
    bench.check()


def test_a_run_slot_is_freed_when_an_earlier_run_is_due(bench: Bench) -> None:
    """The run that is waited for is not the first of the queue."""
    bench.dag("d", task("x"), task("a", "x", depends_on_past=True), max_active_runs=1)
    bench.trigger("d", "r0", day=0)
    bench.work()
    bench.trigger("d", "r2", day=2)
    bench.trigger("d", "r3", day=3)
    bench.trigger("d", "r1", day=1, run_after=NOW + HOUR)
    bench.finish("r2.x")
    bench.next_timer()
    assert bench.clock.wall() == NOW + HOUR
    assert bench.run_states("d") == {"r0": "success", "r1": "running", "r2": "queued", "r3": "queued"}
    bench.work()
    assert set(bench.run_states("d").values()) == {"success"}
    bench.check()


def test_an_idle_run_frees_its_run_slot_for_a_run_further_back(bench: Bench) -> None:
    """r3 waits for r2, which waits for r1, which is queued: r4 does not block it."""
    bench.dag("d", task("x"), task("a", "x", depends_on_past=True), max_active_runs=2)
    bench.trigger("d", "r1", day=1)
    bench.fail("r1.x")
    bench.trigger("d", "r2", day=2)
    bench.trigger("d", "r3", day=3)
    bench.trigger("d", "r4", day=4)
    bench.finish("r2.x", "r3.x")
    bench.clear("d", "r1")
    assert bench.run_states("d") == {"r1": "running", "r2": "running", "r3": "queued", "r4": "queued"}
    bench.work()
    assert set(bench.run_states("d").values()) == {"success"}
    bench.check()


def test_after_a_deletion_the_run_before_is_the_previous_run(bench: Bench) -> None:
    bench.dag("d", task("x"), task("a", "x", depends_on_past=True), max_active_runs=9)
    bench.trigger("d", "r1", day=1)
    bench.trigger("d", "r2", day=2)
    bench.finish("r2.x")
    bench.command("mark", dag_id="d", run_id="r2", task_ids=["a"], state="success")
    bench.trigger("d", "r3", day=3)
    assert bench.run_states("d") == {"r1": "running", "r2": "success", "r3": "running"}
    bench.clock.advance(HOUR)
    bench.command("retire", before=bench.clock.wall())
    assert bench.run_states("d") == {"r1": "running", "r3": "running"}
    bench.finish("r3.x")
    assert bench.states("r3")["a"] == "none"
    assert "a is none in the previous run r1" in bench.why("r3.a")["past"]
    bench.work()
    assert set(bench.run_states("d").values()) == {"success"}
    bench.check()


def test_the_position_of_a_schedule_never_goes_back(make_bench: MakeBench) -> None:
    """Positions are written a few at a time; an older one must not be written after a newer run was created."""
    bench = make_bench(batch_max_rows=10)
    for number in range(30):
        bench.dag(f"d{number:02}", task("a", empty=True), schedule=CronSchedule(("0 * * * *",)), start_date=NOW + HOUR)
    bench.clock.advance(2 * HOUR)
    bench.restart()
    for plan in bench.store.plans():
        assert plan.last is not None
        assert plan.last == bench.scheduler.dags[plan.dag_id].plan.last


def test_a_scheduled_run_is_named_by_the_moment_from_which_it_may_start(bench: Bench) -> None:
    """Expected ids: Airflow 3.3.2."""
    bench.dag("data", task("a"), schedule=DAILY, start_date=NOW - DAY)
    bench.dag("tick", task("a"), schedule=CronSchedule(("0 0 * * *",)), start_date=NOW)
    bench.dag("once", task("a"), schedule=OnceSchedule(), start_date=NOW)
    named = ["scheduled__2026-01-01T00:00:00+00:00"]
    assert [list(bench.run_states(dag)) for dag in ("data", "tick", "once")] == [named, named, named]


def test_no_run_is_repeated_that_was_named_by_its_logical_date(bench: Bench) -> None:
    """Imported runs of Airflow 2 and runs of earlier versions are named so."""
    bench.dag("d", task("a", empty=True), schedule=DAILY, start_date=NOW - 3 * DAY, catchup=True, paused=True)
    version = bench.store.need_dag("d").version
    for days in (3, 2):
        date = NOW - days * DAY
        name = f"scheduled__{iso(date)}".replace("Z", "+00:00")
        bench.store.create_run(NewRun("d", name, RunType.SCHEDULED, version, date, date, date + DAY, date + DAY, NOW, "test"))
    bench.restart()
    bench.command("set_paused", dag_id="d", is_paused=False)
    bench.work()
    assert sorted((row.logical_date, row.run_id) for row in bench.runs("d")) == [
        (NOW - 3 * DAY, "scheduled__2025-12-29T00:00:00+00:00"),
        (NOW - 2 * DAY, "scheduled__2025-12-30T00:00:00+00:00"),
        (NOW - DAY, "scheduled__2026-01-01T00:00:00+00:00"),
    ]
