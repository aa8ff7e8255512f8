"""SQLite: a connection to the database file, its pragmas and transactions, and the translation of its errors.

It uses the standard library's module without an abstraction over databases: that would cost the scheduler, the API and each command
24 MB and 170 ms at their start (measured), and execute the same statements. See docs/explanation/decisions.md.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator
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
from tradewind.store.sql.engine import Change, Engine, Row
from tradewind.store.sql.visible_dags import CONDITIONS

if TYPE_CHECKING:
    from tradewind.store.factory import DatabaseOptions

WAL_KEPT = 16 * 1024 * 1024
"""Bytes. During a long read the WAL (the write-ahead log) cannot be reset and grows; afterwards it is truncated to this size."""


_STEPS = 20_000
"""Instructions of SQLite's virtual machine between two checks of the time limit: a few milliseconds."""


class SqliteDialect:
    """SQLite executes the common form of statements unchanged."""

    name = "sqlite"
    ordered_join = "CROSS JOIN"

    def render(self, statement: str) -> str:
        return statement

    def index_hint(self, index: str) -> str:
        return f" INDEXED BY {index}"

    def contains(self, column: str) -> str:
        return f"{column} LIKE ?"  # SQLite's LIKE ignores case

    def ordering(self, column: str, descending: bool) -> str:
        return f"{column} DESC" if descending else column

    def translate(self, error: Exception, database: str) -> TradewindError:
        assert isinstance(error, sqlite3.Error)
        return translate(error, database)


SQLITE = SqliteDialect()


class LimitedDialect(SqliteDialect):
    """For a connection that sees only some DAGs: its tables are views, for which SQLite accepts no hint."""

    def index_hint(self, index: str) -> str:
        return ""


LIMITED = LimitedDialect()


class SqliteEngine(Engine):
    """A connection to a SQLite database.

    Args:
        path: the database file, or ":memory:".
        busy_timeout_ms: how long a statement waits for another process's lock.
        synchronous: "FULL" (a commit survives a power failure) or "NORMAL" (a commit survives the end of any process).
        max_page_count: maximum size of the file in pages of 4 KiB; 0: no limit.
        read_only: open for reading; writes raise.
        cache_kib: size of the page cache, KiB.
    """

    dialect: SqliteDialect = SQLITE
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
        """See `Engine`. Costs one `stat`."""
        return self._identity is None or _identity(self.path) == self._identity

    def show_only(self, dag_ids: Collection[str]) -> None:
        """See `Engine`. Views in the schema `temp` take precedence over tables of the same name."""
        try:
            if self.dialect is not LIMITED:
                self.dialect = LIMITED
                self.db.execute("CREATE TEMP TABLE visible_dag_id (dag_id TEXT PRIMARY KEY) WITHOUT ROWID")
                for table, condition in CONDITIONS.items():
                    where = condition.format(main="main.", table=table, visible="temp.visible_dag_id")
                    self.db.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} WHERE {where}")
            self.db.execute("BEGIN")
            self.db.execute("DELETE FROM temp.visible_dag_id")
            self.db.executemany("INSERT INTO temp.visible_dag_id (dag_id) VALUES (?)", [(one,) for one in dag_ids])
            self.db.execute("COMMIT")
        except sqlite3.Error as error:
            self.roll_back()
            raise translate(error, self.path) from error

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

    def size(self) -> int:
        try:
            return os.path.getsize(self.path)
        except OSError:
            return 0

    def kind(self) -> dict[str, Any]:
        return {"journal_mode": self.settings()["journal_mode"]}

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

    def execute(self, changes: Iterable[Change]) -> bool:
        executemany = self.db.executemany
        for statement, parameters, guarded in changes:
            done = executemany(statement, parameters).rowcount
            if guarded and done != len(parameters):
                return False
        return True

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
                pass  # SQLite has already rolled back

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
    """Open the database file at a path. For writing, create the file if it does not exist."""
    given = options._asdict()
    del given["holder"]  # a lock on a file guards it
    return SqliteEngine(path, read_only=read_only, **given)


def _make_private(path: str) -> None:
    """Create the file of a new database with mode 0600, whatever the umask; SQLite gives its side files the same mode."""
    if path == ":memory:" or path.startswith("file:"):
        return
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return  # it exists, or cannot be created: SQLite reports why
    try:
        os.fchmod(file, 0o600)
    finally:
        os.close(file)


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode of a file; None if there is no file."""
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
"""Error classes of Tradewind, each with SQLite's result codes. Any other code, or none, is a bug: SQLite refuses a statement."""

_KIND_OF = {code: kind for kind, codes in _KINDS.items() for code in codes}


def translate(error: sqlite3.Error, path: str) -> TradewindError:
    """Translate SQLite's error by its result code into an error of Tradewind, with a message that says what to do."""
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    code = None if extended is None else extended & 0xFF
    text = f"{error} [{name}]"
    kind = StatementError if code is None else _KIND_OF.get(code, StatementError)
    if kind is StoreRefused:
        return StoreRefused(f"the database {path} refuses this: {text}")
    if kind is StoreInterrupted:
        return StoreInterrupted(f"a query to the database {path} took too long and was cancelled ({text})")
    if kind is StoreBusy:
        return StoreBusy(
            f"the database {path} is locked by another process ({text}); Tradewind tries again. "
            "If this goes on, find the process with: fuser -v " + path
        )
    if kind is StoreUnwritable:
        return StoreUnwritable(
            f"the database {path} cannot be written ({text}); check its owner and permissions, and whether its disk is mounted "
            "read-only. Work continues by itself when the database can be written again."
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(
            f"the database {path} cannot grow ({text}); nothing was lost. "
            "Free disk space or raise database.max_page_count; work then continues by itself."
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreFull(
            f"the disk of the database {path} is full or has an error ({text}); nothing was lost. "
            "Free disk space, or look at the system's log; work continues by itself when the database can be written again."
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return StoreError(
            f"the database {path} is damaged ({text}). Keep the file and restore a backup (tradewind db restore FILE), "
            "or save what can be read: "
            f"sqlite3 {path} .recover | sqlite3 rescued.db"
        )
    if kind is StoreError:
        return StoreError(f"the database {path} reported: {text}; Tradewind tries again")
    return StatementError(
        f"the database {path} does not understand a statement of Tradewind ({text}). If nobody has changed its tables by hand, "
        "this is a bug in Tradewind: please report it, with the traceback from the log"
    )
