"""Events of assets: in one transaction with the success, delivered to each consumer, consumed once or superseded."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.store.suite.build import NOW, commit, definition, finish, new_run, parsed, share, step, with_dag, with_run
from tradewind.model.assets import (
    AliasKey,
    AllOf,
    AnyOf,
    AssetKey,
    AssetSchedule,
    AssetUse,
    AssetWatch,
    Condition,
    watcher_number,
)
from tradewind.model.errors import Conflict
from tradewind.model.partitions import Allowed, FanOut, Fixed, Identity, PartitionRules, Rollup, SegmentWindow
from tradewind.model.rows import NewAssetEvent, NewRun, WaitingPartition, WatcherRow
from tradewind.model.states import RunState, RunType, TaskState
from tradewind.model.waits import TriggerWait
from tradewind.store.port import FullStore, Store

A, B = AssetKey("a", "s3://bucket/a"), AssetKey("b", "s3://bucket/b")


def consumer(store: Store, dag_id: str, condition: Condition, **more: Any) -> None:
    with_dag(store, dag_id, assets=AssetSchedule(condition), **more)


def event(asset: AssetKey = A, at: int = NOW, **more: Any) -> NewAssetEvent:
    return NewAssetEvent(asset.name, asset.uri, asset.group, more.pop("extra", None), at, **more)


def emit(store: Store, *events: NewAssetEvent) -> tuple[list[int], frozenset[str]]:
    return store.record_asset_events(events)


def waiting(store: Store, dag_id: str = "c") -> dict[str, int]:
    return {one.asset.name: one.events for one in store.waiting_assets(dag_id)}


def asset_run(store: Store, run_id: str, dag_id: str = "c") -> NewRun:
    return new_run(store, run_id, dag_id, run_type=RunType.ASSET_TRIGGERED, triggered_by="asset")


def test_a_plan_has_the_condition_of_its_definition(store: Store) -> None:
    consumer(store, "c", A)
    assert store.need_dag("c").assets is not None
    with_dag(store, "c")
    assert store.need_dag("c").assets is None


def test_created_assets_are_taken_once(store: Store) -> None:
    """For listeners: assets that a DAG names, or that a task added under an alias. What is rolled back is left out."""
    store.take_created_assets()
    with_dag(store, "c", assets=AssetSchedule(AnyOf((A, AliasKey("x", "files")))))
    assert set(store.take_created_assets()) == {A, AliasKey("x", "files")}
    consumer(store, "c2", A)
    assert store.take_created_assets() == []
    emit(store, event(B, aliases=("x", "y")), event(B))
    assert sorted(store.take_created_assets(), key=str) == sorted([B, AliasKey("y")], key=str)

    def fails() -> None:
        with store.transaction():
            consumer(store, "c3", AssetKey("never", "s3://never"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert store.take_created_assets() == []


def test_an_event_is_delivered_to_every_dag_that_waits_for_it(store: Store) -> None:
    consumer(store, "c", A)
    consumer(store, "all", AllOf((A, B)))
    consumer(store, "by_name", AssetKey(name="a"))
    consumer(store, "by_uri", AnyOf((B, AssetKey(uri="s3://bucket/a"))))
    consumer(store, "other", AllOf((B, AssetKey("a", "s3://elsewhere/a"))))
    with_dag(store, "reader", asset_uses=(AssetUse("t0", "inlet", A),))
    numbers, consumers = emit(store, event())
    assert consumers == {"c", "all", "by_name", "by_uri"}
    assert len(numbers) == 1
    assert [waiting(store, one) for one in ("c", "all", "by_name", "by_uri", "other", "reader")] == [
        *[{"a": 1}] * 4,
        {},
        {},
    ]


def test_only_what_may_change_a_condition_wakes_a_dag(store: Store) -> None:
    consumer(store, "c", AllOf((A, B)))
    consumer(store, "x", AllOf((AliasKey("daily"), B)))
    assert emit(store, event(A))[1] == {"c"}
    assert emit(store, event(A))[1] == set(), "one of these waits already"
    assert emit(store, event(A, aliases=("daily",)))[1] == {"c", "x"}, "an alias may be new"
    assert waiting(store) == {"a": 3}, "they are delivered all the same"
    numbers, consumers = emit(store, event(B))
    assert consumers == {"c", "x"}
    store.create_asset_run(asset_run(store, "r"), numbers[0])
    assert emit(store, event(A))[1] == {"c"}, "for x the earlier one waits still"
    store.set_paused("c", True, "ann", NOW)
    emit(store, event(B))
    store.set_paused("c", False, "ann", NOW)
    assert emit(store, event(B))[1] == {"c"}, "what came during the pause does not count"


def test_events_have_one_sequence_whatever_the_clock_says(store: Store) -> None:
    consumer(store, "c", AllOf((A, B)))
    first, _ = emit(store, event(A, NOW + 50), event(B, NOW + 10))
    second, _ = emit(store, event(A, NOW))
    assert [*first, *second] == sorted({*first, *second})
    assert [one.id for one in store.asset_events(name="a")] == [first[0], second[0]]
    last = store.waiting_assets("c")[-1]
    assert (last.asset.name, last.last, last.first_at, last.last_at, last.events) == ("a", second[0], NOW, NOW + 50, 2)


def test_a_run_consumes_waiting_events_once(store: Store) -> None:
    consumer(store, "c", A)
    consumer(store, "d", A)
    numbers, _ = emit(store, event(), event(), event())
    row = store.create_asset_run(asset_run(store, "r1"), numbers[1])
    assert row.run_type is RunType.ASSET_TRIGGERED
    assert [one.id for one in store.asset_events_of_run(row.id)] == numbers[:2]
    assert waiting(store) == {"a": 1}
    assert waiting(store, "d") == {"a": 3}, "each consumer has its own"
    with pytest.raises(Conflict, match="no asset event waits for DAG c"):
        store.create_asset_run(asset_run(store, "r2"), numbers[1])
    assert store.find_run("c", "r2") is None
    again = store.create_asset_run(asset_run(store, "r3"), numbers[2])
    assert [one.id for one in store.asset_events_of_run(again.id)] == numbers[2:]


def test_a_run_that_cannot_be_created_consumes_nothing(store: Store) -> None:
    consumer(store, "c", A)
    with_run(store, "taken", "c")
    numbers, _ = emit(store, event())
    with pytest.raises(Conflict, match="already has a run 'taken'"):
        store.create_asset_run(asset_run(store, "taken"), numbers[0])
    assert waiting(store) == {"a": 1}


def test_events_during_a_pause_do_not_count_and_are_not_lost(store: Store) -> None:
    consumer(store, "c", A)
    store.set_paused("c", True, "ann", NOW)
    numbers, consumers = emit(store, event())
    assert consumers == set()
    assert [(one.events, one.counts) for one in store.waiting_assets("c")] == [(1, False)]
    store.set_paused("c", False, "ann", NOW)
    with pytest.raises(Conflict):
        store.create_asset_run(asset_run(store, "r"), numbers[0])
    later, _ = emit(store, event())
    assert [(one.events, one.counts) for one in store.waiting_assets("c")] == [(2, True)]
    row = store.create_asset_run(asset_run(store, "r"), later[0])
    assert [one.id for one in store.asset_events_of_run(row.id)] == [*numbers, *later]


def test_an_inactive_dag_gets_no_events(store: Store) -> None:
    consumer(store, "c", A)
    store.forget_files("dags", ["c.py"], NOW)
    assert emit(store, event())[1] == set()
    assert waiting(store) == {}


def test_events_of_assets_that_left_the_schedule_are_superseded(store: Store) -> None:
    consumer(store, "c", AllOf((A, B)))
    emit(store, event(A), event(B))
    consumer(store, "c", B)
    assert waiting(store) == {"b": 1}
    consumer(store, "c", AllOf((A, B)))
    assert waiting(store) == {"b": 1}, "what was superseded stays so"
    with_dag(store, "c")
    assert waiting(store) == {}


def test_a_success_and_its_events_are_written_together(store: Store) -> None:
    with_dag(store, "p", 1, asset_uses=(AssetUse("t0", "outlet", A),))
    consumer(store, "c", A)
    run = with_run(store, "r1", "p").id
    step(store, run, TaskState.SCHEDULED, TaskState.QUEUED, TaskState.RUNNING)
    emitted = [event(A, source_dag="p", source_run="r1", source_task="t0")]
    good = share(store, run, {0: TaskState.SUCCESS}, asset_events=emitted)
    late = share(store, run, {0: TaskState.SUCCESS}, asset_events=emitted)
    assert commit(store, good).consumers == {"c"}
    assert commit(store, late).stale, "the second write meets another revision"
    assert waiting(store) == {"a": 1}
    (found,) = store.asset_events(uri="s3://bucket/a")
    assert (found.source_dag, found.source_run, found.source_task, found.source_index) == ("p", "r1", "t0", -1)
    assert store.producers(found.asset) == [("p", "t0")]


def test_an_alias_means_all_assets_that_were_emitted_under_it(store: Store) -> None:
    consumer(store, "c", AliasKey("daily"))
    assert emit(store, event(A))[1] == set()
    assert emit(store, event(B, aliases=("daily",)))[1] == {"c"}
    store.create_asset_run(asset_run(store, "r"), 2)
    assert emit(store, event(B))[1] == {"c"}, "it came under the alias before"
    emit(store, event(B))
    (one,) = store.waiting_assets("c")
    assert (one.asset.name, one.aliases, one.events) == ("b", frozenset({"daily"}), 2)
    assert [found.aliases for found in store.asset_events(alias="daily")] == [("daily",)]


def test_an_asset_is_found_by_name_uri_or_number(store: Store) -> None:
    consumer(store, "c", A)
    found = store.find_asset(name="a")
    assert found is not None
    assert found == store.find_asset(uri="s3://bucket/a") == store.find_asset(number=found.id)
    assert store.find_asset(name="x") is None
    assert store.find_asset() is None
    emit(store, event(AssetKey("a", "s3://other")))
    assert store.find_asset(name="a") == found, "one that a DAG names goes before one that none does"
    emit(store, event(AssetKey(name="only")))
    only = store.find_asset(name="only")
    assert only is not None
    assert only.uri == "only"


def test_waiting_events_can_be_dismissed(store: Store) -> None:
    consumer(store, "c", AllOf((A, B)))
    consumer(store, "d", A)
    emit(store, event(A, NOW), event(B, NOW), event(A, NOW + 10))
    a = store.find_asset(name="a")
    assert a is not None
    assert store.drop_waiting_events("c", a.id, NOW + 5, "ann", NOW) == ["c"]
    assert waiting(store) == {"b": 1, "a": 1}
    assert store.drop_waiting_events(None, a.id, None, "ann", NOW) == ["c", "d"]
    assert (waiting(store), waiting(store, "d")) == ({"b": 1}, {})
    assert store.drop_waiting_events("d", None, None, "ann", NOW) == []


def test_the_interval_of_waiting_events_is_that_of_their_runs(store: Store) -> None:
    with_dag(store, "p")
    consumer(store, "c", A)
    for day in (3, 1):
        run = with_run(store, f"r{day}", "p", day)
        numbers, _ = emit(store, event(source_dag="p", source_run=run.run_id, source_task="t0"))
    first, last = store.find_run("p", "r1"), store.find_run("p", "r3")
    assert first is not None
    assert last is not None
    assert store.waiting_interval("c", numbers[-1]) == (first.interval_start, last.interval_end)
    assert store.waiting_interval("p", numbers[-1]) is None


def test_events_are_filtered_by_time_order_and_limit(store: Store) -> None:
    numbers, _ = emit(store, *(event(at=NOW + i) for i in range(5)))
    assert [one.id for one in store.asset_events(name="a", after=NOW + 1, before=NOW + 3)] == numbers[1:4]
    assert [one.id for one in store.asset_events(name="a", ascending=False, limit=2)] == numbers[:2:-1]


def test_old_events_are_deleted_when_nothing_needs_them(store: Store) -> None:
    consumer(store, "c", A)
    numbers, _ = emit(store, event(), event(), event(B), event(B))
    row = store.create_asset_run(asset_run(store, "r1"), numbers[0])
    store.delete_old_runs(NOW + 5, 0, NOW + 5)
    kept = [one.id for one in (*store.asset_events(name="a"), *store.asset_events(name="b"))]
    assert kept == [numbers[0], numbers[1], numbers[3]], "consumed by a run that is kept; waiting; the newest"
    finish(store, row.id, RunState.SUCCESS, NOW)
    with_run(store, "later", "c")
    store.delete_old_runs(NOW + 5, 0, NOW + 5)
    store.delete_old_runs(NOW + 5, 0, NOW + 5)
    assert [one.id for one in store.asset_events(name="a")] == [numbers[1]]
    assert waiting(store) == {"a": 1}


def test_a_deleted_dag_waits_for_nothing(store: Store) -> None:
    consumer(store, "c", A)
    emit(store, event())
    store.delete_dag("c", "ann", NOW)
    assert waiting(store) == {}
    assert emit(store, event())[1] == set()


def test_a_rolled_back_transaction_leaves_nothing(store: Store) -> None:
    consumer(store, "c", A)

    def work() -> None:
        with store.transaction():
            emit(store, event(B, aliases=("daily",)), event(A))
            store.register_file(parsed(definition("c", assets=AssetSchedule(B)), file="c.py"), paused_at_creation=False)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    assert store.find_asset(name="b") is None
    assert waiting(store) == {}
    assert emit(store, event(A)) == ([1], frozenset({"c"}))


def test_an_event_of_a_watcher_counts_once_for_each_asset(store: Store) -> None:
    consumer(store, "c", AllOf((A, B)))
    first, _ = emit(store, event(A, origin="x"), event(B, origin="x"))
    again, consumers = emit(store, event(A, origin="x"), event(B, origin="x"))
    assert (len(first), again, consumers) == (2, [], frozenset())
    emit(store, event(A, origin="y"), event(A))
    assert waiting(store) == {"a": 3, "b": 1}


def test_what_watchers_do_is_kept_by_number(store: Store) -> None:
    epoch = store.begin_epoch("host", 1, "boot", NOW)
    runs = WatcherRow(2**53 - 1, "m.Trigger", "worker", 0, None, None, NOW)
    fails = WatcherRow(7, "m.Other", None, 2, "boom", NOW + 9, NOW)
    for row in (runs, fails._replace(failures=1), fails):
        store.note_watcher(row, epoch)
    assert store.watchers() == [fails, runs]
    store.keep_watchers([runs.number], epoch)
    assert store.watchers() == [runs]


def test_an_asset_shows_its_watchers(store: FullStore) -> None:
    trigger = TriggerWait("m.Trigger")
    watch = AssetWatch("inbox", A.name, A.uri, trigger)
    with_dag(store, "c", assets=AssetSchedule(AllOf((A, B)), watchers=(watch,)))
    number = watcher_number(store.need_dag("c").bundle, trigger)
    epoch = store.begin_epoch("host", 1, "boot", NOW)
    store.note_watcher(WatcherRow(number, "m.Trigger", None, 1, "boom", NOW, NOW), epoch)
    (shown,) = store.need_asset("a", "").watchers
    assert (shown.name, shown.trigger_id, shown.trigger, shown.failures, shown.error) == (
        "inbox",
        number,
        "m.Trigger",
        1,
        "boom",
    )
    assert store.need_asset("b", "").watchers == []


def test_an_event_waits_for_each_key_that_its_mapper_gives(store: Store) -> None:
    window = SegmentWindow(("eu", "us"))
    with_dag(store, "fan", assets=AssetSchedule(A, partitions=PartitionRules(FanOut(Identity(), window, Identity()))))
    with_dag(store, "roll", assets=AssetSchedule(A, partitions=PartitionRules(Rollup(Fixed("all"), window))))
    consumer(store, "plain", A)
    (first, second), consumers = emit(
        store, event(partition_key="eu", partition_date=7), event(at=NOW + 1, partition_key="us", partition_date=7)
    )
    assert consumers == {"fan", "roll"}
    assert waiting(store, "plain") == {}
    (whole,) = store.waiting_partitions("roll")
    asset = store.find_asset(name="a")
    assert asset is not None
    assert whole == WaitingPartition("all", ((asset, frozenset({"eu", "us"})),), ((asset.id, 7),), NOW, second, NOW + 1)
    assert [one.key for one in store.waiting_partitions("fan")] == ["eu", "us"]
    assert store.waiting_partitions("fan", after=second) == []
    assert [one.key for one in store.waiting_partitions("fan", limit=1)] == ["eu"]
    row = store.create_asset_run(replace(asset_run(store, "r", "fan"), partition_key="eu", partition_date=7), first)
    assert (row.partition_key, row.partition_date) == ("eu", 7)
    assert [one.id for one in store.asset_events_of_run(row.id)] == [first]
    assert {one.key: one.last for one in store.waiting_partitions("fan")} == {"eu": second, "us": second}
    with pytest.raises(Conflict):
        store.create_asset_run(replace(asset_run(store, "r2", "fan"), partition_key="eu"), first)
    assert [event.partition_key for event in store.asset_events(name="a")] == ["eu", "us"]


def test_an_event_that_fits_no_key_is_dropped_with_the_reason(store: Store) -> None:
    with_dag(store, "c", assets=AssetSchedule(A, partitions=PartitionRules(Allowed(("eu",)))))
    (number,), consumers = emit(store, event(partition_key="mars"))
    assert consumers == frozenset()
    dropped = store.dropped_asset_event("c")
    assert dropped is not None
    assert dropped[0] == number
    assert "'mars'" in dropped[1]
    emit(store, event(partition_key="eu"))
    assert store.dropped_asset_event("c") is None
    with_dag(store, "c", assets=AssetSchedule(A, partitions=PartitionRules(Allowed(("eu", "us")))))
    assert store.waiting_partitions("c") == []
    dropped = store.dropped_asset_event("c")
    assert dropped is not None
    assert "mappers" in dropped[1]
