"""SQLite: one connection to the database file, its pragmas and transactions, and its errors as ours.

Plain SQL on the standard library's module, on purpose: the scheduler, the command line and the API share these verbs, and an
abstraction over databases would cost each of them 24 MB and 170 ms of start (measured) to write the same statements; see
docs/explanation/decisions.md.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.model.errors import (
    StatementError,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreInterrupted,
    StoreRefused,
    StoreUnwritable,
    TradewindError,
)
from tradewind.store.sql.engine import Engine, Row

if TYPE_CHECKING:
    from tradewind.store.factory import DatabaseOptions

WAL_KEPT = 16 * 1024 * 1024
"""Bytes. While somebody reads for long the WAL cannot begin anew and grows; afterwards it is cut to this."""


_STEPS = 20_000
"""Instructions of SQLite's machine between two looks at the time: some milliseconds."""


class SqliteDialect:
    """SQLite carries out the common form of statements as it stands."""

    name = "sqlite"
    ordered_join = "CROSS JOIN"

    def render(self, statement: str) -> str:
        return statement

    def index_hint(self, index: str) -> str:
        return f" INDEXED BY {index}"

    def contains(self, column: str) -> str:
        return f"{column} LIKE ?"  # SQLite's LIKE does not tell a from A

    def translate(self, error: Exception, database: str) -> TradewindError:
        assert isinstance(error, sqlite3.Error)
        return translate(error, database)


SQLITE = SqliteDialect()


