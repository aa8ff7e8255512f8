"""Building blocks of list queries: conditions, order, pages, and a limit on how long a query may take.

Values are always passed as parameters; only column names from the tables in these files become part of a statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tradewind.model.errors import StoreInterrupted, did_you_mean
from tradewind.model.states import RUN_CODES, RUN_STATES, RunState
from tradewind.store.search_patterns import prefixes
from tradewind.store.sql.engine import NO_LIMIT, Dialect, Engine, Row
from tradewind.store.views import BadQuery, Conditions, TooBroad, UnknownValue

Value = str | int | None

PAGE_SECONDS = 5.0
"""Maximum time for one page, seconds. A list with an index takes milliseconds; this limit is for all others."""

COUNT_SECONDS = 1.0
"""Maximum time for counting the rows of a list, seconds. If counting takes longer, the total is left out."""

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
        """Add the condition that the column has one of these values. Without values, add no condition."""
        if values:
            self.add(f"{column} IN ({', '.join('?' * len(values))})", *values)

    def ranges(self, columns: Mapping[str, str], ranges: Mapping[str, int]) -> None:
        """Add conditions from `ranges`: `<field>_gte|gt|lte|lt` → microseconds, for the fields in `columns`.

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
        """Add Airflow's search pattern: part of the text in any case; `%` and `_` are wildcards, `|` means "or", `~` means all."""
        if pattern is None or pattern == "~":
            return
        parts = [part for part in pattern.split("|") if part]
        if parts:
            self.add("(" + " OR ".join([dialect.contains(column)] * len(parts)) + ")", *(f"%{part}%" for part in parts))

    def prefix(self, column: str, prefix: str | None) -> None:
        """Add the condition that the text begins with this prefix, in the same case; `|` means "or", `~` means all. An index can
        serve it.
        """
        parts = prefixes(prefix)
        if parts:
            term = " OR ".join([f"({column} >= ? AND {column} < ?)"] * len(parts))
            self.add(f"({term})", *(bound for part in parts for bound in (part, part + "\U0010ffff")))

    def conditions(self, dialect: Dialect, columns: Mapping[str, str], given: Conditions) -> None:
        """Add all conditions on the fields in `columns`.

        Raises:
            BadQuery: an unknown field.
        """
        for field, pattern in given.patterns.items():
            self.pattern(dialect, _column(columns, field), pattern)
        for field, prefix in given.prefixes.items():
            self.prefix(_column(columns, field), prefix)
        for field, values in given.among.items():
            self.one_of(_column(columns, field), list(values))
        self.ranges(columns, given.ranges)

    @property
    def sql(self) -> str:
        return " WHERE " + " AND ".join(self.terms) if self.terms else ""


def literal(text: str) -> str:
    """Return a text for LIKE in which `%` and `_` are ordinary characters as far as possible: `_` matches any character."""
    return text.replace("%", "_")


def run_state_code(name: str) -> int:
    """The code of a run's state. Raises UnknownValue: there is no such state."""
    try:
        return RUN_CODES[RunState(name)]
    except ValueError:
        valid = [state.value for state in RUN_STATES]
        raise UnknownValue(
            f"{name!r} is not a state of a run; possible are: {', '.join(valid)}.{did_you_mean(name, valid)}"
        ) from None


def _column(columns: Mapping[str, str], field: str) -> str:
    if field not in columns:
        raise BadQuery(f"This list cannot be filtered by {field!r}.{did_you_mean(field, columns)}")
    return columns[field]


class Term(NamedTuple):
    """One column of an ORDER BY."""

    column: str
    descending: bool


def ordering(dialect: Dialect, order_by: Sequence[str], columns: Mapping[str, str], last: str) -> str:
    """Return the ORDER BY of `order_terms`. Raises BadQuery."""
    return order_clause(dialect, order_terms(order_by, columns, last))


def order_clause(dialect: Dialect, terms: Sequence[Term]) -> str:
    return " ORDER BY " + ", ".join(dialect.ordering(term.column, term.descending) for term in terms)


def order_terms(order_by: Sequence[str], columns: Mapping[str, str], last: str) -> list[Term]:
    """Return the order by field names, with `-` in front for descending. `last` makes it unambiguous, so that pages do not overlap.

    Raises:
        BadQuery: an unknown field.
    """
    terms: list[Term] = []
    descending = False
    for name in order_by:
        descending = name.startswith("-")
        field = name.removeprefix("-")
        if field not in columns:
            raise BadQuery(
                f"A list cannot be ordered by {field!r}; possible are: {', '.join(sorted(columns))}."
                f"{did_you_mean(field, columns)}"
            )
        terms += [Term(column, descending) for column in columns[field].split(", ")]
    for column in last.split(", "):
        if not any(term.column == column for term in terms):
            terms.append(Term(column, descending))
    return terms


@contextmanager
def bounded(engine: Engine, seconds: float) -> Iterator[None]:
    """Limit the total time of the queries in the block.

    Raises:
        TooBroad: the queries took longer and were cancelled.
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
    """Return `limit` rows (None: all) after the first `offset` rows, within `PAGE_SECONDS`."""
    with bounded(engine, PAGE_SECONDS):
        return engine.rows(f"{sql} LIMIT ? OFFSET ?", (*parameters, NO_LIMIT if limit is None else limit, offset))


def count(engine: Engine, sql: str, parameters: Sequence[Value]) -> int | None:
    """Return the number that a query returns; None if it takes too long."""
    try:
        with bounded(engine, COUNT_SECONDS):
            row = engine.row(sql, parameters)
    except TooBroad:
        return None
    assert row is not None
    return int(row[0] or 0)


VALUES_PER_STATEMENT = 500


def rows_among(engine: Engine, sql: str, values: Sequence[Value]) -> list[Row]:
    """Return the rows of a statement for many values, with one execution for each 500 values.

    Args:
        sql: the statement with `{}` for the placeholders of the values, and without other parameters.
    """
    found: list[Row] = []
    for start in range(0, len(values), VALUES_PER_STATEMENT):
        block = values[start : start + VALUES_PER_STATEMENT]
        found += engine.rows(sql.format(", ".join("?" * len(block))), list(block))
    return found
