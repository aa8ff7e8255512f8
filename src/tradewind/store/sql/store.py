"""The store over a SQL database, put together from its verbs."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager

from tradewind.model.definition import DagDefinition
from tradewind.store.sql.backfills import BackfillVerbs
from tradewind.store.sql.deadlines import DeadlineVerbs
from tradewind.store.sql.edits import EditVerbs
from tradewind.store.sql.engine import Engine
from tradewind.store.sql.keys import KeyVerbs
from tradewind.store.sql.reads import ReadVerbs
from tradewind.store.sql.upkeep import UpkeepVerbs


class SqlStore(EditVerbs, BackfillVerbs, DeadlineVerbs, UpkeepVerbs, KeyVerbs, ReadVerbs):
    """All verbs over one connection; `store.factory` opens it. Not for use by several threads at a time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._definitions: OrderedDict[int, DagDefinition] = OrderedDict()

    def transaction(self) -> AbstractContextManager[None]:
        """Several verbs as one."""
        return self.engine.transaction()

    def release_memory(self) -> None:
        self._definitions.clear()
        self.engine.release_memory()

    def close(self) -> None:
        self.engine.close()
