"""The embedded store, put together."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager
from pathlib import Path

from tradewind.model.definition import DagDefinition
from tradewind.store import schema
from tradewind.store.sql.backfills import BackfillVerbs
from tradewind.store.sql.deadlines import DeadlineVerbs
from tradewind.store.sql.edits import EditVerbs
from tradewind.store.sql.engine import Engine
from tradewind.store.sql.keys import KeyVerbs
from tradewind.store.sql.reads import ReadVerbs
from tradewind.store.sql.upkeep import UpkeepVerbs


class SqliteStore(EditVerbs, BackfillVerbs, DeadlineVerbs, UpkeepVerbs, KeyVerbs, ReadVerbs):
    """All verbs over one SQLite file. Not for use by several threads at a time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._definitions: OrderedDict[int, DagDefinition] = OrderedDict()

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        busy_timeout_ms: int = 30_000,
        synchronous: str = "FULL",
        max_page_count: int = 0,
        migrate: bool = True,
    ) -> SqliteStore:
        """Open for writing, creating or migrating the file. Only one process may do this at a time (see `cli/lock.py`).

        Raises:
            StoreMismatch: the file comes from a newer release.
            StoreError: it cannot be opened or written.
        """
        engine = Engine(path, busy_timeout_ms=busy_timeout_ms, synchronous=synchronous, max_page_count=max_page_count)
        if migrate:
            schema.migrate(engine)
        schema.check(engine)
        return cls(engine)

    @classmethod
    def open_reader(cls, path: Path | str, *, busy_timeout_ms: int = 30_000) -> SqliteStore:
        """Open for reading only; any number of processes may, beside the writer."""
        engine = Engine(path, busy_timeout_ms=busy_timeout_ms, read_only=True)
        schema.check(engine)
        return cls(engine)

    def transaction(self) -> AbstractContextManager[None]:
        """Several verbs as one."""
        return self.engine.transaction()

    def release_memory(self) -> None:
        self._definitions.clear()
        self.engine.run("PRAGMA shrink_memory")

    def close(self) -> None:
        self.engine.close()
