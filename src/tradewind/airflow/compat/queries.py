"""Queries of `settings.Session()`: `session.query(DagRun).filter(DagRun.dag_id == "etl").order_by(DagRun.execution_date.desc())`.

`statements` reads the statements of SQLAlchemy 2 as queries.

The objects come from the scheduler through the channel of the task (while a DAG file is read: all but XComs). This module tests
the conditions. The rows that a query can see are limited: the latest 1,000 runs of each DAG that it names, or the latest 100 of
each DAG if it names no DAG; the task instances of the runs that it names, or of the latest 25 runs of each DAG.
"""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from tradewind.airflow.compat import test_rows
from tradewind.airflow.compat.query_rows import Equal, rows_of
from tradewind.execution.local_database import open_database
from tradewind.execution.task_instance import log
from tradewind.model.errors import NotYetSupported
from tradewind.sdk import open_dags
from tradewind.sdk.columns import Condition, Expression, Order, all_of, condition_of, order_of

AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "max": lambda values: max(values, default=None),
    "min": lambda values: min(values, default=None),
    "sum": lambda values: sum(values) if values else None,
}


class NoResultFound(Exception):
    """`one()` found nothing."""


class MultipleResultsFound(Exception):
    """`one()` found more than one result."""


def refuse(what: str) -> NoReturn:
    """Refuse a change of rows, or a query that is not supported.

    Raises:
        NotYetSupported: the message says what to use instead.
    """
    raise NotYetSupported(
        f"{what} needs Airflow's metadata database, which user code cannot reach. Queries of one table with filter, filter_by, "
        "order_by, limit, count, first and all work. To change something use Variable.set, ti.xcom_push, trigger_dag, the "
        "command line (`tradewind airflow …`) or the REST API (/api/v2); to read more, ti.xcom_pull or the REST API"
    )


def changes_nothing(what: str) -> bool:
    """While a DAG file is read: warn its author that this change of Airflow's tables has no effect. False: no file is read.

    Otherwise each reading of the file would repeat the change, even after a person has corrected it.
    """
    if not open_dags.is_reading():
        return False
    open_dags.warn_author(
        f"{what} at the top level of the file changes nothing. Use the command line (`tradewind pools`, `tradewind connections`, "
        "`tradewind airflow …`) or the REST API (/api/v2)"
    )
    return True


