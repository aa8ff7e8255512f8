"""The store in memory, for `dag.test()`, the test kit and the simulation: the same verbs over a SQLite database without a file.

Nothing survives the process; everything else is as in production, guards, atomic shares and roll-backs included. The schema is
made once for each process and copied into every further store, which takes 0.3 ms instead of 8.
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
        """A store of its own with the same rows: for asking what would happen. Not inside a transaction."""
        copied = MemoryStore()
        self.engine.copy_into(copied.engine)
        return copied


@cache
def empty_database() -> SqliteEngine:
    """A database with the newest schema, to be copied."""
    engine = SqliteEngine(":memory:")
    schema.migrate(engine)
    return engine
