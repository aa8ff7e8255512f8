"""The store in memory, for `dag.test()`, the test kit and the simulation: the same operations on a SQLite database without a file.

The data exists as long as the process; all else is as in production, including guards, savepoints and roll-backs. Each process
applies the migrations once and copies the result into every store, which takes 0.2 ms instead of 8 ms.
"""

from __future__ import annotations

from functools import cache

from tradewind.store.sql import schema
from tradewind.store.sql.dialects.sqlite import SqliteEngine
from tradewind.store.sql.store import SqlStore


class MemoryStore(SqlStore):
    """An empty store with the newest schema. Only one thread at a time may use it."""

    def __init__(self) -> None:
        engine = SqliteEngine(":memory:")
        empty_database().copy_into(engine)
        super().__init__(engine)

    def copy(self) -> MemoryStore:
        """Return a separate store with the same rows, for experiments. Not inside a transaction."""
        copied = MemoryStore()
        self.engine.copy_into(copied.engine)
        return copied


@cache
def empty_database() -> SqliteEngine:
    """Return a database with the newest schema, which is to be copied."""
    engine = SqliteEngine(":memory:")
    schema.migrate(engine)
    return engine
