"""Opens the store that a URL names, and imports the dialect of that database only.

A URL is `sqlite:///` and the path of a file (`sqlite:////var/lib/tradewind.db`), or only the path.
"""

from __future__ import annotations

import importlib
from os import PathLike, fspath
from typing import Any, NamedTuple

from tradewind.model.errors import ConfigError, did_you_mean
from tradewind.store.sql import schema
from tradewind.store.sql.engine import Engine
from tradewind.store.sql.store import SqlStore

_DIALECTS = {"sqlite": "tradewind.store.sql.dialects.sqlite"}
"""Scheme of a URL → the module whose `connect` opens it."""


class DatabaseOptions(NamedTuple):
    """How to connect; see `settings.sections.Database`. A dialect ignores options that its database does not have."""

    busy_timeout_ms: int = 30_000
    """How long a statement waits for a lock of another process."""
    synchronous: str = "FULL"
    """"FULL": a commit survives a power failure; "NORMAL": a commit survives the end of any process."""
    max_page_count: int = 0
    """Largest size of the file in pages of 4 KiB; 0: no limit."""
    cache_kib: int = 16 * 1024
    """Size of the page cache, KiB."""


def open_store(url: str | PathLike[str], *, migrate: bool = True, **options: Any) -> SqlStore:
    """Open the store for writing; create or migrate the database. Only one process may do this at a time (see `cli/lock.py`).

    Args:
        migrate: apply the migrations that the database lacks.
        options: fields of `DatabaseOptions`.

    Raises:
        ConfigError: the URL names no database that Tradewind can use.
        StoreMismatch: the database comes from a newer release.
        StoreError: the database cannot be opened or written.
    """
    engine = _connect(url, DatabaseOptions(**options), read_only=False)
    if migrate:
        schema.migrate(engine)
    schema.check(engine)
    return SqlStore(engine)


def open_reader(url: str | PathLike[str], **options: Any) -> SqlStore:
    """Open the store for reading only; any number of processes may, beside the writer. Raises as `open_store`."""
    engine = _connect(url, DatabaseOptions(**options), read_only=True)
    schema.check(engine)
    return SqlStore(engine)


def _connect(url: str | PathLike[str], options: DatabaseOptions, *, read_only: bool) -> Engine:
    scheme, address = split(fspath(url))
    engine: Engine = importlib.import_module(_DIALECTS[scheme]).connect(address, options, read_only=read_only)
    return engine


def split(url: str) -> tuple[str, str]:
    """The scheme of a URL, and the address that the dialect connects to: for SQLite the path of the file.

    Raises:
        ConfigError: there is no dialect for the scheme.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return "sqlite", url
    if scheme not in _DIALECTS:
        raise ConfigError(
            f"the database URL begins with {scheme!r}; possible are: {', '.join(_DIALECTS)}.{did_you_mean(scheme, list(_DIALECTS))}"
        )
    return scheme, rest.removeprefix("/") if scheme == "sqlite" else url
