"""A connection to a database, as the verbs see it, and the dialect that its statements are written in.

The verbs are written once. Their statements are plain SQL in a form that every dialect understands or can render:

- parameters are `?`, and a statement holds no other `?`;
- `INSERT … ON CONFLICT (key) DO UPDATE SET column = excluded.column` or `DO NOTHING`;
- `column IS ?` compares with a value that may be NULL;
- truth is 0 or 1 in an integer column, and a condition is a comparison;
- no limit is `NO_LIMIT`, the larger of two values a CASE, a derived table has a name;
- what only some databases know (the index to use, the order of a join, comparison in any case) comes from `Engine.dialect`.

SQLite carries out this form as it stands, so rendering costs it nothing. A dialect that has to render does so once for each
statement, in its engine. What differs in behaviour (transactions, keys of new rows, limits of time,
errors) is a method of the engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from tradewind.model.errors import Changed, TradewindError
from tradewind.observe.failpoints import fp

Row = tuple[Any, ...]

NO_LIMIT = 2**63 - 1
"""For LIMIT, where all rows are wanted."""


class Dialect(Protocol):
    """How one database spells what statements cannot spell alike. Pure text: needs no connection."""

    @property
    def name(self) -> str:
        """As in the URL, and in the names of migration files: `sqlite`."""

    def render(self, statement: str) -> str:
        """A statement of the form above, as this database wants it."""

    def index_hint(self, index: str) -> str:
        """Behind a table's name: read it by this index. Empty where the database has no such hint."""

    @property
    def ordered_join(self) -> str:
        """A JOIN that reads the left table first, where the database can be told so."""

    def contains(self, column: str) -> str:
        """A condition with one parameter: the column matches a pattern with `%` and `_`, upper and lower case alike."""

    def translate(self, error: Exception, database: str) -> TradewindError:
        """The database's error as one of ours, with a sentence that says what to do.

        Args:
            database: what the sentence calls the database: its path, say.
        """


class Engine(ABC):
    """One connection and its discipline. Not for use by several threads at a time.

    Attributes:
        path: what messages call the database: the path of its file, or ":memory:".
        read_only: writes raise.
    """

    dialect: Dialect
    errors: tuple[type[Exception], ...]
    """What the database's module raises; no other module sees these."""
    path: str
    read_only: bool

    # --- statements ------------------------------------------------------------------------------------------------

    @abstractmethod
    def rows(self, sql: str, parameters: Any = ()) -> list[Row]:
        """All rows that a query answers. Raises our errors."""

    @abstractmethod
    def row(self, sql: str, parameters: Any = ()) -> Row | None:
        """The first row that a query answers. Raises our errors."""

    @abstractmethod
    def run(self, sql: str, parameters: Any = ()) -> int:
        """Execute one statement; the number of rows that it matched or inserted."""

    @abstractmethod
    def insert(self, sql: str, parameters: Any = ()) -> int:
        """Execute one INSERT; the id of the new row."""

    @abstractmethod
    def many(self, sql: str, parameters: Any) -> int:
        """Execute one statement for each tuple; the number of rows in all."""

    def change(self, sql: str, parameters: Any, what: str) -> None:
        """Execute one guarded statement that has to change one row.

        Args:
            what: the thing that it changes, for the sentence.

        Raises:
            Changed: the guard met another state; whoever has begun the transaction rolls it back.
        """
        if self.run(sql, parameters) != 1:
            raise Changed(f"{what} was changed by somebody else in the same moment; nothing was written. Try again")

    # --- transactions ----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def in_transaction(self) -> bool: ...

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that will write: from here on no other process writes what it reads."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def roll_back(self) -> None:
        """Roll the transaction back, if it is still open. Never raises: a disk that fails may fail here too."""

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[None]:
        """Inside a transaction: this part is written whole or not at all."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction. Any exception rolls back; the database's become ours. Inside another transaction it joins that one,
        and an exception rolls back only this part: a verb that fails leaves nothing behind, even if its caller goes on.

        Raises:
            StoreBusy, StoreFull, StoreError: nothing was written.
            StatementError: nothing was written; the statement is wrong, and would be the next time.
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
        """Queries inside may take so long in all.

        Raises:
            StoreInterrupted: a query took longer and was given up.
        """

    @abstractmethod
    def release_memory(self) -> None:
        """Free what the connection keeps only to answer faster."""

    @abstractmethod
    def copy_into(self, other: Engine) -> None:
        """Replace all that is in another database of the same dialect by what is in this one."""

    @abstractmethod
    def back_up(self, file: str) -> None:
        """Write a consistent copy of the whole database into a new or empty file."""

    @abstractmethod
    def problems(self, at_most: int) -> list[str]:
        """Damage that the database finds in itself; none: it is sound. Reads everything."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What is really in force on this connection, by the database's own names."""

    @abstractmethod
    def query(self, sql: str) -> tuple[list[str], list[Row]]:
        """The names of the columns and the rows that a person's own statement answers. Raises StoreError."""

    @property
    @abstractmethod
    def is_current(self) -> bool:
        """Whether a new connection would find the same database: nobody has put another file in its place."""

    @abstractmethod
    def replaced(self) -> str | None:
        """A sentence when the database is not the one any more that was opened, else None.

        What is in the open one is saved beside it then.
        """

    @abstractmethod
    def close(self) -> None: ...
