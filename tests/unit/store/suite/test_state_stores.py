"""The state stores of tasks and assets."""

from __future__ import annotations

import pytest

from tests.unit.store.suite.build import NOW, S, finish, rows, step, with_dag, with_run
from tradewind.model.assets import AssetKey, AssetUse
from tradewind.model.errors import NotFound
from tradewind.model.rows import AssetStateEntry, TaskStateEntry
from tradewind.store.port import Store


def entry(key: str, value: bytes = b"1", expires_at: int | None = None, at: int = NOW) -> TaskStateEntry:
    return TaskStateEntry(key, value, at, expires_at)


def test_values_of_a_task_instance_by_key(store: Store) -> None:
    with_dag(store)
    one, two = with_run(store), with_run(store, "r2")
    for key in ("b", "a", "c"):
        store.set_task_state_entry(one.id, "t0", -1, entry(key))
    store.set_task_state_entry(one.id, "t1", -1, entry("a", b'"other task"'))
    store.set_task_state_entry(two.id, "t0", -1, entry("a", b'"other run"'))
    assert [found.key for found in store.task_state_entries(one.id, "t0", -1)] == ["a", "b", "c"]
    assert [found.key for found in store.task_state_entries(one.id, "t0", -1, limit=1, offset=1)] == ["b"]
    assert store.task_state_entries(one.id, "t0", -1, key="b") == [entry("b")]
    assert store.task_state_entries(one.id, "t0", 0) == []
    assert store.count_task_state_entries(one.id, "t0", -1) == 3


def test_a_value_written_again_replaces_the_first(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    store.set_task_state_entry(run.id, "t0", -1, entry("a", expires_at=NOW + 1))
    store.set_task_state_entry(run.id, "t0", -1, entry("a", b'{"n": 2}', at=NOW + 5))
    assert store.task_state_entries(run.id, "t0", -1) == [entry("a", b'{"n": 2}', None, NOW + 5)]


@pytest.mark.parametrize(("run", "task_id", "map_index"), [(1, "nobody", -1), (1, "t0", 4), (9, "t0", -1)])
def test_a_task_instance_that_does_not_exist_keeps_nothing(store: Store, run: int, task_id: str, map_index: int) -> None:
    with_dag(store)
    assert with_run(store).id == 1
    with pytest.raises(NotFound, match=f"no task instance of '{task_id}'"):
        store.set_task_state_entry(run, task_id, map_index, entry("a"))


def test_deleting_one_value_or_all(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    for key in ("a", "b", "c"):
        store.set_task_state_entry(run.id, "t0", -1, entry(key))
    store.set_task_state_entry(run.id, "t1", -1, entry("a"))
    assert store.delete_task_state_entries(run.id, "t0", -1, "a") == 1
    assert store.delete_task_state_entries(run.id, "t0", -1, "a") == 0
    assert store.delete_task_state_entries(run.id, "t0", 3) == 0, "another map index"
    assert store.delete_task_state_entries(run.id, "t0", None) == 2
    assert store.count_task_state_entries(run.id, "t1", -1) == 1


def test_expired_values_are_deleted_a_few_at_a_time(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    for number, expires_at in enumerate((NOW - 2, NOW - 1, NOW, NOW + 1, None)):
        store.set_task_state_entry(run.id, "t0", -1, entry(f"k{number}", expires_at=expires_at))
    assert store.delete_expired_task_state(NOW, 1) == 1
    assert store.delete_expired_task_state(NOW, 9) == 1
    assert store.delete_expired_task_state(NOW, 9) == 0
    assert [found.key for found in store.task_state_entries(run.id, "t0", -1)] == ["k2", "k3", "k4"]


def test_only_the_latest_attempt_is_known(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED)
    slot, row = next((slot, row) for slot, row in rows(store, run.id).items() if row.fence)
    assert store.instance_of_attempt(run.id, slot, row.fence) == (f"t{slot}", -1)
    assert store.instance_of_attempt(run.id, slot, row.fence - 1) is None
    assert store.instance_of_attempt(run.id + 1, slot, row.fence) is None


def test_a_deleted_run_takes_its_values_with_it(store: Store) -> None:
    with_dag(store)
    first, last = with_run(store), with_run(store, "r2")
    for run in (first, last):
        store.set_task_state_entry(run.id, "t0", -1, entry("a"))
        finish(store, run.id)
    assert store.delete_run(first.id, "ada", NOW).runs == 1
    assert store.count_task_state_entries(first.id, "t0", -1) == 0
    assert store.count_task_state_entries(last.id, "t0", -1) == 1


# --- assets -----------------------------------------------------------------------------------------------------------


def test_values_of_an_asset_stay_with_who_wrote_them(store: Store) -> None:
    orders, stock = AssetKey("orders", "s3://lake/orders"), AssetKey("stock", "s3://lake/stock")
    with_dag(store, asset_uses=(AssetUse("t0", "outlet", orders), AssetUse("t0", "inlet", stock)))
    one, two = store.find_asset(name="orders"), store.find_asset(name="stock")
    assert one is not None
    assert two is not None
    by_task = AssetStateEntry("seen", b"7", NOW, "task", "d", "r1", "t0", -1)
    by_person = AssetStateEntry("mark", b'"x"', NOW, "api")
    for written in (by_task, by_person, by_person._replace(key="more")):
        store.set_asset_state_entry(one.id, written)
    store.set_asset_state_entry(two.id, by_task)
    store.set_asset_state_entry(one.id, by_task._replace(value=b"8", at=NOW + 1))
    assert store.asset_state_entries(one.id, limit=2) == [by_person, by_person._replace(key="more")]
    assert store.asset_state_entries(one.id, key="seen") == [by_task._replace(value=b"8", at=NOW + 1)]
    assert store.count_asset_state_entries(one.id) == 3
    assert store.delete_asset_state_entries(one.id, "seen") == 1
    assert store.delete_asset_state_entries(one.id) == 2
    assert store.asset_state_entries(two.id) == [by_task]


def test_an_asset_that_does_not_exist_keeps_nothing(store: Store) -> None:
    with pytest.raises(NotFound, match="no asset with id 7"):
        store.set_asset_state_entry(7, AssetStateEntry("a", b"1", NOW, "api"))