class Query:
    """A query of one table. Its methods return a new query, or the result.

    Args:
        what: the class of the table, or columns and functions (`func.count(…)`).
        table: the class of the table, if `what` does not name it.
    """

    def __init__(self, what: tuple[Any, ...], table: Any = None) -> None:
        if not what:
            refuse("session.query() without a table")
        self._what = what = tuple(map(_without_label, what))
        self._conditions: tuple[Condition, ...] = ()
        self._orders: tuple[Order, ...] = ()
        self._groups: tuple[Expression, ...] = ()
        self._limit: int | None = None
        self._offset = 0
        self._distinct = False
        self._table = _table_of(what, table)

    def _with(self, **changes: Any) -> Query:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, **{f"_{name}": value for name, value in changes.items()})
        return made

    def filter(self, *clauses: Any) -> Query:
        """Keep only objects that meet all conditions."""
        found = []
        for clause in clauses:
            if isinstance(clause, bool):  # the result of a comparison with something that is not a column
                clause = Condition(lambda _row, holds=clause: holds)  # type: ignore[misc]
            condition = condition_of(clause)
            if condition is None:
                refuse(f"the condition {clause!s:.200}")
            found.append(condition)
        return self._with(conditions=(*self._conditions, *found))

    where = filter

    def filter_by(self, **values: Any) -> Query:
        """Keep only objects with these values."""
        return self.filter(*(getattr(self._table, name) == value for name, value in values.items()))

    def order_by(self, *clauses: Any) -> Query:
        """Sort by these columns."""
        orders = [order_of(clause) for clause in clauses]
        if None in orders:
            refuse("an order_by of this kind")
        return self._with(orders=(*self._orders, *orders))

    def group_by(self, *columns: Any) -> Query:
        """One result for each set of values of these columns; the other results are functions such as `func.count()`."""
        return self._with(groups=columns)

    def limit(self, number: int | None) -> Query:
        """Return at most this number of results."""
        return self._with(limit=number)

    def offset(self, number: int) -> Query:
        """Skip this number of results."""
        return self._with(offset=number)

    def distinct(self, *_columns: Any) -> Query:
        """Return each result only once."""
        return self._with(distinct=True)

    def options(self, *_options: Any) -> Query:
        """Do nothing: loading options have no effect here."""
        return self

    with_for_update = options
    execution_options = options
    autoflush = options

    def with_entities(self, *what: Any) -> Query:
        """A query of the same objects with other results."""
        return self._with(what=what)

    def join(self, *_args: Any, **_options: Any) -> NoReturn:
        """Refuse: a query has one table."""
        refuse("a query of several tables (join)")

    outerjoin = select_from = union = join

    def delete(self, *_args: Any, **_options: Any) -> int:
        """Only for XComs: do nothing and log a warning, because XComs are removed together with their run.

        In a process that runs tests, delete the objects in its memory. While a DAG file is read, change nothing.

        Raises:
            NotYetSupported: another table.
        """
        if test_rows.is_possible():
            return test_rows.delete_all(self._objects)
        if changes_nothing(f"deleting from {self._table.__name__}"):
            return 0
        if self._table.__name__ not in ("XCom", "BaseXCom"):
            refuse(f"deleting from {self._table.__name__}")
        log.warning("session.query(XCom).delete() does nothing: XComs are removed with their run (tradewind db clean)")
        return 0

    def update(self, *_args: Any, **_options: Any) -> int:
        """Refuse a change: queries do not change rows. While a DAG file is read, change nothing.

        Raises:
            NotYetSupported: no DAG file is read.
        """
        if changes_nothing(f"changing rows of {self._table.__name__}"):
            return 0
        refuse(f"changing rows of {self._table.__name__}")

    # --- results ----------------------------------------------------------------------------------------------------

    def _objects(self) -> list[Any]:
        if test_rows.is_possible():
            open_database()
        condition = all_of(self._conditions)
        equal: Equal = condition.equal
        found = [row for row in rows_of(self._table, equal) if condition.test(row)]
        for order in reversed(self._orders):
            found.sort(key=lambda row, by=order.column: _sortable(by.value(row)), reverse=order.descending)  # type: ignore[misc]
        return found

    def all(self) -> list[Any]:
        """All results: objects, or tuples of columns."""
        found = self._objects()
        if self._groups or any(_function(one) for one in self._what):
            results = _grouped(found, self._groups, self._what)
        elif len(self._what) == 1 and isinstance(self._what[0], type):
            results = found
        else:
            row_type = _row_type(self._what)
            results = [
                row_type(*[row if isinstance(one, type) else getattr(row, one.name, None) for one in self._what])
                for row in found
            ]
        if self._distinct:
            results = list(dict.fromkeys(results))
        return results[self._offset : None if self._limit is None else self._offset + self._limit]

    def rows(self) -> list[Any]:
        """All results as tuples with names, also if they are objects."""
        found = self.all()
        if len(self._what) > 1 or not isinstance(self._what[0], type):
            return found
        return list(map(_row_type(self._what), found))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.all())

    def __getitem__(self, index: Any) -> Any:
        return self.all()[index]

    def first(self) -> Any:
        """The first result, or None."""
        return next(iter(self.all()), None)

    def one_or_none(self) -> Any:
        """The only result, or None.

        Raises:
            MultipleResultsFound: there are several.
        """
        found = self.all()
        if len(found) > 1:
            raise MultipleResultsFound(f"{len(found)} results were found when one or none was required")
        return found[0] if found else None

    def one(self) -> Any:
        """The only result.

        Raises:
            NoResultFound: there is none.
            MultipleResultsFound: there are several.
        """
        found = self.one_or_none()
        if found is None:
            raise NoResultFound("no result was found when one was required")
        return found

    def scalar(self) -> Any:
        """The first column of the only result, or None."""
        found = self.one_or_none()
        return found[0] if isinstance(found, tuple) else found

    def count(self) -> int:
        """The number of results."""
        return len(self.all())

    def get(self, key: Any) -> Any:
        """The object with this name (of a DAG, variable, connection or pool), or None."""
        named = {"DagModel": "dag_id", "Variable": "key", "Connection": "conn_id", "Pool": "pool"}.get(self._table.__name__)
        if named is None:
            refuse(f"session.query({self._table.__name__}).get(…)")
        return self.filter_by(**{named: key}).first()


