"""What tasks ask about state stores, answered from the store."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.test_task_requests import Backwards
from tests.unit.store.suite.build import NOW, S, step, with_dag, with_run
from tradewind.model.assets import AssetKey, AssetUse
from tradewind.scheduler.attempts.state_requests import KEY_MAX, VALUE_MAX
from tradewind.scheduler.attempts.task_requests import answer
from tradewind.store.memory import MemoryStore
from tradewind.wire.messages import Failure, GetStateEntry, SetStateEntry, Value

ORDERS = AssetKey("orders", "s3://lake/orders")


@pytest.fixture
def store() -> MemoryStore:
    """A run whose first task runs in the attempt (1, 0, 1)."""
    store = MemoryStore()
    with_dag(store, asset_uses=(AssetUse("t0", "outlet", ORDERS),))
    with_run(store)
    step(store, 1, S.SCHEDULED, S.QUEUED, S.RUNNING)
    return store


def ask(store: MemoryStore, question: Any, fence: int = 1) -> Any:
    return answer(store, Backwards(), question, (1, 0, fence), NOW)


def test_a_task_reads_what_it_has_written(store: MemoryStore) -> None:
    assert ask(store, GetStateEntry(7, "page")) == Value(7, False)
    for _ in ("once", "repeated by a worker host"):
        assert ask(store, SetStateEntry(8, "page", '{"n": 1}', expires_at=NOW + 5)) == Value(8, True)
    assert ask(store, GetStateEntry(9, "page")) == Value(9, True, '{"n": 1}')
    (entry,) = store.task_state_entries(1, "t0", -1)
    assert (entry.at, entry.expires_at) == (NOW, NOW + 5)
    assert ask(store, SetStateEntry(10, "page")) == Value(10, True)
    assert ask(store, SetStateEntry(11, "page")) == Value(11, False)


def test_the_next_attempt_finds_the_values_and_the_one_before_may_not_write(store: MemoryStore) -> None:
    ask(store, SetStateEntry(1, "job", '"j1"'))
    step(store, 1, S.UP_FOR_RETRY, S.SCHEDULED, S.QUEUED, S.RUNNING)
    for late in (SetStateEntry(2, "job", '"j0"'), SetStateEntry(2, None), GetStateEntry(2, "job")):
        assert "not the latest one" in ask(store, late).reason
    assert ask(store, GetStateEntry(3, "job"), fence=2) == Value(3, True, '"j1"')
    assert ask(store, SetStateEntry(4, None), fence=2) == Value(4, True)
    assert store.count_task_state_entries(1, "t0", -1) == 0


def test_values_of_an_asset(store: MemoryStore) -> None:
    assert ask(store, SetStateEntry(1, "seen", "7", "orders", ORDERS.uri)) == Value(1, True)
    assert ask(store, GetStateEntry(2, "seen", uri=ORDERS.uri)) == Value(2, True, "7")
    asset = store.find_asset(name="orders")
    assert asset is not None
    (entry,) = store.asset_state_entries(asset.id)
    assert entry[3:] == ("task", "d", "r1", "t0", -1)
    assert ask(store, SetStateEntry(3, None, None, "orders")) == Value(3, True)
    assert store.asset_state_entries(asset.id) == []
    for question in (GetStateEntry(4, "seen", "order"), SetStateEntry(4, "seen", "1", "order")):
        assert ask(store, question) == Failure(4, "there is no asset 'order'. Did you mean 'orders'?")


@pytest.mark.parametrize("key", ["", "k" * (KEY_MAX + 1)])
def test_keys_have_bounds(store: MemoryStore, key: str) -> None:
    assert f"has 1 to {KEY_MAX} characters; this one has {len(key)}" in ask(store, SetStateEntry(1, key, "1")).reason


def test_values_have_a_bound(store: MemoryStore) -> None:
    value = '"' + "x" * (VALUE_MAX - 2) + '"'
    assert ask(store, SetStateEntry(1, "k", value)).found
    assert f"'k' has {VALUE_MAX + 1}: store the name of a file" in ask(store, SetStateEntry(2, "k", value + " ")).reason
