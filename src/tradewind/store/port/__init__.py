"""The interfaces of the store: `Store` for the scheduler, which writes, and `Reader` for the API and the command line.

Each subject has a module with two protocols: what can be read, and what can be written besides. `RowReader` is all that can be
read as rows, `Reader` adds the lists that people are shown. Code that only reads takes a reader.

A method that writes has its whole effect or none, and checks what it expects of the rows. Errors are `model.errors.StoreError` and
its subclasses, besides those that a method names. Every store passes the suite in tests/unit/store/suite.
"""

from __future__ import annotations

from typing import Protocol

from tradewind.store.port.assets import AssetReader, AssetStore
from tradewind.store.port.backfills import BackfillReader, BackfillStore
from tradewind.store.port.dags import DagReader, DagStore
from tradewind.store.port.database import DatabaseReader, DatabaseStore
from tradewind.store.port.edits import EditReader, EditStore
from tradewind.store.port.imports import ImportStore
from tradewind.store.port.inputs import InputReader, InputStore
from tradewind.store.port.keys import KeyReader, KeyStore
from tradewind.store.port.lists import ListReader
from tradewind.store.port.outbox import OutboxReader, OutboxStore
from tradewind.store.port.retention import RetentionReader, RetentionStore
from tradewind.store.port.runs import RunReader, RunStore
from tradewind.store.port.services import ServiceReader, ServiceStore
from tradewind.store.port.state_stores import StateStoreReader, StateStoreWriter


class RowReader(
    RunReader,
    DagReader,
    EditReader,
    InputReader,
    BackfillReader,
    AssetReader,
    KeyReader,
    StateStoreReader,
    ServiceReader,
    OutboxReader,
    RetentionReader,
    DatabaseReader,
    Protocol,
):
    """All that can be read as rows (`model.rows`)."""


class Reader(RowReader, ListReader, Protocol):
    """All that can be read: rows, and lists with Airflow's field names."""


class Store(
    RowReader,
    RunStore,
    DagStore,
    EditStore,
    InputStore,
    BackfillStore,
    AssetStore,
    KeyStore,
    StateStoreWriter,
    ImportStore,
    ServiceStore,
    OutboxStore,
    RetentionStore,
    DatabaseStore,
    Protocol,
):
    """All that the scheduler reads and writes."""


class FullStore(Store, ListReader, Protocol):
    """A store that also answers lists: for commands that write without a scheduler."""
