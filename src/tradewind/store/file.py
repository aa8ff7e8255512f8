"""Simple queries to a database, for commands that are too short to import the store."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from tradewind.model.database_urls import on_server

SIDE_FILES = ("-shm", "-wal")
"""Endings of the files that SQLite keeps beside a database file."""

LOCK_TIMEOUT_SECONDS = 0.5
"""Seconds for which a query waits for a lock of another process."""


def first_column(path: str, sql: str, parameters: tuple[object, ...]) -> list[str]:
    """The first column of a query's rows; empty if there is no database file. `path`: path of a file, or URL of a server.

    Raises the errors of the sqlite3 module, or StoreError for a server.
    """
    if on_server(path):
        from tradewind.store.factory import DatabaseOptions, connect  # lazy import: a file needs neither

        engine = connect(path, DatabaseOptions(), read_only=True)
        try:
            return [str(row[0]) for row in engine.rows(sql, parameters)]
        finally:
            engine.close()
    if not os.path.exists(path):
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=LOCK_TIMEOUT_SECONDS)) as database:
        return [str(row[0]) for row in database.execute(sql, parameters)]


def library_version() -> dict[str, str]:
    """The database's name and the version of its library."""
    return {"sqlite": sqlite3.sqlite_version}


def shell_command(path: str, sql: str) -> list[str]:
    """The command line that opens a database file for reading; with SQL, it executes the SQL and ends."""
    return ["sqlite3", "-readonly", path, *([sql] if sql else [])]