class SqliteEngine(Engine):
    """A connection to a SQLite database.

    Args:
        path: the database file, or ":memory:".
        busy_timeout_ms: how long a statement waits for another process's lock.
        synchronous: "FULL" (a commit survives loss of power) or "NORMAL" (it survives the loss of any process).
        max_page_count: limit of the file in pages of 4 KiB; 0 is none.
        read_only: open for reading; writes raise.
        cache_kib: pages of the file kept in memory, KiB.
    """

    dialect = SQLITE
    errors = (sqlite3.Error,)

    def __init__(
        self,
        path: Path | str,
        *,
        busy_timeout_ms: int = 30_000,
        synchronous: str = "FULL",
        max_page_count: int = 0,
        read_only: bool = False,
        cache_kib: int = 16 * 1024,
    ) -> None:
        self.path = str(path)
        self.read_only = read_only
        self._busy_timeout_ms = busy_timeout_ms
        try:
            if read_only:
                self.db = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)
            else:
                _make_private(self.path)
                self.db = sqlite3.connect(self.path, isolation_level=None, cached_statements=256, check_same_thread=False)
            self._identity = _identity(self.path)
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
            execute(f"PRAGMA cache_size = -{cache_kib:d}")
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def close(self) -> None:
        self.db.close()

    @property
    def is_current(self) -> bool:
        """Whether the file at our path is still the one that is open. Costs one `stat`."""
        return self._identity is None or _identity(self.path) == self._identity

    def replaced(self) -> str | None:
        if self.is_current:
            return None
        what = "was deleted" if _identity(self.path) is None else "was replaced by another file"
        try:
            copy = f"{self.path}.saved-{os.getpid()}-{time.time_ns() // 1_000_000_000}"
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self.db.execute("VACUUM INTO ?", (copy,))
            saved = f"its content is saved in {copy}"
        except (OSError, sqlite3.Error) as error:
            saved = f"its content could not be saved ({error})"
        return f"the database {self.path} {what} while it was in use; {saved}."

    def copy_into(self, other: Engine) -> None:
        assert isinstance(other, SqliteEngine)
        self.db.backup(other.db)

    def back_up(self, file: str) -> None:
        self.rows("VACUUM INTO ?", (file,))

    def problems(self, at_most: int) -> list[str]:
        return [text for (text,) in self.rows(f"PRAGMA integrity_check({at_most:d})") if text != "ok"]

    def has_table(self, name: str) -> bool:
        return self.row("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)) is not None

    def release_memory(self) -> None:
        self.run("PRAGMA shrink_memory")

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        deadline = time.monotonic() + seconds
        self.db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        try:
            yield
        finally:
            self.db.set_progress_handler(None, 0)

    def query(self, sql: str) -> tuple[list[str], list[Row]]:
        try:
            cursor = self.db.execute(sql)
            return [column[0] for column in cursor.description or ()], cursor.fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the statement failed: {error}") from None

    def settings(self) -> dict[str, Any]:
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
        return self.db.execute(sql, parameters).rowcount

    def insert(self, sql: str, parameters: Any = ()) -> int:
        return self.db.execute(sql, parameters).lastrowid or 0

    def many(self, sql: str, parameters: Any) -> int:
        return self.db.executemany(sql, parameters).rowcount

    @property
    def in_transaction(self) -> bool:
        return self.db.in_transaction

    def begin(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.db.execute("COMMIT")

    def roll_back(self) -> None:
        if self.db.in_transaction:
            try:
                self.db.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # SQLite has rolled back by itself

    @contextmanager
    def savepoint(self) -> Iterator[None]:
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


def connect(path: str, options: DatabaseOptions, *, read_only: bool) -> SqliteEngine:
    """Open the database file at a path; what is opened for writing is made where there is none."""
    return SqliteEngine(path, read_only=read_only, **options._asdict())


def _make_private(path: str) -> None:
    """Make the file of a new database with mode 0600, whatever the umask; SQLite gives its side files the same mode."""
    if path == ":memory:" or path.startswith("file:"):
        return
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return  # it exists, or cannot be made: SQLite says why
    try:
        os.fchmod(file, 0o600)
    finally:
        os.close(file)


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode of a file; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


_KINDS: dict[type[TradewindError], tuple[int, ...]] = {
    StoreBusy: (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
    StoreFull: (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
    StoreUnwritable: (
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_NOLFS,
    ),
    StoreRefused: (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG),
    StoreInterrupted: (sqlite3.SQLITE_INTERRUPT,),
    StoreError: (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_ABORT,
        sqlite3.SQLITE_SCHEMA,
    ),
}
"""What SQLite's result codes mean for us. Any other one, or none, is a fault of ours: a statement that it does not understand."""

_KIND_OF = {code: kind for kind, codes in _KINDS.items() for code in codes}


def translate(error: sqlite3.Error, path: str) -> TradewindError:
    """SQLite's error as one of ours, by its result code, with a sentence that says what to do."""
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    code = None if extended is None else extended & 0xFF
    text = f"{error} [{name}]"
    kind = StatementError if code is None else _KIND_OF.get(code, StatementError)
    if kind is StoreRefused:
        return StoreRefused(f"the database {path} does not take this: {text}")
    if kind is StoreInterrupted:
        return StoreInterrupted(f"the database {path} was asked something that took too long; it was given up ({text})")
    if kind is StoreBusy:
        return StoreBusy(
            f"the database {path} is held by another process ({text}); it is tried again. "
            "If it stays so, find the holder with: fuser -v " + path
        )
    if kind is StoreUnwritable:
        return StoreUnwritable(
            f"the database {path} cannot be written ({text}); check its owner and permissions, and whether its disk is mounted "
            "read-only. Work goes on by itself when it can be written again."
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(
            f"the database {path} cannot grow ({text}); nothing was lost. "
            "Free disk space or raise database.max_page_count; work goes on by itself then."
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreFull(
            f"the disk of the database {path} has no room, or fails ({text}); nothing was lost. "
            "Free disk space, or look at the system's log; work goes on by itself when it can be written again."
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return StoreError(
            f"the database {path} is damaged ({text}). Keep the file, put a backup in its place, or take out what can be read: "
            f"sqlite3 {path} .recover | sqlite3 rescued.db"
        )
    if kind is StoreError:
        return StoreError(f"the database {path} answered: {text}; it is tried again")
    return StatementError(
        f"the database {path} does not understand a statement of Tradewind ({text}). Where nobody has changed its tables by hand, "
        "this is a bug in Tradewind: please report it, with the place that the log names"
    )
