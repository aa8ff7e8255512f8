"""Every test of this folder runs on every kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.store.factory import open_store
from tradewind.store.memory import MemoryStore
from tradewind.store.port import Store


@pytest.fixture(params=["file", "memory", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    opened: Store
    if request.param == "memory":
        opened = MemoryStore()
    elif request.param == "postgres":
        opened = open_store(request.getfixturevalue("postgres_url"))
    else:
        opened = open_store(tmp_path / "tradewind.db", synchronous="NORMAL")
    yield opened
    opened.close()
