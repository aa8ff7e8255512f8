"""The interfaces of the store: `Store` for the scheduler, which writes, and `Reader` for the API and the command line.

Each subject has a module with two protocols: one with the methods that read, one with the methods that write. `RowReader` has all
methods that return rows, `Reader` adds the lists for people. Code that only reads takes a reader.

A method that writes has its whole effect or none, and checks the rows that it depends on. Errors are `model.errors.StoreError` and
its subclasses, and those that a method names. Every store passes the tests in tests/unit/store/suite.
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
    """All methods that read rows (`model.rows`)."""


class Reader(RowReader, ListReader, Protocol):
    """All methods that read: rows, and lists with Airflow's field names."""


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
    """All methods that the scheduler uses."""


class FullStore(Store, ListReader, Protocol):
    """A store that also answers lists: for commands that write without a scheduler."""
