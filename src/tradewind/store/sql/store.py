"""The store over a SQL database: one class with the operations of all subjects."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager
from typing import Any

from tradewind.model.definition import DagDefinition
from tradewind.store.port.lease import Lease
from tradewind.store.sql import schema
from tradewind.store.sql.backfills import BackfillOperations
from tradewind.store.sql.deadlines import DeadlineOperations
from tradewind.store.sql.edits import EditOperations
from tradewind.store.sql.engine import Engine, Row
from tradewind.store.sql.imports import ImportOperations
from tradewind.store.sql.inputs import InputOperations
from tradewind.store.sql.keys import KeyOperations
from tradewind.store.sql.lists import ListOperations
from tradewind.store.sql.retention import RetentionOperations
from tradewind.store.sql.state_stores import StateStoreOperations


class SqlStore(
    EditOperations,
    InputOperations,
    BackfillOperations,
    DeadlineOperations,
    RetentionOperations,
    KeyOperations,
    StateStoreOperations,
    ImportOperations,
    ListOperations,
):
    """All operations over one connection; `store.factory` opens it. Only one thread at a time may use it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lease: Lease | None = None
        """The lease of the scheduler that writes with this store; released when the store is closed."""
        self.created_assets = []
        self._shown_dags: frozenset[str] | None = None
        self._definitions: OrderedDict[int, DagDefinition] = OrderedDict()

    def schema_number(self) -> int:
        return schema.applied(self.engine)

    def settings(self) -> dict[str, Any]:
        return self.engine.settings()

    def size(self) -> int:
        return self.engine.size()

    def kind(self) -> dict[str, Any]:
        return self.engine.kind()

    def problems(self, at_most: int) -> list[str]:
        return self.engine.problems(at_most)

    def back_up(self, file: str) -> None:
        self.engine.back_up(file)

    def query(self, sql: str) -> tuple[list[str], list[Row]]:
        return self.engine.query(sql)

    def show_only(self, dag_ids: frozenset[str]) -> None:
        if dag_ids != self._shown_dags:
            self.engine.show_only(dag_ids)
            self._shown_dags = dag_ids

    @property
    def is_current(self) -> bool:
        return self.engine.is_current

    def replaced(self) -> str | None:
        return self.engine.replaced()

    def transaction(self) -> AbstractContextManager[None]:
        return self.engine.transaction()

    def release_memory(self) -> None:
        self._definitions.clear()
        self.engine.release_memory()

    def close(self) -> None:
        if self.lease is not None:
            self.lease.release()
        self.engine.close()
