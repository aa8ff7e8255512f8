"""A connection to a database, as the store's operations use it, and the dialect in which its statements are written.

The operations are written once. Their statements are plain SQL in a form that every dialect understands or can render:

- parameters are `?`, and a statement contains no other `?`;
- `INSERT … ON CONFLICT (key) DO UPDATE SET column = excluded.column` or `DO NOTHING`;
- `column IS ?` compares with a value that may be NULL;
- booleans are 0 or 1 in an integer column, and a condition is a comparison;
- "no limit" is `NO_LIMIT`; the larger of two values is a CASE expression; a derived table has a name;
- what only some databases have (index hints, fixed order of a join, case-insensitive comparison) comes from `Engine.dialect`.

SQLite executes this form unchanged, so rendering costs nothing there. A dialect that must render a statement does so once, and its
engine keeps the result. Differences in behaviour (transactions, keys of new rows, time limits,
errors) are methods of the engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from tradewind.model.errors import Changed, TradewindError
from tradewind.observe.failpoints import fp

Row = tuple[Any, ...]

NO_LIMIT = 2**63 - 1
"""Value of LIMIT if all rows are wanted."""


class Dialect(Protocol):
    """The SQL of one database, where it differs from the SQL of others. Pure text: needs no connection."""

    @property
    def name(self) -> str:
        """As in the URL, and in the names of migration files: `sqlite`."""

    def render(self, statement: str) -> str:
        """Translate a statement of the form above into the SQL of this database."""

    def index_hint(self, index: str) -> str:
        """Text after a table's name that makes the database use this index; empty if the database has no such hint."""

    @property
    def ordered_join(self) -> str:
        """A JOIN that reads the left table first, if the database has one."""

    def contains(self, column: str) -> str:
        """A condition with one parameter: the column matches a pattern with `%` and `_`, without regard to case."""

    def ordering(self, column: str, descending: bool) -> str:
        """A column of an ORDER BY that a client chose; NULL comes first in ascending order."""

    def translate(self, error: Exception, database: str) -> TradewindError:
        """Translate the database's error into an error of Tradewind, with a message that says what to do.

        Args:
            database: the name of the database in the message, for example its path.
        """


Change = tuple[str, list[Row], bool]
"""A statement that writes, executed once for each tuple of parameters, and whether it is `GUARDED` or `FREE`.

A plain tuple, because one is created for each statement of each commit.
"""

GUARDED, FREE = True, False
"""Guarded: each execution must change exactly one row."""


class _GuardMissed(Exception):
    """A guarded statement did not match, so the transaction is rolled back."""


