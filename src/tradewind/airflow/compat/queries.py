"""Queries of `settings.Session()`: `session.query(DagRun).filter(DagRun.dag_id == "etl").order_by(DagRun.execution_date.desc())`.

The same queries with SQLAlchemy's `select` are in `selects`. The objects come from the scheduler through the channel of the task
(while a DAG file is read: all but XComs). This module tests the conditions. The rows that a query
can see are limited: the latest 1,000 runs of each DAG that it names, or the latest 100 of each DAG if it names no DAG; the task
instances of the runs that it names, or of the latest 25 runs of each DAG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from tradewind.airflow.compat import query_joins, test_rows
from tradewind.airflow.compat.pending_changes import kind_of
from tradewind.airflow.compat.query_results import MultipleResultsFound, NoResultFound, Row, one_of
from tradewind.airflow.compat.query_rows import rows_of
from tradewind.airflow.compat.session import Session
from tradewind.execution.local_database import open_database
from tradewind.execution.task_instance import log
from tradewind.model.errors import NotYetSupported
from tradewind.sdk import open_dags
from tradewind.sdk.columns import Condition, Expression, JoinedRow, Order, all_of, condition_of, order_of, unwrapped

__all__ = ["MultipleResultsFound", "NoResultFound", "Query", "XComQuery", "matching", "refuse"]

AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "max": lambda values: max(values, default=None),
    "min": lambda values: min(values, default=None),
    "sum": lambda values: sum(values) if values else None,
    "avg": lambda values: sum(values) / len(values) if values else None,
}


INSTEAD = {
    "DagRun": "`tradewind dags clear` to run it again, `tradewind db clean` for old runs",
    "TaskInstance": "`tradewind tasks clear` to run it again, `tradewind db clean` for old runs",
    "DagModel": "`tradewind dags delete`; only is_paused can be changed",
}
"""Name of a table → the commands that change its rows."""


def refuse(what: str, table: Any = None) -> NoReturn:
    """Refuse a change of rows, or a query that is not supported.

    Args:
        table: the table that would be changed, or one of its objects.

    Raises:
        NotYetSupported: the message says what to use instead.
    """
    command = INSTEAD.get(getattr(table, "__name__", "") or getattr(table, "table", ""))
    raise NotYetSupported(
        f"{what} needs Airflow's metadata database, which user code cannot reach."
        f"{f' Use {command}.' if command else ''} Queries with filter, join, order_by, group_by, "
        "limit, count, first and all work, and select(…) with execute, scalars and scalar. Connections, variables and pools can be "
        "added, changed and deleted, and DAGs paused. To change something else use ti.xcom_push, trigger_dag, the command line "
        "(`tradewind airflow …`) or the REST API (/api/v2); to read more, ti.xcom_pull or the REST API"
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


class Exists:
    """`query.exists()`: whether a query finds something, for `session.query(query.exists()).scalar()`."""

    def __init__(self, query: Query) -> None:
        self.query = query


class Query:
    """A query of tables. Its methods return a new query, or the result."""

    def __init__(self, what: tuple[Any, ...], session: Any = None) -> None:
        """Create a query.

        Args:
            what: tables, columns, and SQLAlchemy's functions of columns.
            session: the session that notes changes of the objects that are found. None: changes of them are not stored.
        """
        if not what:
            refuse("session.query() without a table")
        self._session = session
        self._what = tuple(unwrapped(one) for one in what)
        self._conditions: tuple[Condition, ...] = ()
        self._orders: tuple[Order, ...] = ()
        self._groups: tuple[Expression, ...] = ()
        self._joins: tuple[query_joins.Join, ...] = ()
        self._limit: int | None = None
        self._offset = 0
        self._distinct = False
        self._tables: tuple[type, ...] = _tables_of(self._what)

    def _with(self, **changes: Any) -> Any:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, **{f"_{name}": value for name, value in changes.items()})
        return made

    @property
    def _table(self) -> Any:
        """The first table."""
        if not self._tables:
            refuse(f"a query of {', '.join(map(str, self._what))} without a table (select_from)")
        return self._tables[0]

    def filter(self, *clauses: Any) -> Query:
        """Keep only objects that meet all conditions.

        A query that names no table (`session.query(func.count())`) is one of the tables of these conditions, as in SQLAlchemy.
        """
        found = []
        for clause in clauses:
            if isinstance(clause, bool):  # the result of a comparison with something that is not a column
                clause = Condition(lambda _row, holds=clause: holds)  # type: ignore[misc]
            condition = condition_of(clause)
            if condition is None:
                refuse(f"the condition {clause!s:.200}")
            found.append(condition)
        named = dict.fromkeys(owner for condition in found for owner, _column in condition.equal)
        made: Query = self._with(conditions=(*self._conditions, *found), tables=self._tables or tuple(named))
        return made

    where = filter

    def filter_by(self, **values: Any) -> Query:
        """Keep only objects with these values."""
        table = self._joins[-1].table if self._joins else self._table
        return self.filter(*(getattr(table, name) == value for name, value in values.items()))

    def order_by(self, *clauses: Any) -> Query:
        """Sort by these columns. One None instead of columns removes the order."""
        if len(clauses) == 1 and clauses[0] is None:
            cleared: Query = self._with(orders=())
            return cleared
        orders = [order_of(clause) for clause in clauses]
        if None in orders:
            refuse("an order_by of this kind")
        made: Query = self._with(orders=(*self._orders, *orders))
        return made

    def group_by(self, *columns: Any) -> Query:
        """One result for each set of values of these columns; the other results are functions such as `func.count()`."""
        groups = tuple(unwrapped(column) for column in columns)
        if not all(isinstance(one, Expression) for one in groups):
            refuse("a group_by of something else than a column")
        made: Query = self._with(groups=groups)
        return made

    def limit(self, number: int | None) -> Query:
        """Return at most this number of results."""
        made: Query = self._with(limit=number)
        return made

    def offset(self, number: int) -> Query:
        """Skip this number of results."""
        made: Query = self._with(offset=number or 0)
        return made

    def slice(self, first: int, last: int) -> Query:
        """The results from `first` (counted from 0) to before `last`."""
        made: Query = self._with(offset=first, limit=last - first)
        return made

    def distinct(self, *_columns: Any) -> Query:
        """Return each result only once."""
        made: Query = self._with(distinct=True)
        return made

    def options(self, *_options: Any, **_more: Any) -> Query:
        """Do nothing: loading options have no effect here."""
        return self

    with_for_update = execution_options = autoflush = from_self = options
    populate_existing = yield_per = enable_eagerloads = options

    def with_entities(self, *what: Any) -> Query:
        """A query of the same objects with other results."""
        made: Query = self._with(what=tuple(unwrapped(one) for one in what))
        return made

    def select_from(self, *tables: Any) -> Query:
        """Read this table, if the results do not name it."""
        named = [unwrapped(table) for table in tables]
        found = tuple(dict.fromkeys([*named, *self._tables]))
        if not all(isinstance(table, type) for table in found):
            refuse("a select_from of something else than a table")
        made: Query = self._with(tables=found)
        return made

    def join(self, target: Any, *on: Any, isouter: bool = False, onclause: Any = None, **_options: Any) -> Query:
        """Also read another table; a result needs an object of each table.

        Args:
            target: a table, or a relation such as `TaskInstance.dag_run`.
            on: the condition. Without one, the ids of DAG, run and task that both tables have are equal.
            isouter: keep objects without a match.
        """
        found = query_joins.join_of(self._table, self._tables, target, (*on, onclause), outer=isouter)
        if found is None:
            refuse(f"a join with {target!s:.100}")
        tables = tuple(table for table in self._tables if table is not found.table)
        made: Query = self._with(joins=(*self._joins, found), tables=tables or self._tables)
        return made

    def outerjoin(self, target: Any, *on: Any, **options: Any) -> Query:
        """As `join`, and keep objects without a match."""
        return self.join(target, *on, **{**options, "isouter": True})

    def union(self, *_args: Any, **_options: Any) -> NoReturn:
        """Refuse: a query that is made of queries."""
        refuse("a query that is made of queries (union, subquery, having)")

    union_all = intersect = except_ = subquery = having = cte = scalar_subquery = as_scalar = union

    def delete(self, *_args: Any, **_options: Any) -> int:
        """Delete connections, variables and pools at the commit of the session. Returns how many.

        Rendered fields stay, because those that a task adds replace them.

        XComs are not deleted, because they are removed together with their run: a warning is logged. In a process that runs tests,
        delete the objects in its memory. While a DAG file is read, change nothing.

        Raises:
            NotYetSupported: another table.
        """
        if self._table.__name__ == "RenderedTaskInstanceFields":
            return 0
        kind = kind_of(self._table)
        can_delete = kind is not None and not kind.only_changes
        if test_rows.is_possible() and not can_delete:
            return test_rows.delete_all(self._objects)
        if changes_nothing(f"deleting from {self._table.__name__}"):
            return 0
        if can_delete and self._session is not None:
            found = self._objects()
            for one in found:
                self._session.delete(one)
            return len(found)
        if self._table.__name__ not in ("XCom", "BaseXCom", "XComModel"):
            refuse(f"deleting from {self._table.__name__}", self._table)
        log.warning("session.query(XCom).delete() does nothing: XComs are removed with their run (tradewind db clean)")
        return 0

    def update(self, values: Mapping[Any, Any], *_args: Any, **_options: Any) -> int:
        """Change connections, variables and pools at the commit of the session. Returns how many.

        While a DAG file is read, change nothing.

        Args:
            values: column, or its name → the new value.

        Raises:
            NotYetSupported: another table, or a value that is computed from columns.
        """
        if changes_nothing(f"changing rows of {self._table.__name__}"):
            return 0
        kind = kind_of(self._table)
        named = {getattr(unwrapped(column), "name", column): unwrapped(value) for column, value in values.items()}
        if kind is None or self._session is None or (kind.only_changes and not named.keys() <= set(kind.columns)):
            refuse(f"changing rows of {self._table.__name__}", self._table)
        if any(isinstance(value, Expression) or hasattr(value, "__clause_element__") for value in named.values()):
            refuse(f"changing rows of {self._table.__name__} to values that are computed from columns", self._table)
        found = self._objects()
        for one in found:
            for name, value in named.items():
                setattr(one, name, value)
        return len(found)

    # --- results ----------------------------------------------------------------------------------------------------

    def _objects(self) -> list[Any]:
        """The objects that meet the conditions, in order; of several tables: joined rows."""
        if test_rows.is_possible():
            open_database()
        condition = all_of(self._conditions)
        if self._joins or len(self._tables) > 1:
            found: list[Any] = query_joins.joined(self._table, self._tables[1:], self._joins, condition, refuse)
        else:
            rows = rows_of(self._table, condition.equal_of(self._table))
            found = list(rows if self._session is None else self._session.pending.seen(self._table, rows))
        found = [row for row in found if condition.test(row)]
        for order in reversed(self._orders):
            found.sort(key=lambda row, by=order.column: _sortable(by.value(row)), reverse=order.descending)  # type: ignore[misc]
        return found

    def names(self) -> list[str]:
        """The name of each value of a result."""
        return [_name_of(one) for one in self._what]

    def rows(self) -> list[Row]:
        """All results; each is a row with one value for each table, column or function."""
        make = Row.maker(self.names())
        if len(self._what) == 1 and isinstance(self._what[0], Exists):
            return [make((bool(self._what[0].query.limit(1).rows()),))]
        found = self._objects()
        if self._groups or any(_function(one) for one in self._what):
            results = [make(values) for values in _grouped(found, self._groups, self._what)]
        else:
            results = [make(_value_of(one, row) for one in self._what) for row in found]
        if self._distinct:
            results = list(dict.fromkeys(results))
        return results[self._offset : None if self._limit is None else self._offset + self._limit]

    def all(self) -> list[Any]:
        """All results: objects for a query of one table, otherwise rows."""
        rows = self.rows()
        return [row[0] for row in rows] if len(self._what) == 1 and isinstance(self._what[0], type) else list(rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.all())

    def __getitem__(self, index: Any) -> Any:
        return self.all()[index]

    def exists(self) -> Exists:
        """Whether the query finds something, for `session.query(….exists()).scalar()`."""
        return Exists(self)

    def first(self) -> Any:
        """The first result, or None."""
        return next(iter(self.all()), None)

    def one_or_none(self) -> Any:
        """The only result, or None. Raises MultipleResultsFound."""
        return one_of(self.all(), or_none=True)

    def one(self) -> Any:
        """The only result. Raises NoResultFound, MultipleResultsFound."""
        return one_of(self.all(), or_none=False)

    def scalar(self) -> Any:
        """The first column of the only result, or None."""
        found = self.one_or_none()
        return found[0] if isinstance(found, tuple) else found

    def scalars(self) -> list[Any]:
        """The first column of each result."""
        return [row[0] for row in self.rows()]

    def count(self) -> int:
        """The number of results."""
        return len(self.rows())

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
        made: Query = super()._with(found=None, **changes)
        return made

    def __len__(self) -> int:
        return len(self.all())


def _tables_of(what: Iterable[Any]) -> tuple[type, ...]:
    """The tables that results name, in order."""
    tables: dict[type, None] = {}
    for one in what:
        if isinstance(one, Exists):
            continue
        if isinstance(one, type):
            tables[one] = None
        elif isinstance(one, Expression):
            tables[one.owner] = None
        elif _function(one):
            tables.update(dict.fromkeys(column.owner for column in _arguments(one)))
        else:
            refuse(f"a query of {one!s:.100}")
    return tuple(tables)


def _unlabelled(one: Any) -> Any:
    """The function inside a label: `func.count().label("n")`."""
    return one.element if type(one).__name__ == "Label" else one


def _function(one: Any) -> str:
    """The name of one of SQLAlchemy's functions (`func.count(…)`); empty for other objects."""
    one = _unlabelled(one)
    name = getattr(one, "name", "") if hasattr(one, "clauses") else ""
    return name if name in AGGREGATES else ""


