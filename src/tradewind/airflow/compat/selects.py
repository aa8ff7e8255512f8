"""Statements of SQLAlchemy as queries: `session.scalars(select(DagRun).where(DagRun.dag_id == "etl"))`.

Only statements that `queries` can answer: `select` of tables, columns and functions, with `where`, `join`, `order_by`, `group_by`,
`distinct`, `limit` and `offset`, and `update` and `delete` of one table.
"""

from __future__ import annotations

from typing import Any

from tradewind.airflow.compat.queries import Exists, Query, refuse
from tradewind.airflow.compat.query_results import Result
from tradewind.sdk.columns import unwrapped

__all__ = ["execute", "query_of"]


def execute(statement: Any, session: Any = None) -> Result:
    """The rows of a statement. See `Query` for the session.

    Raises:
        NotYetSupported: text of SQL, a statement that changes rows, or a `select` that is not supported.
    """
    if type(statement).__name__ == "Delete":
        query = Query((_table_of(statement),), session).filter(*statement._where_criteria)
        return Result([], (), query.delete())
    if type(statement).__name__ == "Update":
        query = Query((_table_of(statement),), session).filter(*statement._where_criteria)
        return Result([], (), query.update(_values_of(statement)))
    query = query_of(statement, session)
    return Result(query.rows(), query.names())


def query_of(statement: Any, session: Any = None) -> Query:
    """The query that gives the result of a `select`. A query of `session.query(…)` is returned unchanged.

    Args:
        session: see `Query`.

    Raises:
        NotYetSupported: see `execute`.
    """
    if isinstance(statement, Query):
        return statement
    if isinstance(statement, Exists):
        return Query((statement,))
    if type(statement).__name__ == "Insert":
        refuse(f"insert({getattr(_table_of(statement), '__name__', 'a table')}), instead of session.add(…),")
    if type(statement).__name__ != "Select":
        refuse(f"session.execute({statement!s:.100})")
    if statement._having_criteria or statement._fetch_clause is not None:
        refuse("a select with having or fetch")
    query = Query(tuple(statement._raw_columns), session)
    if statement._from_obj:
        query = query.select_from(*statement._from_obj)
    for target, on, _left, flags in statement._setup_joins:
        query = query.join(target, *([] if on is None else [on]), isouter=bool(flags.get("isouter") or flags.get("full")))
    query = query.filter(*statement._where_criteria)
    if statement._order_by_clauses:
        query = query.order_by(*statement._order_by_clauses)
    if statement._group_by_clauses:
        query = query.group_by(*statement._group_by_clauses)
    if statement._distinct:
        query = query.distinct()
    return query.limit(statement._limit).offset(statement._offset or 0)


def _values_of(statement: Any) -> dict[Any, Any]:
    """Column → new value of an `update`."""
    given = statement._values or {}
    return {unwrapped(column): getattr(value, "value", value) for column, value in given.items()}


def _table_of(statement: Any) -> Any:
    """The table that a statement changes."""
    return getattr(getattr(statement, "table", None), "tradewind", None) or refuse(f"session.execute({statement!s:.100})")
