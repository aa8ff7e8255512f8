"""Columns of Airflow's tables, as DAG files name them in queries: `DagRun.dag_id == "etl"`, `TaskInstance.end_date.desc()`.

A class whose objects files query (`DagRun`, `TaskInstance`, `Variable` …) has columns as class attributes; its objects have values.
A comparison makes a `Condition`, which is tested on objects here and not translated into SQL. Queries: `airflow.compat.queries`.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

Test = Callable[[Any], bool]


class Condition:
    """A condition on one object.

    Args:
        equal: column → the values of which an object must have one. A query uses them to request fewer rows; `test` decides.
    """

    def __init__(self, test: Test, equal: Mapping[str, frozenset[Any]] | None = None) -> None:
        self.test = test
        self.equal = dict(equal or {})

    def __and__(self, other: Condition) -> Condition:
        return all_of([self, other])

    def __or__(self, other: Condition) -> Condition:
        return any_of([self, other])

    def __invert__(self) -> Condition:
        return Condition(lambda row: not self.test(row))

    def __clause_element__(self) -> Any:
        """For SQLAlchemy's `and_`, `or_` and `not_`: see `condition_of`."""
        return _sqlalchemy_element(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition of a query has no truth value; combine conditions with & and |, or give several to filter()"
        )


def all_of(conditions: Iterable[Condition]) -> Condition:
    """A condition that is true if all of these conditions are true."""
    listed = list(conditions)
    equal: dict[str, frozenset[Any]] = {}
    for one in listed:
        for name, values in one.equal.items():
            equal[name] = equal[name] & values if name in equal else values
    return Condition(lambda row: all(one.test(row) for one in listed), equal)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """A condition that is true if at least one of these conditions is true."""
    listed = list(conditions)
    return Condition(lambda row: any(one.test(row) for one in listed))


def _sqlalchemy_element(wrapped: Any) -> Any:
    from sqlalchemy import column, literal_column  # lazy import: only where the file itself uses SQLAlchemy's functions

    owner = getattr(wrapped, "owner", None)
    element: Any = literal_column("true") if owner is None else column(wrapped.name, _selectable=sqlalchemy_table(owner))
    element.tradewind = wrapped
    return element


def sqlalchemy_table(table: type) -> Any:
    """For SQLAlchemy's `select` and `delete`: an element that carries the class of a table."""
    element = _table_element_class()(table.__name__)
    element.tradewind = table
    return element


@functools.cache
def _table_element_class() -> Any:
    from sqlalchemy import TableClause  # lazy import: only where the file itself uses SQLAlchemy's statements

    class TableElement(TableClause):
        inherit_cache = True
        tradewind: type

        @property
        def entity_namespace(self) -> Any:
            """The columns, for `filter_by`."""
            return _Columns(self.tradewind)

    return TableElement


class _Columns:
    """The columns of a table as elements of SQLAlchemy."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return _sqlalchemy_element(getattr(self._table, name))


class Order(NamedTuple):
    """A column to sort by."""

    column: Expression
    descending: bool

    def __clause_element__(self) -> Any:
        """For the `order_by` of SQLAlchemy's statements: see `order_of`."""
        return _sqlalchemy_element(self)


class Expression:
    """An operand of comparisons: a column."""

    name: str = ""
    label_name: str = ""

    def value(self, row: Any) -> Any:
        """The value of this column of an object."""
        return comparable(getattr(row, self.name, None))

    def _is(self, test: Callable[[Any], bool], equal: Iterable[Any] | None = None) -> Condition:
        narrow = None if equal is None else {self.name: frozenset(equal)}
        return Condition(lambda row: test(self.value(row)), narrow)

    def __eq__(self, other: object) -> Any:
        wanted = comparable(other)
        return self._is(lambda found: found == wanted, None if wanted is None else [wanted])

    def __ne__(self, other: object) -> Any:
        wanted = comparable(other)
        return self._is(lambda found: found != wanted and (found is not None or wanted is None))

    def __hash__(self) -> int:
        return id(self)

    def __lt__(self, other: Any) -> Condition:
        return self._is(lambda found: found is not None and found < comparable(other))

    def __le__(self, other: Any) -> Condition:
        return self._is(lambda found: found is not None and found <= comparable(other))

    def __gt__(self, other: Any) -> Condition:
        return self._is(lambda found: found is not None and found > comparable(other))

    def __ge__(self, other: Any) -> Condition:
        return self._is(lambda found: found is not None and found >= comparable(other))

    def between(self, first: Any, last: Any) -> Condition:
        """The value is between these bounds, or equal to one of them."""
        return all_of([self >= first, self <= last])

    def in_(self, values: Iterable[Any]) -> Condition:
        """The value is one of these."""
        wanted = frozenset(comparable(value) for value in values)
        return self._is(lambda found: found is not None and found in wanted, wanted)

    def not_in(self, values: Iterable[Any]) -> Condition:
        """The value is none of these."""
        wanted = frozenset(comparable(value) for value in values)
        return self._is(lambda found: found is not None and found not in wanted)

    def is_(self, other: Any) -> Condition:
        """`is_(None)`, `is_(True)`."""
        condition: Condition = self == other
        return condition

    def is_not(self, other: Any) -> Condition:
        """`is_not(None)`."""
        condition: Condition = self != other
        return condition

    notin_ = not_in
    isnot = is_not

    def like(self, pattern: str, **_escape: Any) -> Condition:
        """The text matches this pattern of SQL, with `%` and `_`."""
        found = re.compile(_like_pattern(pattern), re.DOTALL)
        return self._is(lambda value: value is not None and found.fullmatch(str(value)) is not None)

    def ilike(self, pattern: str, **_escape: Any) -> Condition:
        """As `like`, without regard to upper and lower case."""
        found = re.compile(_like_pattern(pattern), re.DOTALL | re.IGNORECASE)
        return self._is(lambda value: value is not None and found.fullmatch(str(value)) is not None)

    def contains(self, part: str, **_options: Any) -> Condition:
        """The text contains this part."""
        return self._is(lambda value: value is not None and part in value)

    def startswith(self, part: str, **_options: Any) -> Condition:
        """The text begins with this part."""
        return self._is(lambda value: value is not None and str(value).startswith(part))

    def endswith(self, part: str, **_options: Any) -> Condition:
        """The text ends with this part."""
        return self._is(lambda value: value is not None and str(value).endswith(part))

    def desc(self) -> Order:
        """Sort by this column, the largest first."""
        return Order(self, True)

    def asc(self) -> Order:
        """Sort by this column, the smallest first."""
        return Order(self, False)

    def label(self, name: str) -> Expression:
        """The same column with another name in the results."""
        made = copy.copy(self)
        made.label_name = name
        return made

    def __clause_element__(self) -> Any:
        """For SQLAlchemy's `desc`, `func.count` and others: see `condition_of`."""
        return _sqlalchemy_element(self)