class XComQuery(Query):
    """The result of `XCom.get_many`: a query, as in Airflow 2, that is also a list, as in Airflow 1. It is read once."""

    _found: list[Any] | None = None

    def all(self) -> list[Any]:
        """All XComs that were found."""
        if self._found is None:
            self._found = super().all()
        return self._found

    def _with(self, **changes: Any) -> Query:
        return super()._with(found=None, **changes)

    def __len__(self) -> int:
        return len(self.all())


def _table_of(what: Iterable[Any], table: Any) -> Any:
    tables = {table} | {one if isinstance(one, type) else getattr(one, "owner", None) for one in what if not _function(one)}
    tables |= {table for one in what if _function(one) for table in _tables_in(one)}
    tables.discard(None)
    if len(tables) != 1:
        refuse("a query of several tables" if tables else f"a query of {', '.join(map(str, what))}")
    return tables.pop()


def _function(one: Any) -> str:
    """The name of one of SQLAlchemy's functions (`func.count(…)`); empty for other objects."""
    name = getattr(one, "name", "") if hasattr(one, "clauses") else ""
    return name if name in AGGREGATES else ""


def _without_label(one: Any) -> Any:
    """SQLAlchemy's label: the labelled column or function, with the label as its name in the results."""
    if getattr(one, "__visit_name__", "") != "label":
        return one
    inner = getattr(one.element, "tradewind", one.element)
    made = copy.copy(inner)
    made.label_name = one.name
    return made


def _row_type(what: Iterable[Any]) -> Callable[..., Any]:
    """A tuple whose parts have the names of the columns, or their labels: `row.dag_id`, `row[0]`."""
    names = [one.__name__ if isinstance(one, type) else getattr(one, "label_name", "") or one.name for one in what]
    return namedtuple("Row", names, rename=True)


def _tables_in(function: Any) -> list[Any]:
    carried = (getattr(clause, "tradewind", None) for clause in function.clauses)
    return [one.owner for one in carried if one is not None]


def _grouped(rows: list[Any], groups: tuple[Expression, ...], what: tuple[Any, ...]) -> list[Any]:
    by_key: dict[tuple[Any, ...], list[Any]] = {} if groups else {(): []}
    for row in rows:
        by_key.setdefault(tuple(column.value(row) for column in groups), []).append(row)
    row_type = _row_type(what)
    results = []
    for members in by_key.values():
        result = []
        for one in what:
            name = _function(one)
            if name:
                column = next((getattr(clause, "tradewind", None) for clause in one.clauses), None)
                values = [1 if column is None else column.value(row) for row in members]
                result.append(AGGREGATES[name]([value for value in values if value is not None]))
            else:
                result.append(getattr(members[0], one.name, None) if members else None)
        results.append(row_type(*result))
    return results


def _sortable(value: Any) -> tuple[bool, Any]:
    return value is not None, value if value is not None else 0


def matching(table: Any, values: Mapping[str, Any]) -> Any:
    """The object of a table with these values, or None."""
    return Query((table,)).filter_by(**values).first()
