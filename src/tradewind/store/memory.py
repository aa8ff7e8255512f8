"""The store in memory, for `dag.test()`, the test kit and the simulation: the same operations on a SQLite database without a file.

The data ends with the process; everything else is as in production, guards, savepoints and roll-backs included. Each process
applies the migrations once and copies the result into every store, which takes 0.2 ms instead of 8.
"""

from __future__ import annotations

from functools import cache

from tradewind.store.sql import schema
from tradewind.store.sql.dialects.sqlite import SqliteEngine
from tradewind.store.sql.store import SqlStore


class MemoryStore(SqlStore):
    """An empty store with the newest schema. Not for use by several threads at a time."""

    def __init__(self) -> None:
        engine = SqliteEngine(":memory:")
        empty_database().copy_into(engine)
        super().__init__(engine)

    def copy(self) -> MemoryStore:
        """A separate store with the same rows, to try what would happen. Not inside a transaction."""
        copied = MemoryStore()
        self.engine.copy_into(copied.engine)
        return copied


@cache
def empty_database() -> SqliteEngine:
    """A database with the newest schema, to be copied."""
    engine = SqliteEngine(":memory:")
    schema.migrate(engine)
    return engine
