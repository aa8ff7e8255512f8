"""Runs that start because assets were updated: conditions, pauses, limits, restarts, and no lost events."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from tests.commands import as_dict
from tests.unit.scheduler.bench import NOW, Bench, failing, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.assets import AliasKey, AllOf, AnyOf, AssetKey, AssetSchedule, AssetUse, Condition
from tradewind.model.definition import CronSchedule
from tradewind.model.errors import Conflict, NotFound, StoreBusy, StoreError
from tradewind.model.moments import DAY, HOUR, SECOND
from tradewind.model.rows import Batch
from tradewind.model.states import Outcome, RunState, RunType
from tradewind.scheduler.assets.answers import waits_for_assets
from tradewind.scheduler.explain.why import why, why_no_run
from tradewind.wire.messages import AssetUpdate, OutsideAssetEvent

A, B, C = (AssetKey(name, f"s3://bucket/{name}") for name in "abc")


def update(asset: AssetKey, **more: Any) -> AssetUpdate:
    return AssetUpdate(asset.name, asset.uri, **more)


def consumer(bench: Bench, dag_id: str, condition: Condition, *, dated: bool = False, **more: Any) -> None:
    bench.dag(dag_id, task("t"), assets=AssetSchedule(condition, dated), **more)


def producer(bench: Bench, *assets: AssetKey, dag_id: str = "p") -> None:
    bench.dag(dag_id, task("make"), asset_uses=tuple(AssetUse("make", "outlet", one) for one in assets))


def emit(bench: Bench, asset: AssetKey = A, **more: Any) -> int:
    """Emit an asset event that no task caused."""
    return int(bench.command("create_asset_event", name=asset.name, uri=asset.uri, **more)["id"])


def consumed(bench: Bench, dag_id: str) -> list[list[int]]:
    """Return the numbers of the events that each run of a DAG consumed."""
    return [[event.id for event in bench.store.asset_events_of_run(row.id)] for row in bench.runs(dag_id)]


def test_a_success_starts_the_runs_that_wait_for_its_asset(bench: Bench) -> None:
    producer(bench, A)
    consumer(bench, "c", A)
    bench.trigger("p", "r")
    bench.clock.advance(SECOND)
    bench.finish("r.make", assets=(update(A, extra=b'{"rows":3}'),))
    (row,) = bench.runs("c")
    assert row.run_id == "asset_triggered__2026-01-01T00:00:01+00:00_1"
    assert (row.run_type, row.state, row.triggered_by) == (RunType.ASSET_TRIGGERED, RunState.RUNNING, "asset")
    assert (row.logical_date, row.interval_start, row.interval_end, row.run_after) == (None, None, None, NOW + SECOND)
    (event,) = bench.store.asset_events_of_run(row.id)
    assert (event.extra, event.source_dag, event.source_run, event.source_task) == (b'{"rows":3}', "p", "r", "make")
    bench.work(but=["make"])
    assert bench.run_states("c") == {row.run_id: "success"}
    bench.check()


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.SKIPPED, Outcome.RESCHEDULE])
def test_only_a_success_emits_asset_events(bench: Bench, outcome: Outcome) -> None:
    producer(bench, A)
    consumer(bench, "c", A)
    bench.trigger("p", "r")
    more = {"reschedule_at": NOW + SECOND} if outcome is Outcome.RESCHEDULE else {}
    bench.finish("r.make", outcome=outcome, assets=(update(A),), **more)
    assert bench.runs("c") == []
    assert bench.store.asset_events(name="a") == []


def test_a_cleared_attempt_emits_no_asset_events(bench: Bench) -> None:
    producer(bench, A)
    consumer(bench, "c", A)
    bench.trigger("p", "r")
    bench.start("r.make")
    bench.clear("p", "r", "make")
    bench.report("r.make", assets=(update(A),))
    assert bench.store.asset_events(name="a") == []


def test_a_repeated_report_emits_once(bench: Bench) -> None:
    producer(bench, A)
    consumer(bench, "c", A)
    bench.trigger("p", "r")
    bench.finish("r.make", assets=(update(A),))
    bench.report("r.make", assets=(update(A),))
    assert consumed(bench, "c") == [[1]]


def test_all_of_waits_for_every_asset_and_consumes_all_events(bench: Bench) -> None:
    consumer(bench, "c", AllOf((A, B)))
    emit(bench, A)
    emit(bench, A)
    assert bench.runs("c") == []
    assert waits_for_assets(bench.store, bench.store.need_dag("c")) == "1 of 2 assets updated; missing: b"
    emit(bench, B)
    assert consumed(bench, "c") == [[1, 2, 3]]
    assert waits_for_assets(bench.store, bench.store.need_dag("c")) == "0 of 2 assets updated; missing: a and b"


def test_any_of_starts_with_the_first_asset(bench: Bench) -> None:
    consumer(bench, "c", AnyOf((A, AllOf((B, C)))))
    emit(bench, B)
    answer = waits_for_assets(bench.store, bench.store.need_dag("c"))
    assert answer == "1 of 3 assets updated; missing: a or c"
    emit(bench, C)
    emit(bench, A)
    assert consumed(bench, "c") == [[1, 2], [3]]


def test_an_alias_starts_a_run_when_an_event_has_it(bench: Bench) -> None:
    consumer(bench, "c", AliasKey("daily"))
    bench.dag("p", task("make"))
    bench.trigger("p", "r")
    bench.finish("r.make", assets=(update(B, aliases=("daily",)),))
    assert consumed(bench, "c") == [[1]]


def test_a_paused_dag_starts_no_runs_for_assets_also_after_unpausing(bench: Bench) -> None:
    consumer(bench, "c", A, paused=True)
    emit(bench)
    emit(bench)
    bench.command("set_paused", dag_id="c", is_paused=False)
    assert bench.runs("c") == []
    answer = waits_for_assets(bench.store, bench.store.need_dag("c"))
    assert answer == "0 of 1 asset updated; missing: a; 2 events that came while it was paused wait for the next run"
    emit(bench)
    assert consumed(bench, "c") == [[1, 2, 3]], "nothing is lost"
    bench.check()


def test_events_before_a_pause_count_after_it(bench: Bench) -> None:
    consumer(bench, "c", AllOf((A, B)))
    emit(bench, A)
    bench.command("set_paused", dag_id="c", is_paused=True)
    emit(bench, B)
    bench.command("set_paused", dag_id="c", is_paused=False)
    assert bench.runs("c") == []
    emit(bench, B)
    assert consumed(bench, "c") == [[1, 2, 3]]


def test_max_active_runs_delays_the_run_and_its_events_wait(bench: Bench) -> None:
    consumer(bench, "c", A, max_active_runs=1)
    emit(bench)
    emit(bench)
    emit(bench)
    (first,) = bench.runs("c")
    bench.finish(f"{first.run_id}.t")
    assert consumed(bench, "c") == [[1], [2, 3]]
    bench.work()
    assert list(bench.run_states("c").values()) == ["success", "success"]
    bench.check()


def test_a_manual_run_takes_a_run_slot_too(bench: Bench) -> None:
    consumer(bench, "c", A, max_active_runs=1)
    bench.trigger("c", "by_hand")
    emit(bench)
    assert len(bench.runs("c")) == 1
    bench.finish("by_hand.t")
    assert consumed(bench, "c") == [[], [1]]


def test_dagrun_timeout_applies_to_asset_runs(bench: Bench) -> None:
    consumer(bench, "c", A, dagrun_timeout=HOUR)
    emit(bench)
    bench.pass_time(HOUR)
    (row,) = bench.runs("c")
    assert row.state is RunState.FAILED
    assert "dagrun_timeout" in (row.reason or "")


def test_a_dag_with_a_calendar_and_assets_has_both_kinds_of_runs(bench: Bench) -> None:
    consumer(bench, "c", A, schedule=CronSchedule(("0 * * * *",)), start_date=NOW + HOUR, catchup=True)
    emit(bench)
    bench.pass_time(HOUR)
    emit(bench)
    assert [row.run_type.value for row in bench.runs("c")] == ["asset_triggered", "scheduled", "asset_triggered"]
    assert consumed(bench, "c") == [[1], [], [2]]


def test_airflow_2_gives_its_runs_a_date_and_the_interval_of_their_sources(bench: Bench) -> None:
    consumer(bench, "c", A, dated=True)
    producer(bench, A)
    bench.trigger("p", "r", day=1, interval_start=NOW - 3 * DAY, interval_end=NOW - 2 * DAY)
    bench.finish("r.make", assets=(update(A),))
    (row,) = bench.runs("c")
    assert (row.logical_date, row.interval_start, row.interval_end) == (NOW, NOW - 3 * DAY, NOW - 2 * DAY)
    emit(bench)
    assert [one.logical_date for one in bench.runs("c")] == [NOW, NOW + 1], "no two runs have one date"


def test_waiting_events_survive_a_restart(bench: Bench) -> None:
    consumer(bench, "c", AllOf((A, B)))
    emit(bench, A)
    bench.restart()
    emit(bench, B)
    assert consumed(bench, "c") == [[1, 2]]
    bench.restart()
    assert consumed(bench, "c") == [[1, 2]]


def test_an_event_written_without_a_scheduler_starts_its_run_later(bench: Bench) -> None:
    consumer(bench, "c", A)
    result, _ = bench.commands.run(bench.ask_for("create_asset_event", name="a"))
    assert result.error is None
    bench.restart()
    assert consumed(bench, "c") == [[1]]


def test_listeners_are_told_of_an_event_that_a_person_has_created(bench: Bench) -> None:
    consumer(bench, "c", A)
    _, effects = bench.commands.run(bench.ask_for("create_asset_event", name="a", extra={"rows": 2}, partition_key="k"))
    assert effects.asset_events == [OutsideAssetEvent(AssetKey("a", A.uri, A.group), {"rows": 2}, "k")]


def test_a_superseded_scheduler_consumes_nothing(bench: Bench) -> None:
    """With two schedulers over one store only the newer one creates the run, and each event is consumed once."""
    consumer(bench, "c", A)
    older = bench.scheduler
    bench.commands.run(bench.ask_for("create_asset_event", name="a"))
    bench.scheduler = bench._begin()
    older.compare_with_store()
    older.process()
    assert older.superseded
    assert bench.runs("c") == []
    bench.process()
    assert consumed(bench, "c") == [[1]]


def test_the_comparison_with_the_store_finds_a_lost_wake_up(bench: Bench) -> None:
    consumer(bench, "c", A)
    bench.commands.run(bench.ask_for("create_asset_event", name="a"))
    bench.process()
    assert bench.runs("c") == []
    bench.scheduler.compare_with_store()
    bench.process()
    assert consumed(bench, "c") == [[1]]


@pytest.mark.parametrize("fault", [StoreBusy("held"), "unknown"])
def test_a_failed_commit_loses_and_duplicates_no_event(bench: Bench, fault: str | StoreError) -> None:
    producer(bench, A)
    consumer(bench, "c", A)
    bench.trigger("p", "r")
    bench.start("r.make")
    armed = [fault]

    def once(batch: Batch) -> str | StoreError | None:
        return armed.pop() if armed and any(write.asset_events for write in batch.runs) else None

    with failing(bench.watched, once):
        bench.report("r.make", assets=(update(A),))
    assert bench.scheduler.recover()
    bench.process()
    assert consumed(bench, "c") == [[1]]
    assert bench.run_states("p") == {"r": "success"}
    bench.check()


def test_a_changed_schedule_drops_waiting_events(bench: Bench) -> None:
    consumer(bench, "c", AllOf((A, B)))
    emit(bench, A)
    consumer(bench, "c", AllOf((B, C)))
    emit(bench, B)
    emit(bench, C)
    assert consumed(bench, "c") == [[2, 3]]


def test_waiting_events_are_dismissed_by_a_person(bench: Bench) -> None:
    consumer(bench, "c", AllOf((A, B)))
    emit(bench, A)
    assert bench.command("drop_queued_events", dag_id="c") == {"dags": ["c"]}
    emit(bench, B)
    assert bench.runs("c") == []
    with pytest.raises(NotFound, match="There is no DAG 'x'"):
        bench.command("drop_queued_events", dag_id="x")


def test_materialize_runs_the_dag_that_produces(bench: Bench) -> None:
    producer(bench, A)
    row = bench.command("materialize_asset", name="a")
    assert (row["dag_id"], row["run_type"]) == ("p", "asset_materialization")
    with pytest.raises(NotFound, match="there is no asset 'aa'"):
        bench.command("materialize_asset", name="aa")
    consumer(bench, "c", B)
    with pytest.raises(NotFound, match="no DAG produces the asset 'b'"):
        bench.command("materialize_asset", name="b")
    producer(bench, A, dag_id="p2")
    with pytest.raises(Conflict, match=r"more than one DAG produces the asset 'a' \(p, p2\)"):
        bench.command("materialize_asset", uri="s3://bucket/a")


def test_dags_without_assets_cost_no_query(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    asked: list[str] = []
    inner = bench.watched.inner.waiting_assets
    bench.watched.waiting_assets = lambda dag_id: asked.append(dag_id) or inner(dag_id)  # type: ignore[attr-defined, func-returns-value]
    bench.trigger("d", "r")
    bench.work()
    assert asked == []
    assert not any(write.asset_events for batch in bench.watched.commits for write in batch.runs)


def next_fault(faults: list[StoreError | str], batch: Batch) -> StoreError | str | None:
    return faults.pop() if faults else None


@pytest.mark.parametrize("seed", range(6))
def test_every_event_is_consumed_exactly_once_by_each_consumer(make_bench: MakeBench, seed: int) -> None:
    """Producers, pauses, restarts, failing commits and limits in any order: what each run consumed is disjoint and complete."""
    chance = Random(seed)
    bench = make_bench()
    producer(bench, A, B, C)
    conditions: dict[str, Condition] = {
        "any": AnyOf((A, B, C)),
        "all": AllOf((A, B)),
        "one": C,
        "mixed": AnyOf((AllOf((A, C)), B)),
    }
    for name, condition in conditions.items():
        consumer(bench, name, condition, max_active_runs=chance.choice([1, 2, 16]))
    paused: set[str] = set()
    for step in range(60):
        roll = chance.random()
        if roll < 0.5:
            emit(bench, chance.choice([A, B, C]))
        elif roll < 0.65:
            bench.trigger("p", f"r{step}")
            assets = tuple(update(one) for one in chance.sample([A, B, C], chance.randint(1, 3)))
            bench.start(f"r{step}.make")
            kinds: list[StoreError | str] = [StoreBusy("held"), "unknown"]
            faults = [chance.choice(kinds)] if chance.random() < 0.3 else []
            with failing(bench.watched, partial(next_fault, faults)):
                bench.report(f"r{step}.make", assets=assets)
            while bench.scheduler.trouble is not None:
                assert bench.scheduler.recover()
                bench.process()
        elif roll < 0.75:
            name = chance.choice(list(conditions))
            paused ^= {name}
            bench.command("set_paused", dag_id=name, is_paused=name in paused)
        elif roll < 0.85:
            bench.restart()
        else:
            bench.work(but=["make"])
        bench.clock.advance(SECOND)
    for name in sorted(paused):
        bench.command("set_paused", dag_id=name, is_paused=False)
    for asset in (A, B, C):
        emit(bench, asset)
    bench.work(but=["make"])
    everything = {one.id: one.asset.name for name in "abc" for one in bench.store.asset_events(name=name)}
    wanted = {"any": "abc", "all": "ab", "one": "c", "mixed": "abc"}
    for name in conditions:
        groups = consumed(bench, name)
        flat = [number for group in groups for number in group]
        assert len(flat) == len(set(flat)), f"{name} consumed an event twice"
        left = {one.asset.name for one in bench.store.waiting_assets(name)}
        missed = {number for number, asset in everything.items() if asset in wanted[name]} - set(flat)
        assert {everything[number] for number in missed} <= left, f"{name} lost {missed}"
        assert sum(one.events for one in bench.store.waiting_assets(name)) == len(missed)
        assert all(group == sorted(group) for group in groups)
    bench.check()


def test_why_there_is_no_run_names_what_is_missing(bench: Bench) -> None:
    consumer(bench, "c", AllOf((A, B)), max_active_runs=1)
    emit(bench, A)
    found = {one["rule"]: one["sentence"] for one in as_dict(why(bench.store, bench.scheduler, "c", "t", None))["blockers"]}
    assert found["assets"] == "It runs when assets are updated: 1 of 2 assets updated; missing: b."
    assert "no_schedule" not in found
    emit(bench, B)
    emit(bench, A)
    emit(bench, B)
    answer = as_dict(why_no_run(bench.store, bench.scheduler, "c"))
    blockers = {one["rule"]: one["sentence"] for one in answer["blockers"]}
    assert answer["next_run"]["notes"] == ["It runs when assets are updated: 2 of 2 assets updated."]
    assert set(blockers) == {"max_active_runs"}, "what is there is not in the way"
    assert "its max_active_runs is 1" in blockers["max_active_runs"]
