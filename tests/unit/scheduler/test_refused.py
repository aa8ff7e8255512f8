"""Changes that the store refuses: nothing is lost, they are tried again later, others continue, and `why` shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.commands import as_dict
from tests.unit.scheduler.bench import NOW, Bench, failing, task
from tests.unit.scheduler.conftest import MakeBench
from tests.unit.scheduler.test_backfills import DAILY, create, made
from tradewind.model.assets import AssetKey, AssetSchedule
from tradewind.model.definition import CronSchedule
from tradewind.model.errors import StoreError, StoreRefused
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND, iso
from tradewind.model.rows import Batch
from tradewind.scheduler.explain.upcoming import upcoming
from tradewind.scheduler.explain.why import why_no_run

TICKS = CronSchedule(("0 * * * *",))


def refusing(what: Callable[[Batch], bool], error: Exception | None = None) -> Callable[[Batch], Any]:
    """Refuse commits that contain this."""
    return lambda batch: (error or StoreRefused("the database does not take this")) if what(batch) else None


def of_bad(batch: Batch) -> bool:
    return any(new.run.dag_id == "bad" for new in batch.new_runs)


def dates(bench: Bench, dag_id: str) -> list[int | None]:
    return [row.logical_date for row in bench.runs(dag_id)]


def held_back(bench: Bench, dag_id: str) -> dict[str, Any]:
    answer = as_dict(why_no_run(bench.store, bench.scheduler, dag_id, None, bench.clock.wall()))
    (found,) = [one for one in answer["blockers"] if one["rule"] == "quarantined"]
    return dict(found)


@pytest.mark.parametrize("error", [StoreRefused("out of range"), ZeroDivisionError("a bug")])
def test_a_refused_scheduled_run_is_not_skipped(bench: Bench, error: Exception) -> None:
    """The schedule does not move past it, nor past later runs of the same batch; all are created when the store accepts them."""
    for dag_id in ("bad", "good"):
        bench.dag(dag_id, task("a"), schedule=TICKS, start_date=NOW + MINUTE, catchup=True)
    with failing(bench.watched, refusing(of_bad, error)):
        bench.pass_time(3 * HOUR)
        assert dates(bench, "good") == [NOW + HOUR, NOW + 2 * HOUR, NOW + 3 * HOUR]
        assert dates(bench, "bad") == []
        assert bench.store.need_dag("bad").last is None, "the position stands before the run that was refused"
        blocker = held_back(bench, "bad")
        assert str(error) in blocker["sentence"]
        assert "scheduled__2026-01-01T01:00:00+00:00" in blocker["sentence"]
        (coming, *_) = [one for one in upcoming(bench.store, bench.scheduler, bench.clock.wall(), 5) if one.dag_id == "bad"]
        assert str(error) in coming.held_by
        bench.pass_time(31 * SECOND)
        assert f"again at {iso(bench.clock.wall() + MINUTE)}" in held_back(bench, "bad")["sentence"], (
            "the second wait is longer"
        )
    bench.pass_time(MINUTE)
    assert dates(bench, "bad") == [NOW + HOUR, NOW + 2 * HOUR, NOW + 3 * HOUR]
    bench.restart()
    assert dates(bench, "bad") == [NOW + HOUR, NOW + 2 * HOUR, NOW + 3 * HOUR]
    bench.work()
    bench.check()


def test_a_refused_run_is_tried_a_bounded_number_of_times(bench: Bench) -> None:
    bench.dag("bad", task("a"), schedule=TICKS, start_date=NOW + MINUTE)
    tries = 0

    def counted(batch: Batch) -> StoreError | None:
        nonlocal tries
        tries += of_bad(batch)
        return StoreRefused("out of range") if of_bad(batch) else None

    with failing(bench.watched, counted):
        bench.pass_time(HOUR)
        for _ in range(60):
            bench.pass_time(SECOND)
    assert tries == 4, "in the batch and alone, at once and after 30 seconds"


def test_a_change_of_the_dag_has_a_refused_run_tried_at_once(bench: Bench) -> None:
    bench.dag("bad", task("a"), schedule=TICKS, start_date=NOW + MINUTE)
    with failing(bench.watched, refusing(of_bad)):
        bench.pass_time(HOUR)
        assert dates(bench, "bad") == []
    bench.command("set_paused", dag_id="bad", is_paused=True)
    bench.command("set_paused", dag_id="bad", is_paused=False)
    assert dates(bench, "bad") == [NOW + HOUR]


def test_skipped_runs_are_recorded_with_the_run_that_is_created(bench: Bench) -> None:
    """Without catchup the schedule skips runs: these are recorded only with the run that is created."""
    bench.dag("bad", task("a"), schedule=TICKS, start_date=NOW - 5 * HOUR, paused=True)
    with failing(bench.watched, refusing(of_bad)):
        bench.command("set_paused", dag_id="bad", is_paused=False)
        assert dates(bench, "bad") == []
        assert bench.store.skipped("bad") == []
    bench.pass_time(31 * SECOND)
    assert dates(bench, "bad") == [NOW]
    assert len(bench.store.skipped("bad")) == 1


def test_a_refused_schedule_position_is_written_later(bench: Bench) -> None:
    with failing(bench.watched, refusing(lambda batch: any(one.dag_id == "bad" for one in batch.positions))):
        bench.dag("bad", task("a"), schedule=TICKS, start_date=NOW + MINUTE)
        assert not bench.scheduler.busy
        assert "does not take this" in held_back(bench, "bad")["sentence"]
    bench.pass_time(HOUR)
    assert dates(bench, "bad") == [NOW + HOUR]
    bench.check()


def test_a_schedule_position_changed_by_others_is_reloaded(bench: Bench) -> None:
    """The run that was decided from the old position is not created, and the schedule does not go back."""
    bench.dag("d", task("a"), schedule=TICKS, start_date=NOW + MINUTE, catchup=True)
    entry = bench.scheduler.dags["d"]
    entry.plan = entry.plan._replace(last=(NOW - DAY, NOW - DAY, NOW - DAY, NOW - DAY))  # what memory says is not what is there
    bench.pass_time(2 * HOUR)
    assert dates(bench, "d") == [NOW + HOUR, NOW + 2 * HOUR]
    bench.check()


def test_refused_rows_of_a_large_run_are_created_later(make_bench: MakeBench) -> None:
    bench = make_bench(batch_max_rows=400)
    bench.dag("huge", *(task(f"t{i}") for i in range(2100)))
    bench.dag("small", task("a"))
    with failing(bench.watched, refusing(lambda batch: bool(batch.more_rows))):
        bench.trigger("huge", "r")
        assert not bench.scheduler.busy, "it does not spin"
        assert "refused" in bench.why("r.t0")["rows"]
        bench.trigger("small", "s")
        bench.work()
        assert bench.run_states("small") == {"s": "success"}
    bench.pass_time(31 * SECOND)
    assert bench.run("r").rows_created == 2100
    assert bench.run_states("huge") == {"r": "running"}


def test_a_backfill_continues_after_a_refused_step(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler does not pause, and nothing else waits."""
    bench.dag("d", task("a"), schedule=DAILY, start_date=NOW - 30 * DAY, max_active_runs=1)
    bench.work()

    def refused(*given: Any) -> Any:
        raise StoreRefused("out of range")

    with monkeypatch.context() as patched:
        patched.setattr(bench.watched, "record_backfill_outcome", refused, raising=False)
        create(bench)
        assert made(bench) == []
        assert bench.scheduler.trouble is None
        assert "out of range" in held_back(bench, "d")["sentence"]
        bench.trigger("d", "by-hand")
        bench.work()
    bench.pass_time(61 * SECOND)
    bench.work()
    assert made(bench) == [9, 8, 7, 6, 5]
    bench.check()


def test_a_refused_asset_run_is_created_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asset = AssetKey("x", "s3://x")
    bench.dag("c", task("a"), assets=AssetSchedule(asset, False))

    def refused(*given: Any) -> Any:
        raise StoreRefused("out of range")

    with monkeypatch.context() as patched:
        patched.setattr(bench.watched, "create_asset_run", refused, raising=False)
        bench.command("create_asset_event", name="x", uri="s3://x")
        assert bench.scheduler.trouble is None
        assert "out of range" in held_back(bench, "c")["sentence"]
    bench.pass_time(31 * SECOND)
    assert len(bench.runs("c")) == 1
    bench.check()
