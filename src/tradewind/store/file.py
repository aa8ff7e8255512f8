"""What is asked of a database file without the verbs: they would take longer to import than the answer takes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

SIDE_FILES = ("-shm", "-wal")
"""Endings of the files that stand beside a database file."""

PATIENCE_SECONDS = 0.5
"""How long a query waits for another process's lock."""


def first_column(path: str, sql: str, parameters: tuple[object, ...]) -> list[str]:
    """The first column of what a query answers; nothing where there is no database. Raises the database's own errors."""
    if not os.path.exists(path):
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=PATIENCE_SECONDS)) as database:
        return [str(row[0]) for row in database.execute(sql, parameters)]


def library_version() -> dict[str, str]:
    """The database's name and the version of its library."""
    return {"sqlite": sqlite3.sqlite_version}


def shell_command(path: str, sql: str) -> list[str]:
    """The program that opens a database file for reading, with its arguments; with SQL it carries that out and ends."""
    return ["sqlite3", "-readonly", path, *([sql] if sql else [])]
