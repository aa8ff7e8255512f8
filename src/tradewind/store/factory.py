"""Opens the store that a URL names, and imports only the dialect of that database.

A URL is `sqlite:///` and the path of a file (`sqlite:////var/lib/tradewind.db`), or only the path, or
`postgresql://user:password@host:port/database`. The name of a driver is ignored: `postgresql+psycopg2://` is the same.
"""

from __future__ import annotations

import importlib
from os import PathLike, fspath
from typing import Any, NamedTuple

from tradewind.model.errors import ConfigError, did_you_mean
from tradewind.store.port import FullStore
from tradewind.store.port.lease import Holder, Lease
from tradewind.store.sql import schema
from tradewind.store.sql.engine import Engine
from tradewind.store.sql.store import SqlStore

_POSTGRES = "tradewind.store.sql.dialects.postgres"
_DIALECTS = {"sqlite": "tradewind.store.sql.dialects.sqlite", "postgresql": _POSTGRES, "postgres": _POSTGRES}
"""Scheme of a URL, without the name of a Python driver → the module whose `connect` opens it."""


_COPIES = {"postgresql": "tradewind.store.sql.dialects.postgres_copy", "postgres": "tradewind.store.sql.dialects.postgres_copy"}
"""Scheme of a URL → the module that copies a SQLite file into it."""

_LEASES = {
    "postgresql": "tradewind.store.sql.dialects.postgres_lease",
    "postgres": "tradewind.store.sql.dialects.postgres_lease",
}
"""Scheme of a URL → the module with the lease of its scheduler."""


class DatabaseOptions(NamedTuple):
    """How to connect; see `settings.sections.Database`. A dialect ignores options that its database does not have."""

    busy_timeout_ms: int = 30_000
    """How long a statement waits for a lock of another process."""
    synchronous: str = "FULL"
    """"FULL": a commit survives a power failure; "NORMAL": a commit survives only the end of a process."""
    max_page_count: int = 0
    """Maximum size of the file in pages of 4 KiB; 0: no limit."""
    cache_kib: int = 16 * 1024
    """Size of the page cache, KiB."""
    holder: str = ""
    """Only for a scheduler's connection to a server: the random text that identifies the scheduler in its lease."""


def open_store(url: str | PathLike[str], *, migrate: bool = True, **options: Any) -> SqlStore:
    """Open the store for writing; create or migrate the database. Only one process may do this at a time (see `cli/lock.py`).

    Args:
        migrate: apply the missing migrations.
        options: fields of `DatabaseOptions`.

    Raises:
        ConfigError: Tradewind cannot use the database that the URL names.
        StoreMismatch: the database comes from a newer release.
        StoreError: the database cannot be opened or written.
    """
    engine = connect(url, DatabaseOptions(**options), read_only=False)
    if migrate:
        schema.migrate(engine)
    schema.check(engine)
    return SqlStore(engine)


def open_reader(url: str | PathLike[str], *, allow_older: bool = False, **options: Any) -> SqlStore:
    """Open the store only for reading; any number of processes may do so, beside the writer. Raises as `open_store`.

    Args:
        allow_older: also open a database with the schema of an older release. Only `back_up` may be called then.
    """
    engine = connect(url, DatabaseOptions(**options), read_only=True)
    schema.check(engine, allow_older=allow_older)
    return SqlStore(engine)


def open_lease(
    url: str | PathLike[str], store: FullStore, holder: str, hostname: str, pid: int, gateway: str = ""
) -> Lease | None:
    """Return the lease that decides which of several schedulers may write; None for a file, which is protected by a lock.

    After the lease is acquired, each transaction of the store begins with a check of the lease. Closing the store releases the
    lease.

    Args:
        store: opened for writing with the same `holder`.
        holder: a random text.
        gateway: address under which other machines reach this scheduler; empty: they cannot reach it.

    Raises:
        StoreError: the database cannot be used now.
    """
    scheme, address = split(fspath(url))
    if scheme not in _LEASES:
        return None
    assert isinstance(store, SqlStore)
    opener = importlib.import_module(_LEASES[scheme]).open_lease
    lease: Lease = opener(address, store.engine, holder, hostname, pid, gateway)
    store.lease = lease
    return lease


def copy_store(path: str | PathLike[str], url: str, **options: Any) -> dict[str, int]:
    """Copy a store from its SQLite file into the database of a server, in one transaction; table → number of rows.

    Args:
        path: path of the file. No other process may write to it. The file is migrated to the schema of this release.
        url: a database with Tradewind's tables and no runs.

    Raises:
        StoreError: nothing was copied.
    """
    open_store(path, **options).close()
    source = connect(path, DatabaseOptions(**options), read_only=True)
    try:
        scheme, address = split(url)
        copied: dict[str, int] = importlib.import_module(_COPIES[scheme]).copy_store(source, address)
        return copied
    finally:
        source.close()


def is_empty(url: str | PathLike[str], **options: Any) -> bool:
    """Whether a database has no tables of Tradewind. Raises as `open_store`."""
    engine = connect(url, DatabaseOptions(**options), read_only=True)
    try:
        return schema.applied(engine) == 0
    finally:
        engine.close()


_FILLED = ("scheduler", "dag", "dag_run", "variable", "connection", "audit")
"""Tables of which at least one has rows after the first use of a database."""


def holds_nothing(url: str | PathLike[str], **options: Any) -> bool:
    """Whether a database has no rows of Tradewind: it has no tables, or only the empty tables of an interrupted move.

    Raises as `open_store`.
    """
    engine = connect(url, DatabaseOptions(**options), read_only=True)
    try:
        return not any(engine.has_table(name) and engine.row(f"SELECT 1 FROM {name} LIMIT 1") for name in _FILLED)
    finally:
        engine.close()


def active_scheduler(url: str | PathLike[str]) -> Holder | None:
    """The active scheduler of a database, on whichever machine; None: there is none, or the database is a file. Raises as
    `open_store`.
    """
    scheme, _ = split(fspath(url))
    if scheme not in _LEASES:
        return None
    engine = connect(url, DatabaseOptions(), read_only=True)
    try:
        found: Holder | None = importlib.import_module(_LEASES[scheme]).active_scheduler(engine)
    finally:
        engine.close()
    return found


def erase(url: str | PathLike[str], **options: Any) -> bool:
    """Delete all tables of Tradewind from a database server; False if there were none. Raises as `open_store`."""
    engine = connect(url, DatabaseOptions(**options), read_only=False)
    try:
        return engine.erase()
    finally:
        engine.close()


def connect(url: str | PathLike[str], options: DatabaseOptions, *, read_only: bool) -> Engine:
    """Connect to the database that a URL names, whichever tables it has. Raises as `open_store`."""
    scheme, address = split(fspath(url))
    engine: Engine = importlib.import_module(_DIALECTS[scheme]).connect(address, options, read_only=read_only)
    return engine


def split(url: str) -> tuple[str, str]:
    """Return the scheme of a URL, and the address to which the dialect connects: for SQLite the path of the file.

    Raises:
        ConfigError: there is no dialect for the scheme.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return "sqlite", url
    scheme = scheme.partition("+")[0]
    if scheme not in _DIALECTS:
        raise ConfigError(
            f"the database URL begins with {scheme!r}; possible are: {', '.join(_DIALECTS)}.{did_you_mean(scheme, list(_DIALECTS))}"
        )
    return scheme, rest.removeprefix("/") if scheme == "sqlite" else url
