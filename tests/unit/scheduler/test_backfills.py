"""Backfills: their plans, order and limits, what they do with existing runs, and their end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tradewind.model.definition import CronSchedule, NoSchedule
from tradewind.model.errors import Conflict, NotFound, RunTypeNotAllowed, WrongBackfill
from tradewind.model.moments import DAY, HOUR
from tradewind.model.partitions import CronPartition
from tradewind.model.rows import DEADLINE, BackfillOutcome, NewRun
from tradewind.model.states import RunState, RunType

DAILY = CronSchedule(("0 0 * * *",), interval_kind="data")


@pytest.fixture
def daily(bench: Bench) -> Bench:
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - 30 * DAY, max_active_runs=1)
    bench.work()
    return bench


def create(bench: Bench, days: int = 5, **args: Any) -> int:
    """Create a backfill of so many days that ended five days ago, and return its number."""
    first, last = NOW - (5 + days - 1) * DAY, NOW - 5 * DAY
    number: int = bench.command("create_backfill", dag_id="d", from_date=first, to_date=last, **args)["backfill"]["id"]
    return number


def made(bench: Bench) -> list[int]:
    """Return how many days ago the runs of the backfill lie, in the order of their creation."""
    rows = sorted((row for row in bench.runs("d") if row.run_type is RunType.BACKFILL), key=lambda row: row.id)
    return [(NOW - (row.logical_date or 0)) // DAY for row in rows]


def running(bench: Bench) -> list[str]:
    return [row.run_id for row in bench.runs("d") if row.state is RunState.RUNNING]


@pytest.mark.spec("S204", "S253")
def test_a_backfill_creates_runs_in_order_beside_the_schedule(daily: Bench) -> None:
    daily.trigger("d", "by-hand")
    assert running(daily) == ["by-hand"], "the only place of max_active_runs is taken"
    number = create(daily, max_active_runs=2)
    assert made(daily) == [9, 8]
    assert len(running(daily)) == 3
    first = running(daily)[0]
    daily.finish(f"{first}.a")
    assert made(daily) == [9, 8, 7]
    daily.work()
    assert made(daily) == [9, 8, 7, 6, 5]
    row = daily.store.backfill(number)
    assert row is not None
    assert (row.handled, row.planned, row.completed_at is not None) == (5, 5, True)
    assert [one.outcome for one in daily.store.backfill_outcomes(number)] == ["new"] * 5
    assert {row.state for row in daily.runs("d")} == {RunState.SUCCESS}
    assert all(row.triggered_by == "backfill" for row in daily.runs("d") if row.run_type is RunType.BACKFILL)
    daily.check()


def test_a_backfill_can_run_backwards(daily: Bench) -> None:
    create(daily, run_backwards=True, max_active_runs=1)
    daily.work()
    assert made(daily) == [5, 6, 7, 8, 9]


def test_a_backfill_continues_after_a_restart(daily: Bench) -> None:
    number = create(daily, max_active_runs=2)
    daily.restart()
    daily.finish(f"{running(daily)[0]}.a")
    daily.restart()
    daily.work()
    assert made(daily) == [9, 8, 7, 6, 5]
    assert daily.store.backfills("d") == []
    assert daily.store.backfill(number) is not None


@pytest.mark.parametrize(
    ("behavior", "outcomes"),
    [
        ("none", ["new", "skipped: its run exists (failed)", "skipped: its run exists (success)", "new"]),
        ("failed", ["new", "rerun", "skipped: its run exists (success)", "new"]),
        ("completed", ["new", "rerun", "rerun", "new"]),
    ],
)
def test_reprocess_behavior_of_existing_runs(daily: Bench, behavior: str, outcomes: list[str]) -> None:
    for name, days in (("bad", 7), ("good", 6)):
        daily.command("trigger", dag_id="d", run_id=name, logical_date=NOW - days * DAY)
        if name == "bad":
            daily.fail("bad.a")
        daily.work()
    args: dict[str, Any] = {
        "dag_id": "d",
        "from_date": NOW - 8 * DAY,
        "to_date": NOW - 5 * DAY,
        "reprocess_behavior": behavior,
    }
    plan = daily.command("create_backfill", **args, dry_run=True)["plan"]
    assert [turn["outcome"] for turn in plan] == outcomes
    assert daily.store.backfills("d", active=False) == []
    number = daily.command("create_backfill", **args)["backfill"]["id"]
    daily.work()
    assert [one.outcome for one in daily.store.backfill_outcomes(number)] == outcomes
    bad = daily.run("bad")
    again = outcomes[1] == "rerun"
    assert bad.state is (RunState.SUCCESS if again else RunState.FAILED)
    assert bad.run_type is (RunType.BACKFILL if again else RunType.MANUAL)
    daily.check()


def test_a_backfill_skips_active_runs(daily: Bench) -> None:
    daily.command("trigger", dag_id="d", run_id="live", logical_date=NOW - 6 * DAY)
    number = create(daily, days=2, reprocess_behavior="completed")
    daily.work()
    outcomes = daily.store.backfill_outcomes(number)
    assert outcomes[0][2:4] == ("live", "skipped: its run is queued or running")


def test_a_paused_backfill_creates_no_runs_until_it_is_unpaused(daily: Bench) -> None:
    number = create(daily, max_active_runs=1)
    assert daily.command("pause_backfill", backfill=number, is_paused=True)["changed"]
    assert not daily.command("pause_backfill", backfill=number, is_paused=True)["changed"]
    daily.work()
    assert made(daily) == [9]
    daily.command("pause_backfill", backfill=number, is_paused=False)
    daily.work()
    assert made(daily) == [9, 8, 7, 6, 5]


def test_a_cancelled_backfill_creates_no_runs_and_running_ones_end(daily: Bench) -> None:
    number = create(daily, max_active_runs=2)
    daily.command("cancel_backfill", backfill=number)
    daily.work()
    assert made(daily) == [9, 8]
    assert all(row.state is RunState.SUCCESS for row in daily.runs("d"))
    with pytest.raises(Conflict, match="ended already"):
        daily.command("cancel_backfill", backfill=number)
    with pytest.raises(NotFound):
        daily.command("pause_backfill", backfill=99, is_paused=True)


def test_a_paused_dag_is_not_backfilled_before_it_is_unpaused(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - 30 * DAY, paused=True)
    create(bench)
    assert made(bench) == []
    bench.command("set_paused", dag_id="d", is_paused=False)
    bench.work()
    assert made(bench) == [9, 8, 7, 6, 5]


def test_a_dag_has_one_backfill_at_a_time(daily: Bench) -> None:
    create(daily)
    with pytest.raises(Conflict, match="already has the active backfill"):
        create(daily)


def test_the_plan_keeps_to_the_dags_own_dates(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - 7 * DAY, paused=True)
    answer = bench.command("create_backfill", dag_id="d", from_date=NOW - 90 * DAY, to_date=NOW - 5 * DAY, dry_run=True)
    assert len(answer["plan"]) == 3


def test_impossible_backfills_are_refused(bench: Bench) -> None:
    bench.dag("none", task("a"), schedule=NoSchedule())
    bench.dag("past", task("a", depends_on_past=True), schedule=DAILY, paused=True)
    day: dict[str, Any] = {"from_date": NOW - DAY, "to_date": NOW - DAY}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"dag_id": "none", **day}, "no runs to backfill"),
        ({"dag_id": "past", **day, "run_backwards": True}, "cannot be made backwards"),
        ({"dag_id": "past", **day}, "Choose which existing runs are run again"),
        ({"dag_id": "past", "from_date": NOW, "to_date": NOW + DAY}, "in the future"),
        ({"dag_id": "past", "from_date": NOW, "to_date": NOW - DAY}, "is later than"),
        ({"dag_id": "past", **day, "reprocess_behavior": "faild"}, "'failed'"),
        ({"dag_id": "past", **day, "reprocess_behavior": "failed", "max_active_runs": -1}, "at least 1"),
        (
            {"dag_id": "past", "from_date": NOW - DAY + HOUR, "to_date": NOW - DAY + 2 * HOUR, "reprocess_behavior": "failed"},
            "has no run between",
        ),
    ]
    for args, words in refused:
        with pytest.raises(Conflict, match=words):
            bench.command("create_backfill", **args)
    for accepted in ({"reprocess_behavior": "failed"}, {"reprocess_behavior": "completed"}, {"accepts_depends_on_past": True}):
        assert len(bench.command("create_backfill", dag_id="past", **day, **accepted, dry_run=True)["plan"]) == 1


def test_a_planned_run_is_handled_once(daily: Bench) -> None:
    number = create(daily, max_active_runs=1)
    with pytest.raises(Conflict, match="is not the next run"):
        daily.store.record_backfill_outcome(number, BackfillOutcome(1, NOW, None, "new"))


def test_why_says_that_the_backfill_is_paused(daily: Bench) -> None:
    create(daily, days=2, max_active_runs=1)
    daily.work()
    first = next(row for row in daily.runs("d") if row.run_type is RunType.BACKFILL)
    again = create(daily, days=5, max_active_runs=1)
    daily.command("pause_backfill", backfill=again, is_paused=True)
    daily.clear("d", first.run_id, "a")
    assert "backfill_paused" in daily.why(f"{first.run_id}.a")


@pytest.mark.spec("S194")
def test_the_ids_of_backfilled_runs_are_airflows(daily: Bench) -> None:
    create(daily, days=1)
    assert "backfill__2025-12-28T00:00:00+00:00" in daily.run_states("d"), "named by the end of its data interval"


def test_a_superseded_scheduler_advances_no_backfill(daily: Bench) -> None:
    number = create(daily, days=3, max_active_runs=1)
    older = daily.scheduler
    assert made(daily) == [7]
    daily.scheduler = daily._begin()
    daily.finish(f"{running(daily)[0]}.a")
    assert made(daily) == [7, 6]
    older.schedules._backfilled["d"] = None
    older.process()
    assert older.superseded
    assert made(daily) == [7, 6]
    row = daily.store.backfill(number)
    assert row is not None
    assert row.handled == 2


@pytest.mark.parametrize("command", ["cancel_backfill", "pause_backfill"])
def test_an_unreported_change_of_a_backfill_counts(daily: Bench, command: str) -> None:
    number = create(daily, days=3, max_active_runs=1)
    first = running(daily)[0]
    args = {"is_paused": True} if command == "pause_backfill" else {}
    result, _ = daily.commands.run(daily.ask_for(command, backfill=number, **args))
    assert result.error is None
    daily.scheduler.schedules._backfilled["d"] = None
    daily.scheduler.process()
    backfill = daily.scheduler.dags["d"].backfill
    assert backfill is None or backfill.is_paused
    if first in running(daily):
        daily.finish(f"{first}.a")
    assert len(made(daily)) == 1
    assert daily.scheduler.quarantine.failures(("backfill", "d")) == 0


def test_a_run_that_a_backfill_runs_again_has_no_sla(bench: Bench) -> None:
    """Its sla counts from its scheduled time, so it would be late at once. Found by the simulation (seed 451)."""
    slow = msgspec.structs.replace(task("a"), sla=HOUR)
    bench.dag("d", slow, slas=(HOUR,), schedule=DAILY, start_date=NOW - 30 * DAY)
    version, day = bench.store.need_dag("d").version, NOW - 5 * DAY
    bench.store.create_run(NewRun("d", "r1", RunType.SCHEDULED, version, day, day, day + DAY, day + DAY, day + DAY, "test"))
    (sla,) = bench.store.due_outbox_items(NOW, only=DEADLINE)
    bench.store.delete_outbox_item(sla.id)
    bench.scheduler.schedules.refresh("d")
    bench.work()
    create(bench, days=1, reprocess_behavior="completed")
    assert bench.run("r1").run_type is RunType.BACKFILL
    assert bench.store.due_outbox_items(NOW, only=DEADLINE) == []


@pytest.mark.parametrize("kind", ["backfill", "scheduled"])
def test_runs_that_are_named_by_their_logical_date_are_neither_repeated_nor_in_the_way(daily: Bench, kind: str) -> None:
    """Runs of Airflow 2, and those of earlier versions, have the name that the run of the day before gets now."""
    version = daily.store.need_dag("d").version
    day = NOW - 5 * DAY
    text = "2025-12-27T00:00:00+00:00"
    daily.store.create_run(
        NewRun("d", f"{kind}__{text}", RunType(kind), version, day, day, day + DAY, day + DAY, day + DAY, "test")
    )
    create(daily, days=2, reprocess_behavior="none")
    daily.work()
    found = {row.run_id: row.logical_date for row in daily.runs("d") if row.logical_date in (day, day - DAY)}
    before = f"backfill__{text}__2" if kind == "backfill" else f"backfill__{text}"
    assert found == {f"{kind}__{text}": day, before: day - DAY}


# --- partitions ---------------------------------------------------------------------------------------------------------


def partitions(bench: Bench) -> list[tuple[str, str | None, int | None, str]]:
    rows = [row for row in bench.runs("p") if row.run_type is RunType.BACKFILL]
    return [
        (row.run_id, row.partition_key, row.partition_date, row.state.value) for row in sorted(rows, key=lambda row: row.id)
    ]


def test_a_backfill_of_partitions_creates_a_run_for_each_key(bench: Bench) -> None:
    """The dates are partition dates, also if the schedule's runs are for the partition of the day before."""
    bench.dag("p", task("a"), schedule=CronSchedule(("0 0 * * *",), partition=CronPartition("%Y-%m-%d", -1)))
    bench.work()
    span: dict[str, Any] = {"dag_id": "p", "from_date": NOW - 3 * DAY, "to_date": NOW - 2 * DAY}
    plan = bench.command("create_backfill", dry_run=True, **span)["plan"]
    assert [(one["logical_date"], one["partition_key"], one["outcome"]) for one in plan] == [
        (None, "2025-12-29", "new"),
        (None, "2025-12-30", "new"),
    ]
    number = bench.command("create_backfill", **span)["backfill"]["id"]
    bench.work()
    assert partitions(bench) == [
        (f"backfill__2025-12-29T00:00:00+00:00__2025-12-29__{number}", "2025-12-29", NOW - 3 * DAY, "success"),
        (f"backfill__2025-12-30T00:00:00+00:00__2025-12-30__{number}", "2025-12-30", NOW - 2 * DAY, "success"),
    ]
    assert [one[1:] for one in bench.store.backfill_outcomes(number)] == [
        (NOW - 3 * DAY, partitions(bench)[0][0], "new", "2025-12-29"),
        (NOW - 2 * DAY, partitions(bench)[1][0], "new", "2025-12-30"),
    ]
    bench.check()