def _arguments(function: Any) -> list[Expression]:
    """The columns in a function; those in SQLAlchemy's `distinct(…)` count each value once."""
    found = []
    for clause in _unlabelled(function).clauses:
        column = getattr(clause, "tradewind", None)
        if column is None and getattr(getattr(clause, "operator", None), "__name__", "") == "distinct_op":
            inner = getattr(getattr(clause, "element", None), "tradewind", None)
            column = inner.distinct() if isinstance(inner, Expression) else None
        if isinstance(column, Expression):
            found.append(column)
    return found


def _name_of(one: Any) -> str:
    if isinstance(one, type):
        return one.__name__
    if isinstance(one, Expression):
        return one.label_name or one.name
    return "exists" if isinstance(one, Exists) else str(getattr(one, "name", "") or "")


def _value_of(one: Any, row: Any) -> Any:
    if isinstance(one, type):
        return row.of(one) if isinstance(row, JoinedRow) else row
    return one.plain(row)


def _grouped(rows: list[Any], groups: tuple[Expression, ...], what: tuple[Any, ...]) -> list[Any]:
    by_key: dict[tuple[Any, ...], list[Any]] = {} if groups else {(): []}
    for row in rows:
        by_key.setdefault(tuple(column.value(row) for column in groups), []).append(row)
    results = []
    for members in by_key.values():
        result = []
        for one in what:
            name = _function(one)
            if name:
                column = next(iter(_arguments(one)), None)
                values: Iterable[Any] = [1 if column is None else column.value(row) for row in members]
                values = [value for value in values if value is not None]
                result.append(AGGREGATES[name](list(set(values)) if column is not None and column.is_distinct else values))
            else:
                result.append(_value_of(one, members[0]) if members else None)
        results.append(tuple(result))
    return results


def _sortable(value: Any) -> tuple[bool, Any]:
    return value is not None, value if value is not None else 0


def matching(table: Any, values: Mapping[str, Any], session: Any = None) -> Any:
    """The object of a table with these values, or None. See `Query` for the session."""
    return Query((table,), session or Session()).filter_by(**values).first()
