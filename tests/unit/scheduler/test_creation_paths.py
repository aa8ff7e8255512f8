"""Every way in which a run is made, against what has to hold for each: pauses, catch-up, max_active_runs, time limits, ids.

The ways: by the schedule, by hand, by a task of another DAG, by a backfill, because assets were updated, to make an asset, and
once more after a clear.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.commands import as_dict
from tests.unit.scheduler.bench import NOW, Bench, task
from tradewind.model.assets import AssetKey, AssetSchedule, AssetUse
from tradewind.model.definition import CronSchedule, Delta, DeltaSchedule, NoSchedule
from tradewind.model.errors import Conflict
from tradewind.model.moments import DAY, HOUR, MINUTE
from tradewind.model.states import RunState, RunType
from tradewind.scheduler.dags.schedule import SKIPPED_WITHOUT_CATCHUP
from tradewind.scheduler.explain.why import why_no_run

A, MADE = AssetKey("a", "s3://b/a"), AssetKey("made", "s3://b/made")
TICKS = CronSchedule(("0 * * * *",))


def dag(bench: Bench, **more: object) -> None:
    """A DAG in which every way leads to a run. Its schedule begins in an hour."""
    given: dict[str, object] = {
        "schedule": TICKS,
        "start_date": NOW + HOUR,
        "catchup": True,
        "assets": AssetSchedule(A),
        "asset_uses": (AssetUse("t", "outlet", MADE),),
    }
    bench.dag("d", task("t"), **{**given, **more})  # type: ignore[arg-type]


def by_schedule(bench: Bench, number: int) -> None:
    bench.pass_time(HOUR)


def by_hand(bench: Bench, number: int) -> None:
    bench.command("trigger", dag_id="d", run_id=f"hand{number}")


def by_a_task(bench: Bench, number: int) -> None:
    bench.command("trigger_from_task", dag_id="d", run_id=f"task{number}")


def by_assets(bench: Bench, number: int) -> None:
    bench.command("create_asset_event", name="a")


def by_materializing(bench: Bench, number: int) -> None:
    bench.command("materialize_asset", name="made")


def by_clearing(bench: Bench, number: int) -> None:
    """Runs that had ended come back."""
    bench.command("clear", dag_id="d", run_id=f"old{number}")


WAYS: dict[str, tuple[Callable[[Bench, int], None], RunType]] = {
    "schedule": (by_schedule, RunType.SCHEDULED),
    "hand": (by_hand, RunType.MANUAL),
    "task": (by_a_task, RunType.OPERATOR_TRIGGERED),
    "assets": (by_assets, RunType.ASSET_TRIGGERED),
    "materialize": (by_materializing, RunType.ASSET_MATERIALIZATION),
    "clear": (by_clearing, RunType.MANUAL),
}

ways = pytest.mark.parametrize("way", WAYS)


def prepare(bench: Bench, way: str) -> None:
    """Runs to be cleared have to have ended before."""
    for number in range(4) if way == "clear" else ():
        bench.command("trigger", dag_id="d", run_id=f"old{number}")
        bench.work()


def live(bench: Bench) -> dict[RunState, int]:
    """How many runs are queued and running."""
    rows = bench.store.active_runs("d")
    return {state: sum(row.state is state for row in rows) for state in (RunState.QUEUED, RunState.RUNNING)}


@pytest.mark.spec("S247", "S249")
@ways
def test_a_created_run_starts_at_once(bench: Bench, way: str) -> None:
    dag(bench)
    prepare(bench, way)
    make, kind = WAYS[way]
    make(bench, 0)
    (row,) = bench.store.active_runs("d")
    assert (row.run_type, row.state) == (kind, RunState.RUNNING)
    bench.check()


@pytest.mark.spec("S244", "S262", "S466")
@ways
def test_nothing_starts_while_the_dag_is_paused(bench: Bench, way: str) -> None:
    """What a person or a task asks for waits; the schedule and assets make nothing; unpausing brings no history."""
    dag(bench, catchup=False)
    prepare(bench, way)
    before = len(bench.runs("d"))
    bench.command("set_paused", dag_id="d", is_paused=True)
    make, _ = WAYS[way]
    for number in range(3):
        make(bench, number)
    assert live(bench)[RunState.RUNNING] == 0
    waits = way not in ("schedule", "assets")
    assert live(bench)[RunState.QUEUED] == (3 if waits else 0)
    bench.command("set_paused", dag_id="d", is_paused=False)
    made = len(bench.runs("d")) - before
    assert made == {"schedule": 1, "assets": 0, "clear": 0}.get(way, 3), (
        "without catch-up the schedule makes the latest run only"
    )
    bench.work()
    assert {row.state for row in bench.runs("d")} <= {RunState.SUCCESS}
    bench.check()


@pytest.mark.spec("S252", "S267")
@ways
def test_max_active_runs_applies_to_every_run_type(bench: Bench, way: str) -> None:
    """Never more of them run; the others wait, or are not made yet; all come to their end."""
    dag(bench, max_active_runs=2)
    prepare(bench, way)
    make, _ = WAYS[way]
    for number in range(4):
        make(bench, number)
        assert live(bench)[RunState.RUNNING] <= 2
    assert live(bench)[RunState.RUNNING] == 2
    for _ in range(20):
        running = [row for row in bench.store.active_runs("d") if row.state is RunState.RUNNING]
        assert len(running) <= 2
        if not running:
            break
        bench.finish(f"{running[0].run_id}.t")
    assert live(bench) == {RunState.QUEUED: 0, RunState.RUNNING: 0}
    if way == "assets":
        events = [one.id for row in bench.runs("d") for one in bench.store.asset_events_of_run(row.id)]
        assert sorted(events) == [1, 2, 3, 4]
    else:
        assert len(bench.runs("d")) == 4
    bench.check()


@pytest.mark.spec("S252")
def test_runs_of_all_types_share_the_run_slots(bench: Bench) -> None:
    dag(bench, max_active_runs=1)
    by_hand(bench, 0)
    by_assets(bench, 0)
    by_a_task(bench, 0)
    by_materializing(bench, 0)
    by_schedule(bench, 0)
    kinds = []
    while running := [row for row in bench.store.active_runs("d") if row.state is RunState.RUNNING]:
        assert len(running) == 1
        kinds.append(running[0].run_type)
        bench.finish(f"{running[0].run_id}.t")
    assert sorted(kinds) == sorted(
        [RunType.MANUAL, RunType.ASSET_TRIGGERED, RunType.OPERATOR_TRIGGERED, RunType.ASSET_MATERIALIZATION, RunType.SCHEDULED]
    )
    bench.check()


@pytest.mark.spec("S188")
@ways
def test_dagrun_timeout_applies_to_every_run_type(bench: Bench, way: str) -> None:
    dag(bench, dagrun_timeout=30 * MINUTE, max_active_runs=1)
    prepare(bench, way)
    make, _ = WAYS[way]
    make(bench, 0)
    (row,) = bench.store.active_runs("d")
    bench.pass_time(30 * MINUTE)
    ended = bench.store.run(row.id)
    assert ended is not None
    assert ended.state is RunState.FAILED
    assert "dagrun_timeout" in (ended.reason or "")


@ways
def test_dagrun_timeout_does_not_count_queued_time(bench: Bench, way: str) -> None:
    """The limit counts from the start of the run, not from its making."""
    if way in ("schedule", "assets"):
        return  # they are made when they have a place
    dag(bench, dagrun_timeout=30 * MINUTE, max_active_runs=1, schedule=NoSchedule(), assets=None)
    prepare(bench, way)
    bench.command("trigger", dag_id="d", run_id="first")
    WAYS[way][0](bench, 0)
    bench.pass_time(20 * MINUTE)
    bench.finish("first.t")
    bench.pass_time(20 * MINUTE)
    (row,) = bench.store.active_runs("d")
    assert row.state is RunState.RUNNING


@pytest.mark.spec("S193", "S194")
def test_run_ids_follow_from_the_run_type(bench: Bench) -> None:
    """The same tick, event or date gives the same id, in any life of the scheduler and on any store."""
    dag(bench)
    bench.pass_time(HOUR)
    bench.command("create_asset_event", name="a")
    bench.command("trigger", dag_id="d", logical_date=NOW - DAY)
    bench.dag("b", task("t"), schedule=TICKS, start_date=NOW - DAY, catchup=False, paused=True)
    bench.command("create_backfill", dag_id="b", from_date=NOW - 2 * HOUR, to_date=NOW - 2 * HOUR)
    bench.command("set_paused", dag_id="b", is_paused=False)
    assert sorted(row.run_id for row in bench.runs("d")) == [
        "asset_triggered__2026-01-01T01:00:00+00:00_1",
        "manual__2025-12-31T00:00:00+00:00",
        "scheduled__2026-01-01T01:00:00+00:00",
    ]
    assert [row.run_id for row in bench.runs("b")] == [
        "backfill__2025-12-31T22:00:00+00:00",
        "scheduled__2026-01-01T01:00:00+00:00",
    ]


def test_no_run_is_created_twice(bench: Bench) -> None:
    dag(bench)
    bench.pass_time(HOUR)
    bench.command("trigger", dag_id="d", run_id="mine")
    for _ in range(3):
        bench.restart()
    assert len(bench.runs("d")) == 2
    with pytest.raises(Conflict, match="already has a run 'mine'"):
        bench.command("trigger", dag_id="d", run_id="mine")
    with pytest.raises(Conflict, match="for this logical date"):
        bench.command("trigger", dag_id="d", run_id="other", logical_date=NOW + HOUR)


@pytest.mark.spec("S262")
def test_a_backfill_of_a_paused_dag_creates_no_run(bench: Bench) -> None:
    dag(bench, start_date=NOW - DAY, catchup=False, assets=None, paused=True)
    bench.command("create_backfill", dag_id="d", from_date=NOW - 2 * HOUR, to_date=NOW - 2 * HOUR)
    bench.pass_time(HOUR)
    assert bench.runs("d") == []
    bench.command("set_paused", dag_id="d", is_paused=False)
    assert {row.run_type for row in bench.runs("d")} == {RunType.BACKFILL, RunType.SCHEDULED}


@pytest.mark.spec("S204", "S253")
def test_runs_of_a_backfill_obey_pauses_their_own_limit_and_the_time_limit(bench: Bench) -> None:
    dag(bench, start_date=NOW - DAY, catchup=False, assets=None, dagrun_timeout=30 * MINUTE, max_active_runs=1, paused=True)
    bench.command("create_backfill", dag_id="d", from_date=NOW - 5 * HOUR, to_date=NOW - 2 * HOUR, max_active_runs=2)
    assert bench.runs("d") == []
    bench.command("set_paused", dag_id="d", is_paused=False)

    def running() -> list[RunType]:
        return [row.run_type for row in bench.store.active_runs("d") if row.state is RunState.RUNNING]

    assert sorted(running()) == [RunType.BACKFILL, RunType.BACKFILL, RunType.SCHEDULED], "beside the DAG's own runs"
    bench.pass_time(30 * MINUTE)
    assert [row.state for row in bench.runs("d")].count(RunState.FAILED) == 3
    assert running() == [RunType.BACKFILL, RunType.BACKFILL]
    bench.work()
    assert bench.store.backfills() == []
    bench.check()


# --- moments that pass without a run ------------------------------------------------------------------------------------


@pytest.mark.spec("S244", "S466")
def test_runs_skipped_without_catchup_are_recorded(bench: Bench) -> None:
    bench.dag("d", task("t", empty=True), schedule=TICKS, start_date=NOW - 10 * HOUR)
    (one,) = bench.store.skipped("d")
    assert one == (NOW - 10 * HOUR, NOW, SKIPPED_WITHOUT_CATCHUP, NOW)
    bench.command("set_paused", dag_id="d", is_paused=True)
    bench.pass_time(5 * HOUR + MINUTE)
    bench.command("set_paused", dag_id="d", is_paused=False)
    assert [row.logical_date for row in bench.runs("d")] == [NOW, NOW + 5 * HOUR]
    latest, first = bench.store.skipped("d")
    assert (latest.from_date, latest.to_date) == (NOW + HOUR, NOW + 5 * HOUR)
    assert first == one
    assert bench.store.skipped("d", 1) == [latest]
    sentences = {
        b["rule"]: b["sentence"] for b in as_dict(why_no_run(bench.store, bench.scheduler, "d", NOW + 2 * HOUR))["blockers"]
    }
    assert "It was skipped at 2026-01-01T05:01:00Z, when the run of 2026-01-01T05:00:00Z was created." in sentences["catchup"]


@pytest.mark.parametrize("schedule", [TICKS, DeltaSchedule(Delta(micros=HOUR), interval_kind="data")])
def test_a_schedule_without_a_gap_records_no_skipped_runs(bench: Bench, schedule: CronSchedule | DeltaSchedule) -> None:
    bench.dag("d", task("t", empty=True), schedule=schedule, start_date=NOW)
    bench.restart()
    for _ in range(5):
        bench.next_timer()
    assert len(bench.runs("d")) >= 5
    assert bench.store.skipped("d") == []


def test_with_catchup_no_runs_are_skipped(bench: Bench) -> None:
    bench.dag("d", task("t", empty=True), schedule=TICKS, start_date=NOW - 10 * HOUR, catchup=True)
    bench.pass_time(5 * HOUR)
    assert bench.store.skipped("d") == []


def test_records_of_skipped_runs_are_deleted_with_the_dag_and_by_age(bench: Bench) -> None:
    for dag_id in ("d", "e"):
        bench.dag(dag_id, task("t", empty=True), schedule=TICKS, start_date=NOW - 10 * HOUR)
        assert len(bench.store.skipped(dag_id)) == 1
    bench.command("set_paused", dag_id="d", is_paused=True)
    bench.command("delete_dag", dag_id="d")
    assert bench.store.skipped("d") == []
    bench.store.delete_old_runs(NOW + 1, 0, NOW + 1)
    assert bench.store.skipped("e") == []