def test_a_partition_is_repeated_in_a_new_run(bench: Bench) -> None:
    """As in Airflow: the earlier run stays as it is. Runs are found by the date of their partition, not by their key."""
    bench.dag("p", task("a"), schedule=CronSchedule(("0 0 * * *",), partition=CronPartition("%Y-%m-%d")))
    span: dict[str, Any] = {"dag_id": "p", "from_date": NOW - 2 * DAY, "to_date": NOW - 2 * DAY}
    bench.command("create_backfill", **span)
    bench.work()
    bench.command("create_backfill", **span)
    bench.work()
    assert len(partitions(bench)) == 1, "reprocess_behavior is none"
    bench.command("create_backfill", reprocess_behavior="completed", **span)
    bench.work()
    assert [one[1:] for one in partitions(bench)] == [("2025-12-30", NOW - 2 * DAY, "success")] * 2
    assert len({one[0] for one in partitions(bench)}) == 2
    bench.check()


def test_the_dates_of_a_backfill_of_partitions_are_clock_times_of_the_schedule(bench: Bench) -> None:
    """Midnight in UTC means midnight in Taipei, as in Airflow."""
    bench.dag("p", task("a"), schedule=CronSchedule(("0 0 * * *",), "Asia/Taipei", partition=CronPartition("%Y-%m-%d")))
    bench.command("create_backfill", dag_id="p", from_date=NOW - 3 * DAY, to_date=NOW - 2 * DAY)
    bench.work()
    assert [one[1:3] for one in partitions(bench)] == [
        ("2025-12-29", NOW - 3 * DAY - 8 * HOUR),
        ("2025-12-30", NOW - 2 * DAY - 8 * HOUR),
    ]