class Column(Expression):
    """A column as a class attribute. Its value is `default` for an object that does not set the attribute."""

    def __init__(self, name: str, owner: type, default: Any = None) -> None:
        self.name, self.owner, self.default = name, owner, default

    def __get__(self, row: Any, owner: type | None = None) -> Any:
        return self if row is None else self.default

    def __repr__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"


class ColumnProperty(property, Expression):
    """A property of the objects that is a column of the class."""

    owner: type

    __hash__ = Expression.__hash__
    __eq__ = Expression.__eq__

    def __repr__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"


def of_table(table: type, names: str) -> None:
    """Give a class columns. Existing class attributes and properties with these names still give the values of its objects."""
    for name in names.split():
        before = table.__dict__.get(name)
        if isinstance(before, property):
            made: Any = ColumnProperty(before.fget, before.fset, doc=before.__doc__)
            made.name, made.owner = name, table
        else:
            made = Column(name, table, before)
        setattr(table, name, made)
    table.__clause_element__ = classmethod(sqlalchemy_table)  # type: ignore[attr-defined]


def comparable(value: Any) -> Any:
    """A value as conditions compare it: aware dates in UTC, the text of an enumeration's member."""
    if isinstance(value, datetime):
        plain = datetime.fromisoformat(value.isoformat())
        return plain.replace(tzinfo=UTC) if plain.tzinfo is None else plain.astimezone(UTC)
    return getattr(value, "value", value) if isinstance(value, str) else value


def _like_pattern(pattern: str) -> str:
    return "".join(".*" if part == "%" else "." if part == "_" else re.escape(part) for part in pattern)


def condition_of(clause: Any) -> Condition | None:
    """The condition, also if it was combined by SQLAlchemy's `and_`, `or_` or `not_`; None for other objects."""
    if isinstance(clause, Condition):
        return clause
    wrapped = getattr(clause, "tradewind", None)
    if isinstance(wrapped, Condition):
        return wrapped
    kind = getattr(clause, "__visit_name__", "")
    if kind in ("true", "false"):
        return Condition(lambda _row: kind == "true")
    operator = getattr(getattr(clause, "operator", None), "__name__", "")
    if operator in ("eq", "is_"):  # of `filter_by`
        compared = getattr(clause.left, "tradewind", None)
        constant = {"true": True, "false": False, "null": None}.get(clause.right.__visit_name__)
        found = None if compared is None else compared == getattr(clause.right, "value", constant)
        return found if isinstance(found, Condition) else None
    if operator in ("and_", "or_"):
        parts = [condition_of(part) for part in clause.clauses]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return all_of(known) if operator == "and_" else any_of(known)
    inner = getattr(clause, "element", None)
    if operator == "is_true":
        return condition_of(inner)
    if operator in ("inv", "is_false") and (negated := condition_of(inner)) is not None:
        return ~negated
    return condition_of(inner) if inner is not None and type(clause).__name__ == "Grouping" else None


def order_of(clause: Any) -> Order | None:
    """A column to sort by, also as SQLAlchemy's `desc` and `asc` give it; None for other objects."""
    if isinstance(clause, Order):
        return clause
    if isinstance(clause, Expression):
        return Order(clause, False)
    carried = getattr(clause, "tradewind", None)
    if carried is not None:
        return order_of(carried)
    wrapped = getattr(getattr(clause, "element", None), "tradewind", None)
    if not isinstance(wrapped, Expression):
        return None
    return Order(wrapped, getattr(getattr(clause, "modifier", None), "__name__", "") == "desc_op")
