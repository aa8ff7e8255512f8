"""Fixtures of this folder: schedulers over a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.scheduler.bench import Bench
from tradewind.store.memory import MemoryStore
from tradewind.store.port import Store

MakeBench = Callable[..., Bench]


@pytest.fixture
def make_bench() -> Iterator[MakeBench]:
    """Return a function that creates benches; its arguments are settings of the scheduler."""
    stores: list[Store] = []

    def make(**config: Any) -> Bench:
        store = MemoryStore()
        stores.append(store)
        return Bench(store, **config)

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    return make_bench()
