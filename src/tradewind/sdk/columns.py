"""Columns of Airflow's tables, as DAG files name them in queries: `DagRun.dag_id == "etl"`, `TaskInstance.end_date.desc()`.

A class whose objects files query (`DagRun`, `TaskInstance`, `Variable` …) has columns as class attributes; its objects have values.
A comparison makes a `Condition`, which is tested on objects here and not translated into SQL. Queries: `airflow.compat.queries`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

Test = Callable[[Any], bool]


class JoinedRow(dict[type, Any]):
    """One object of each table of a query of several tables; None where an outer join has found nothing."""

    def of(self, table: type) -> Any:
        """The object of a table."""
        if table in self:
            return self[table]
        return next((row for one, row in self.items() if issubclass(one, table) or issubclass(table, one)), None)


class Condition:
    """A condition on one object, or on one object of each table of a query of several tables.

    Args:
        equal: (table, column) → the values of which an object must have one. A query uses them to request fewer rows; `test`
            decides.
        links: pairs of columns of two tables that must be equal.
    """

    def __init__(
        self,
        test: Test,
        equal: Mapping[tuple[type, str], frozenset[Any]] | None = None,
        links: tuple[tuple[Expression, Expression], ...] = (),
    ) -> None:
        self.test = test
        self.equal = dict(equal or {})
        self.links = links

    def equal_of(self, table: type) -> dict[str, frozenset[Any]]:
        """The columns of one table in `equal`."""
        return {name: values for (owner, name), values in self.equal.items() if _same_table(owner, table)}

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


def _same_table(one: type, other: type) -> bool:
    return issubclass(one, other) or issubclass(other, one)


def all_of(conditions: Iterable[Condition]) -> Condition:
    """A condition that is true if all of these conditions are true."""
    listed = list(conditions)
    equal: dict[tuple[type, str], frozenset[Any]] = {}
    for one in listed:
        for name, values in one.equal.items():
            equal[name] = equal[name] & values if name in equal else values
    links = tuple(link for one in listed for link in one.links)
    return Condition(lambda row: all(one.test(row) for one in listed), equal, links)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """A condition that is true if at least one of these conditions is true."""
    listed = list(conditions)
    return Condition(lambda row: any(one.test(row) for one in listed))


def _sqlalchemy_element(wrapped: Any) -> Any:
    from sqlalchemy import column, literal_column  # lazy import: only where the file itself uses SQLAlchemy's functions

    owner = getattr(wrapped, "owner", None)
    element: Any = literal_column("true") if owner is None else column(wrapped.name, _selectable=table_element(owner))
    element.tradewind = wrapped
    return element


class Order(NamedTuple):
    """A column to sort by."""

    column: Expression
    descending: bool

    def __clause_element__(self) -> Any:
        """For `select(…).order_by(…)` of SQLAlchemy: see `order_of`."""
        return _sqlalchemy_element(self)

    def nulls_last(self) -> Order:
        """The same order: the place of None is that of SQLite."""
        return self

    def nulls_first(self) -> Order:
        """See `nulls_last`."""
        return self


class Expression:
    """An operand of comparisons: a column."""

    name: str = ""
    owner: type = object
    label_name: str = ""
    """The name of the value in a row of results; empty: `name`."""

    def value(self, row: Any) -> Any:
        """The value of this column of an object, or of the object of its table in a joined row."""
        return comparable(self.plain(row))

    def plain(self, row: Any) -> Any:
        """As `value`, as the object has it."""
        found = row.of(self.owner) if isinstance(row, JoinedRow) else row
        return getattr(found, self.name, None)

    def _is(self, test: Callable[[Any], bool], equal: Iterable[Any] | None = None) -> Condition:
        narrow = None if equal is None else {(self.owner, self.name): frozenset(equal)}
        return Condition(lambda row: test(self.value(row)), narrow)

    def _compare(self, other: Any, test: Callable[[Any, Any], bool]) -> Condition:
        """A comparison with a value, or with another column. As in SQL, nothing is true of None, and a text may be a date.

        The condition raises ValueError if a date is compared with a text that is no date.
        """
        wanted = None if isinstance(other, Expression) else comparable(other)

        def holds(row: Any) -> bool:
            found, against = self.value(row), other.value(row) if isinstance(other, Expression) else wanted
            if isinstance(found, datetime) and isinstance(against, str):
                against = comparable(datetime.fromisoformat(against))
            return found is not None and against is not None and test(found, against)

        return Condition(holds)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Expression):
            return Condition(self._compare(other, lambda found, against: found == against).test, links=((self, other),))
        wanted = comparable(other)
        return self._is(lambda found: found == wanted, None if wanted is None else [wanted])

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Expression):
            return self._compare(other, lambda found, against: found != against)
        wanted = comparable(other)
        return self._is(lambda found: found != wanted and (found is not None or wanted is None))

    def __hash__(self) -> int:
        return id(self)

    def __lt__(self, other: Any) -> Condition:
        return self._compare(other, lambda found, against: found < against)

    def __le__(self, other: Any) -> Condition:
        return self._compare(other, lambda found, against: found <= against)

    def __gt__(self, other: Any) -> Condition:
        return self._compare(other, lambda found, against: found > against)

    def __ge__(self, other: Any) -> Condition:
        return self._compare(other, lambda found, against: found >= against)

    def __invert__(self) -> Condition:
        """`~DagModel.is_paused`: the value is false."""
        return self._is(lambda found: not found)

    def any(self, condition: Any = None) -> Condition:
        """`DagModel.tags.any(DagTag.name == "x")`: at least one object of this list meets the condition."""
        inner = None if condition is None else condition_of(condition)
        return Condition(lambda row: any(inner is None or inner.test(one) for one in self.plain(row) or ()))

    def has(self, condition: Any = None) -> Condition:
        """`TaskInstance.dag_run.has(DagRun.state == "x")`: there is an object, and it meets the condition."""
        inner = None if condition is None else condition_of(condition)

        def holds(row: Any) -> bool:
            found = self.plain(row)
            return found is not None and (inner is None or inner.test(found))

        return Condition(holds)

    def between(self, first: Any, last: Any) -> Condition:
        """The value is between these bounds, or equal to one of them."""
        return all_of([self >= first, self <= last])

    def in_(self, values: Iterable[Any]) -> Condition:
        """The value is one of these."""
        wanted = frozenset(comparable(_single(value)) for value in values)
        return self._is(lambda found: found is not None and found in wanted, wanted)

    def not_in(self, values: Iterable[Any]) -> Condition:
        """The value is none of these."""
        wanted = frozenset(comparable(_single(value)) for value in values)
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
        """The same column under another name in the rows of the result."""
        return Labelled(self, name)

    def distinct(self) -> Expression:
        """For `func.count(column.distinct())`: see `is_distinct`."""
        made = Labelled(self, self.label_name)
        made.is_distinct = True
        return made

    is_distinct = False
    """Whether a function of this column counts each value once."""

    def __clause_element__(self) -> Any:
        """For SQLAlchemy's `desc`, `func.count` and others: see `condition_of`."""
        return _sqlalchemy_element(self)