class Engine(ABC):
    """One connection with its transactions. Only one thread at a time may use it.

    Attributes:
        path: the name of the database in messages: the path of its file, or ":memory:".
        read_only: whether writes raise an error.
    """

    dialect: Dialect
    errors: tuple[type[Exception], ...]
    """The exceptions of the database's module; they do not leave the engine's transactions and queries."""
    path: str
    read_only: bool
    has_round_trips: bool = False
    """Whether the database is behind a network, so that it is faster to execute several statements together."""

    # --- statements ------------------------------------------------------------------------------------------------

    @abstractmethod
    def rows(self, sql: str, parameters: Any = ()) -> list[Row]:
        """Return all rows of a query. Raises StoreError."""

    @abstractmethod
    def row(self, sql: str, parameters: Any = ()) -> Row | None:
        """Return the first row of a query. Raises StoreError."""

    @abstractmethod
    def run(self, sql: str, parameters: Any = ()) -> int:
        """Execute one statement. Returns the number of rows that it matched or inserted."""

    @abstractmethod
    def insert(self, sql: str, parameters: Any = ()) -> int:
        """Execute one INSERT. Returns the id of the new row."""

    @abstractmethod
    def many(self, sql: str, parameters: Any) -> int:
        """Execute one statement for each tuple. Returns the total number of rows."""

    def execute(self, changes: Iterable[Change]) -> bool:
        """Execute these changes in order. False: a guarded change did not match; the caller rolls all of them back.

        An engine over a network may send all of them in one round trip.
        """
        for statement, parameters, guarded in changes:
            if self.many(statement, parameters) != len(parameters) and guarded:
                return False
        return True

    def commit_changes(self, changes: Sequence[Change]) -> bool:
        """Execute these changes as one transaction. False: a guarded statement did not match, and nothing was written.

        An engine over a network may do this in one round trip. Not inside a transaction. Raises as `transaction`.
        """
        try:
            with self.transaction():
                if not self.execute(changes):
                    raise _GuardMissed
        except _GuardMissed:
            return False
        return True

    def change(self, sql: str, parameters: Any, what: str) -> None:
        """Execute one guarded statement that must change exactly one row.

        Args:
            what: the object of the change, for the message.

        Raises:
            Changed: the row was not in the expected state; the caller rolls the transaction back.
        """
        if self.run(sql, parameters) != 1:
            raise Changed(f"{what} was changed by another request at the same time; nothing was written. Try again")

    @property
    def is_guarded(self) -> bool:
        """Whether every transaction begins with a check of the scheduler's lease."""
        return False

    # --- transactions ----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def in_transaction(self) -> bool: ...

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that writes: until its end no other process can write."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def roll_back(self) -> None:
        """Roll the transaction back, if it is still open. Raises no errors: a disk that fails may fail here too."""

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[None]:
        """Inside a transaction: this part is written completely or not at all."""

    def exclusive(self) -> None:
        """Inside a transaction: wait until no other process migrates. A database with one writer need not wait."""

    def without_deadline(self) -> AbstractContextManager[None]:
        """Inside the block, statements have no time limit: for migrations and checks of the whole database."""
        return nullcontext()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction. Any exception rolls it back; errors of the database become StoreErrors. Inside another transaction it
        becomes a part of that transaction, and an exception rolls back only this part.

        Raises:
            StoreBusy, StoreFull, StoreError: nothing was written.
            StatementError: nothing was written; the statement itself is wrong.
        """
        if self.in_transaction:
            try:
                with self.savepoint():
                    yield
            except self.errors as error:
                raise self.translate(error) from error
            return
        try:
            self.begin()
        except self.errors as error:
            raise self.translate(error) from error
        try:
            yield
            fp("store.before_commit")
            self.commit()
            fp("store.after_commit")
        except BaseException as error:
            self.roll_back()
            if isinstance(error, self.errors):
                raise self.translate(error) from error
            raise

    def translate(self, error: Exception) -> TradewindError:
        return self.dialect.translate(error, self.path)

    # --- the database as a whole -------------------------------------------------------------------------------------

    @abstractmethod
    def has_table(self, name: str) -> bool: ...

    @abstractmethod
    def time_limit(self, seconds: float) -> AbstractContextManager[None]:
        """Limit the total time of the queries in the block.

        Raises:
            StoreInterrupted: a query took longer and was cancelled.
        """

    @abstractmethod
    def show_only(self, dag_ids: Collection[str]) -> None:
        """From now on, show only the rows of these DAGs (`visible_dags.CONDITIONS`). May be called again with other ids."""

    @abstractmethod
    def release_memory(self) -> None:
        """Free the caches of the connection."""

    @abstractmethod
    def copy_into(self, other: Engine) -> None:
        """Replace the content of another database of the same dialect with the content of this database."""

    @abstractmethod
    def back_up(self, file: str) -> None:
        """Write a consistent copy of the whole database into a new or empty file."""

    @abstractmethod
    def problems(self, at_most: int) -> list[str]:
        """Damage that the database finds in itself; empty: no damage. Reads the whole database."""

    @abstractmethod
    def size(self) -> int:
        """Size of the database in bytes."""

    @abstractmethod
    def kind(self) -> dict[str, Any]:
        """The kind of the database, and some of its settings."""

    def erase(self) -> bool:
        """Delete all tables of a database server; False if there were none. The file of a database is deleted by its owner."""
        raise NotImplementedError

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The active settings of this connection, by the database's own names."""

    @abstractmethod
    def query(self, sql: str) -> tuple[list[str], list[Row]]:
        """Return column names and rows of a statement that a person wrote. Raises StoreError."""

    @property
    @abstractmethod
    def is_current(self) -> bool:
        """Whether a new connection would open the same database: the file was not deleted or replaced."""

    @abstractmethod
    def replaced(self) -> str | None:
        """Return a message if the database was deleted or replaced, else None. Saves the content of the open one first."""

    @abstractmethod
    def close(self) -> None: ...