def test_partitions_before_the_start_date_are_backfilled(bench: Bench) -> None:
    """The start date bounds the runs of the schedule; those of the first days are for earlier partitions."""
    schedule = CronSchedule(("0 0 * * *",), partition=CronPartition("%Y-%m-%d", -2))
    bench.dag("p", task("a"), schedule=schedule, start_date=NOW - 2 * DAY, paused=True)
    span: dict[str, Any] = {"dag_id": "p", "from_date": NOW - 4 * DAY, "to_date": NOW - 2 * DAY}
    plan = bench.command("create_backfill", dry_run=True, **span)["plan"]
    assert [one["partition_key"] for one in plan] == ["2025-12-28", "2025-12-29", "2025-12-30"]


def test_a_partition_in_the_future_is_backfilled_if_its_run_was_due(bench: Bench) -> None:
    """With an offset of 2, the run of today is for the partition of the day after tomorrow."""
    bench.dag("p", task("a"), schedule=CronSchedule(("0 0 * * *",), partition=CronPartition("%Y-%m-%d", 2)))
    span: dict[str, Any] = {"dag_id": "p", "from_date": NOW - DAY, "to_date": NOW + 9 * DAY}
    plan = bench.command("create_backfill", dry_run=True, **span)["plan"]
    assert [one["partition_key"] for one in plan] == ["2025-12-31", "2026-01-01", "2026-01-02", "2026-01-03"]
    bench.command("create_backfill", **span, max_active_runs=9)
    bench.work()
    assert sorted((one[1], one[3]) for one in partitions(bench)) == [(one["partition_key"], "success") for one in plan[:-1]], (
        "the schedule itself has created the run of today"
    )


