"""One connection to the SQLite file: pragmas, transactions, and errors in the family of ours.

Plain SQL on the standard library's module, on purpose: the scheduler, the command line and the API share these verbs, and an
abstraction over databases would cost each of them 24 MB and 170 ms of start (measured) to write the same statements. The
statements stay in the portable subset (named columns, ON CONFLICT, no vendor functions), see docs/explanation/store.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tradewind.model.errors import StoreBusy, StoreError, StoreFull, StoreRefused, StoreUnwritable
from tradewind.observe.failpoints import fp

Row = tuple[Any, ...]

WAL_KEPT = 16 * 1024 * 1024
"""Bytes. While somebody reads for long the WAL cannot begin anew and grows; afterwards it is cut to this."""


class Engine:
    """A connection and its discipline.

    Args:
        path: the database file, or ":memory:".
        busy_timeout_ms: how long a statement waits for another process's lock.
        synchronous: "FULL" (a commit survives loss of power) or "NORMAL" (it survives the loss of any process).
        max_page_count: limit of the file in pages of 4 KiB; 0 is none.
        read_only: open for reading; writes raise.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        busy_timeout_ms: int = 30_000,
        synchronous: str = "FULL",
        max_page_count: int = 0,
        read_only: bool = False,
    ) -> None:
        self.path = str(path)
        self.read_only = read_only
        self._busy_timeout_ms = busy_timeout_ms
        try:
            if read_only:
                self.db = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)
            else:
                self.db = sqlite3.connect(self.path, isolation_level=None, cached_statements=256, check_same_thread=False)
            execute = self.db.execute
            execute(f"PRAGMA busy_timeout = {busy_timeout_ms:d}")
            if not read_only:
                execute("PRAGMA journal_mode = WAL")
                execute(f"PRAGMA synchronous = {'NORMAL' if synchronous == 'NORMAL' else 'FULL'}")
                execute("PRAGMA wal_autocheckpoint = 2000")
                execute(f"PRAGMA journal_size_limit = {WAL_KEPT:d}")
                if max_page_count:
                    execute(f"PRAGMA max_page_count = {max_page_count:d}")
            execute("PRAGMA temp_store = MEMORY")
            execute("PRAGMA cache_size = -16384")
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def close(self) -> None:
        self.db.close()

    def pragmas(self) -> dict[str, Any]:
        """What is really in force on this connection."""
        names = ("journal_mode", "synchronous", "busy_timeout", "wal_autocheckpoint", "max_page_count", "page_size")
        return {name: self.db.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

    def rows(self, sql: str, parameters: Any = ()) -> list[Row]:
        try:
            return self.db.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def row(self, sql: str, parameters: Any = ()) -> Row | None:
        try:
            found: Row | None = self.db.execute(sql, parameters).fetchone()
            return found
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def run(self, sql: str, parameters: Any = ()) -> int:
        """Execute one statement; the number of rows it changed."""
        return self.db.execute(sql, parameters).rowcount

    def insert(self, sql: str, parameters: Any = ()) -> int:
        """Execute one INSERT; the id of the new row."""
        return self.db.execute(sql, parameters).lastrowid or 0

    def many(self, sql: str, parameters: Any) -> int:
        """Execute one statement for each tuple; the number of rows changed in all."""
        return self.db.executemany(sql, parameters).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """BEGIN IMMEDIATE … COMMIT. Any exception rolls back; SQLite's become ours. Inside another transaction it joins it,
        and an exception takes back only this part: a verb that fails leaves nothing behind, even if its caller goes on.

        Raises:
            StoreBusy, StoreFull, StoreError: nothing was written.
        """
        db = self.db
        if db.in_transaction:
            try:
                with self.savepoint():
                    yield
            except sqlite3.Error as error:
                raise translate(error, self.path) from error
            return
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        try:
            yield
            fp("store.before_commit")
            db.execute("COMMIT")
            fp("store.after_commit")
        except BaseException as error:
            if db.in_transaction:
                _roll_back(db)
            if isinstance(error, sqlite3.Error):
                raise translate(error, self.path) from error
            raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Inside a transaction: this part is written whole or not at all."""
        db = self.db
        db.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK TO part")
                db.execute("RELEASE part")
            raise
        db.execute("RELEASE part")


def _roll_back(db: sqlite3.Connection) -> None:
    """A disk that fails may fail here too; SQLite has rolled back by itself then."""
    try:
        db.execute("ROLLBACK")
    except sqlite3.Error:
        pass


def translate(error: sqlite3.Error, path: str) -> StoreError:
    """SQLite's error as one of ours, with a sentence that says what to do."""
    text = str(error)
    if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError | sqlite3.ProgrammingError):
        return StoreRefused(f"the database {path} does not take this: {text}")
    if "malformed" in text or "not a database" in text:
        return StoreError(
            f"the database {path} is damaged ({text}). Keep the file, put a backup in its place, or take out what can be read: "
            f"sqlite3 {path} .recover | sqlite3 rescued.db"
        )
    if "locked" in text or "busy" in text:
        return StoreBusy(
            f"the database {path} is held by another process ({text}); it is tried again. "
            "If it stays so, find the holder with: fuser -v " + path
        )
    if "disk I/O" in text:
        return StoreFull(
            f"the disk of the database {path} has no room, or fails ({text}); nothing was lost. "
            "Free disk space, or look at the system's log; work goes on by itself when it can be written again."
        )
    if "full" in text:
        return StoreFull(
            f"the database {path} cannot grow ({text}); nothing was lost. "
            "Free disk space or raise database.max_page_count; work goes on by itself then."
        )
    if "readonly" in text or "unable to open" in text:
        return StoreUnwritable(
            f"the database {path} cannot be written ({text}); check its owner and permissions, and whether its disk is mounted "
            "read-only. Work goes on by itself when it can be written again."
        )
    return StoreError(f"the database {path} answered: {text}")
