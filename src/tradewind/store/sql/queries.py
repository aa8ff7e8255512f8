"""Building blocks of list queries: conditions, order, pages, and a limit on how long a query may take.

Values are always passed as parameters; only column names from the tables in these files become part of a statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tradewind.model.errors import StoreInterrupted, did_you_mean
from tradewind.store.sql.engine import NO_LIMIT, Dialect, Engine, Row
from tradewind.store.views import BadQuery, TooBroad

Value = str | int | None

PAGE_SECONDS = 5.0
"""The longest that one page may take. A list that an index serves takes milliseconds; this limit is for all others."""

COUNT_SECONDS = 1.0
"""The longest that counting the rows of a list may take; a total that takes longer is left out."""

_OPERATORS = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


class Where:
    """Conditions joined by AND, with their parameters."""

    __slots__ = ("parameters", "terms")

    def __init__(self) -> None:
        self.terms: list[str] = []
        self.parameters: list[Value] = []

    def add(self, term: str, *parameters: Value) -> None:
        self.terms.append(term)
        self.parameters.extend(parameters)

    def one_of(self, column: str, values: Sequence[Value]) -> None:
        """The column has one of these values. Without values: no condition."""
        if values:
            self.add(f"{column} IN ({', '.join('?' * len(values))})", *values)

    def ranges(self, columns: Mapping[str, str], ranges: Mapping[str, int]) -> None:
        """`ranges`: `<field>_gte|gt|lte|lt` → microseconds, for the fields in `columns`.

        Raises:
            BadQuery: an unknown field or comparison.
        """
        for name, moment in ranges.items():
            field, _, comparison = name.rpartition("_")
            if field not in columns or comparison not in _OPERATORS:
                valid = [f"{one}_{other}" for one in columns for other in _OPERATORS]
                raise BadQuery(f"There is no filter {name!r}.{did_you_mean(name, valid)}")
            self.add(f"{columns[field]} {_OPERATORS[comparison]} ?", moment)

    def pattern(self, dialect: Dialect, column: str, pattern: str | None) -> None:
        """Airflow's search pattern: part of the text in any case; `%` and `_` are wildcards, `|` means "or", `~` means all."""
        if pattern is None or pattern == "~":
            return
        parts = [part for part in pattern.split("|") if part]
        if parts:
            self.add("(" + " OR ".join([dialect.contains(column)] * len(parts)) + ")", *(f"%{part}%" for part in parts))

    def prefix(self, column: str, prefix: str | None) -> None:
        """The text begins with this prefix, in the same case; an index can serve it."""
        if prefix and prefix != "~":
            self.add(f"{column} >= ? AND {column} < ?", prefix, prefix + "\U0010ffff")

    @property
    def sql(self) -> str:
        return " WHERE " + " AND ".join(self.terms) if self.terms else ""


def ordering(order_by: Sequence[str], columns: Mapping[str, str], last: str) -> str:
    """ORDER BY for field names, with `-` in front for descending; `last` makes the order unambiguous, so that pages do not overlap.

    Raises:
        BadQuery: an unknown field.
    """
    terms, descending = [], False
    for name in order_by:
        descending = name.startswith("-")
        field = name.removeprefix("-")
        if field not in columns:
            raise BadQuery(
                f"A list cannot be ordered by {field!r}; possible are: {', '.join(sorted(columns))}."
                f"{did_you_mean(field, columns)}"
            )
        terms += [f"{column} DESC" if descending else column for column in columns[field].split(", ")]
    for column in last.split(", "):
        if not any(term.removesuffix(" DESC") == column for term in terms):
            terms.append(f"{column} DESC" if descending else column)
    return " ORDER BY " + ", ".join(terms)


@contextmanager
def bounded(engine: Engine, seconds: float) -> Iterator[None]:
    """Limit the total time of the queries inside.

    Raises:
        TooBroad: they took longer and were cancelled.
    """
    try:
        with engine.time_limit(seconds):
            yield
    except StoreInterrupted as error:
        raise TooBroad(
            f"This list has to read too many rows (it was cancelled after {seconds:g} s). Name a DAG and a run, "
            "bound it with run_after_gte, or leave out order_by."
        ) from error


def page(engine: Engine, sql: str, parameters: Sequence[Value], limit: int | None, offset: int) -> list[Row]:
    """`limit` rows (None: all) after the first `offset`, within `PAGE_SECONDS`."""
    with bounded(engine, PAGE_SECONDS):
        return engine.rows(f"{sql} LIMIT ? OFFSET ?", (*parameters, NO_LIMIT if limit is None else limit, offset))


def count(engine: Engine, sql: str, parameters: Sequence[Value]) -> int | None:
    """The number that a query returns; None if it takes too long."""
    try:
        with bounded(engine, COUNT_SECONDS):
            row = engine.row(sql, parameters)
    except TooBroad:
        return None
    assert row is not None
    return int(row[0] or 0)