# --- dates and options --------------------------------------------------------------------------------------------------


def test_a_backfill_may_end_in_the_future(daily: Bench) -> None:
    """It leaves out the runs that are not due when it is created."""
    plan = daily.command("create_backfill", dag_id="d", from_date=NOW - 2 * DAY, to_date=NOW + 5 * DAY, dry_run=True)["plan"]
    assert [one["logical_date"] for one in plan] == ["2025-12-30T00:00:00Z", "2025-12-31T00:00:00Z"]
    with pytest.raises(WrongBackfill, match="a backfill is for the past, and 2026-01-02T00:00:00Z is in the future"):
        daily.command("create_backfill", dag_id="d", from_date=NOW + DAY, to_date=NOW + 5 * DAY)


@pytest.mark.parametrize(
    ("of_dag", "given", "moved"), [(None, None, True), (False, None, False), (None, False, False), (False, True, True)]
)
def test_repeated_runs_may_keep_their_version(bench: Bench, of_dag: bool | None, given: bool | None, moved: bool) -> None:
    options: dict[str, Any] = {"schedule": DAILY, "start_date": NOW - 30 * DAY, "rerun_with_latest_version": of_dag}
    bench.dag("d", task("a"), bundle_version="v1", **options)
    create(bench, days=1)
    bench.work()
    assert {row.bundle_version for row in bench.runs("d") if row.run_type is RunType.BACKFILL} == {"v1"}
    bench.dag("d", task("a"), task("b"), bundle_version="v2", **options)
    create(bench, days=1, reprocess_behavior="completed", run_on_latest_version=given)
    bench.work()
    versions = {row.bundle_version for row in bench.runs("d") if row.run_type is RunType.BACKFILL}
    assert versions == {"v2" if moved else "v1"}
    bench.check()


def test_a_dag_that_does_not_allow_backfills(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - 30 * DAY, allowed_run_types=(RunType.SCHEDULED,))
    with pytest.raises(RunTypeNotAllowed, match="DAG d does not allow runs of the type backfill; it allows scheduled"):
        create(bench)
    with pytest.raises(RunTypeNotAllowed, match="of the type manual"):
        bench.command("trigger", dag_id="d")
    with pytest.raises(RunTypeNotAllowed, match="of the type operator_triggered"):
        bench.command("trigger_from_task", dag_id="d")
    bench.work()
    assert {row.run_type for row in bench.runs("d")} == {RunType.SCHEDULED}
