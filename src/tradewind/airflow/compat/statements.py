"""Statements of SQLAlchemy 2 that sessions execute: `session.scalars(select(DagRun).where(DagRun.dag_id == "etl")).all()`.

SQLAlchemy builds the statement. Its elements carry the classes and columns of which they were made (`tradewind.sdk.columns`), so
a statement can be read as a query of objects (`queries.Query`), which runs without SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tradewind.airflow.compat.queries import MultipleResultsFound, NoResultFound, Query, refuse


class Results:
    """The results of a statement: rows, or single values after `scalars()`."""

    def __init__(self, found: list[Any], row_count: int = -1) -> None:
        self._left = iter(found)
        self.rowcount = row_count
        """How many rows a statement has deleted; -1 for a select."""

    def __iter__(self) -> Iterator[Any]:
        return self._left

    def all(self) -> list[Any]:
        """The results that have not been read yet."""
        return list(self._left)

    fetchall = all

    def first(self) -> Any:
        """The next result, or None."""
        return next(self._left, None)

    fetchone = first

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
        found = self.all()
        if len(found) != 1:
            error = MultipleResultsFound if found else NoResultFound
            raise error(f"{len(found) or 'no'} results were found when one was required")
        return found[0]

    def unique(self, strategy: Callable[[Any], Any] | None = None) -> Results:
        """Each result only once; `strategy` gives what is compared."""
        found: dict[Any, Any] = {}
        for one in self._left:
            found.setdefault(strategy(one) if strategy else one, one)
        return Results(list(found.values()))

    def scalars(self, index: int = 0) -> Results:
        """One column of each row."""
        return Results([row[index] for row in self._left])

    def scalar(self) -> Any:
        """The first column of the first row, or None."""
        return next((row[0] for row in self._left), None)

    def scalar_one(self) -> Any:
        """The first column of the only row. Raises as `one`."""
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        """The first column of the only row, or None. Raises as `one_or_none`."""
        found = self.one_or_none()
        return None if found is None else found[0]

    def mappings(self) -> Results:
        """The rows as mappings: name of the column → value."""
        return Results([row._asdict() for row in self._left])


def execute(statement: Any) -> Results:
    """Execute a statement of SQLAlchemy.

    Raises:
        NotYetSupported: the statement has several tables, or changes rows, or is the text of a statement.
    """
    kind = getattr(statement, "__visit_name__", "")
    if kind == "select":
        return Results(_query_of(statement).rows())
    table = _carried(statement.table) if kind in ("insert", "update", "delete") else None
    if table is None:
        refuse(f"session.execute({statement!s:.200})")
    if kind == "insert":
        refuse(f"inserting rows of {table.__name__}")
    query = _filtered(Query((table,)), statement)
    return Results([], query.delete() if kind == "delete" else query.update())


def _carried(element: Any) -> Any:
    """The class or column of which SQLAlchemy has made an element; labels and functions themselves; None for others."""
    if hasattr(element, "clauses") or getattr(element, "__visit_name__", "") == "label":
        return element
    return getattr(element, "tradewind", None)


def _carried_by(elements: Any, what: str) -> tuple[Any, ...]:
    found = tuple(map(_carried, elements))
    if any(one is None for one in found):
        refuse(f"{what}({', '.join(map(str, elements))})")
    return found


def _query_of(statement: Any) -> Query:
    if statement._setup_joins or statement._having_criteria:
        refuse("a statement with join or having")
    tables = _carried_by(statement._from_obj, "select_from")
    if len(tables) > 1:
        refuse("a query of several tables")
    query = _filtered(Query(_carried_by(statement._raw_columns, "select"), tables[0] if tables else None), statement)
    query = query.order_by(*statement._order_by_clauses)
    if statement._group_by_clauses:
        query = query.group_by(*_carried_by(statement._group_by_clauses, "group_by"))
    if statement._distinct:
        query = query.distinct()
    if statement._offset_clause is not None:
        query = query.offset(statement._offset_clause.value)
    return query.limit(None if statement._limit_clause is None else statement._limit_clause.value)


def _filtered(query: Query, statement: Any) -> Query:
    return query if statement.whereclause is None else query.filter(statement.whereclause)
