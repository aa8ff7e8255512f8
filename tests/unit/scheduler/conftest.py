"""Every test of this folder that takes a bench runs on both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.scheduler.bench import Bench
from tradewind.store.memory import MemoryStore
from tradewind.store.port import Store
from tradewind.store.sql.store import SqliteStore

MakeBench = Callable[..., Bench]


@pytest.fixture(params=["sqlite", "memory"])
def make_bench(request: pytest.FixtureRequest) -> Iterator[MakeBench]:
    """Makes benches; arguments are settings of the scheduler."""
    stores: list[Store] = []

    def make(**config: Any) -> Bench:
        store: Store = MemoryStore() if request.param == "memory" else SqliteStore.open(":memory:")
        stores.append(store)
        return Bench(store, **config)

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    return make_bench()