class Labelled(Expression):
    """A column with another name in the rows of the result."""

    def __init__(self, column: Expression, label_name: str) -> None:
        self.name, self.owner, self.label_name = column.name, column.owner, label_name


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

    __hash__ = Expression.__hash__
    __eq__ = Expression.__eq__

    def __repr__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"


def of_table(table: type, names: str) -> None:
    """Give a class columns. Existing class attributes and properties with these names still give the values of its objects.

    The class itself can be given to SQLAlchemy's `select`.
    """
    table.__clause_element__ = classmethod(table_element)  # type: ignore[attr-defined]
    for name in names.split():
        before = next((vars(kind)[name] for kind in table.__mro__ if name in vars(kind)), None)
        if isinstance(before, property):
            made: Any = ColumnProperty(before.fget, before.fset, doc=before.__doc__)
            made.name, made.owner = name, table
        else:
            made = Column(name, table, before)
        setattr(table, name, made)


def table_element(table: type) -> Any:
    """A table for SQLAlchemy's `select(…)`, `select_from(…)` and `join(…)`, which knows the class."""
    element: Any = _element_class()(table.__name__)
    element.tradewind = table
    return element


@functools.cache
def _element_class() -> Any:
    from sqlalchemy.sql.expression import TableClause  # lazy import: only where the file itself uses SQLAlchemy's functions

    class TableElement(TableClause):
        """A table whose columns are those of our class: for `select(DagRun).filter_by(dag_id="etl")`."""

        inherit_cache = False
        tradewind: type

        @property
        def entity_namespace(self) -> Any:
            return self.tradewind

    return TableElement


def unwrapped(element: Any) -> Any:
    """The table, column, condition or order inside an element of SQLAlchemy; other objects unchanged."""
    return element if isinstance(element, type) else getattr(element, "tradewind", element)


def _single(value: Any) -> Any:
    """The value of a row with one column, as a query in `in_(…)` gives it; other values unchanged."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def comparable(value: Any) -> Any:
    """A value as conditions compare it: aware dates in UTC, the text of an enumeration's member."""
    if isinstance(value, datetime):
        plain = datetime.fromisoformat(value.isoformat())
        return plain.replace(tzinfo=UTC) if plain.tzinfo is None else plain.astimezone(UTC)
    return getattr(value, "value", value) if isinstance(value, str) else value


def _like_pattern(pattern: str) -> str:
    return "".join(".*" if part == "%" else "." if part == "_" else re.escape(part) for part in pattern)


def condition_of(clause: Any) -> Condition | None:
    """The condition, also if it was combined by SQLAlchemy's `and_`, `or_` or `not_`; None for other objects.

    A column alone is a condition, too: its value is true.
    """
    wrapped = unwrapped(clause)
    if isinstance(wrapped, Condition):
        return wrapped
    if isinstance(wrapped, Expression):
        return Condition(lambda row: bool(wrapped.value(row)))
    kind = getattr(clause, "__visit_name__", "")
    if kind in ("true", "false"):
        return Condition(lambda _row: kind == "true")
    operator = getattr(getattr(clause, "operator", None), "__name__", "")
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
    clause = unwrapped(clause)
    if isinstance(clause, Order):
        return clause
    if isinstance(clause, Expression):
        return Order(clause, False)
    wrapped = getattr(getattr(clause, "element", None), "tradewind", None)
    if not isinstance(wrapped, Expression):
        return None
    return Order(wrapped, getattr(getattr(clause, "modifier", None), "__name__", "") == "desc_op")
