"""Queries of several tables: which objects belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from tradewind.airflow.compat.models import DagModel, DagTag
from tradewind.airflow.compat.query_rows import rows_of
from tradewind.airflow.compat.xcom import BaseXCom
from tradewind.execution.task_instance import DagRun, TaskInstance
from tradewind.sdk.columns import Condition, Expression, JoinedRow, all_of, condition_of, unwrapped

_RELATIONS: Mapping[tuple[type, str], type] = {
    (TaskInstance, "dag_run"): DagRun,
    (TaskInstance, "dag_model"): DagModel,
    (DagRun, "task_instances"): TaskInstance,
    (DagRun, "dag_model"): DagModel,
    (DagModel, "tags"): DagTag,
}
"""Relations by which queries join tables → the other table."""

_KEYS: Sequence[tuple[type, tuple[str, ...]]] = (
    (TaskInstance, ("dag_id", "run_id", "task_id", "map_index")),
    (BaseXCom, ("dag_id", "run_id", "task_id", "map_index")),
    (DagRun, ("dag_id", "run_id")),
    (DagModel, ("dag_id",)),
    (DagTag, ("dag_id",)),
)
"""The columns that name an object. Tables are joined by those that both have."""

ROWS_MAX = 200_000
"""Maximum number of joined rows."""


class Join(NamedTuple):
    """A table that a query also reads.

    `on`: the condition; `outer`: rows without an object of the table are kept.
    """

    table: type
    on: Condition
    outer: bool


def join_of(first: type, tables: Sequence[type], target: Any, on: Sequence[Any], *, outer: bool) -> Join | None:
    """A join from the arguments of `query.join(…)`; None: the tables cannot be joined.

    Args:
        first: the first table of the query.
        tables: all tables that the query names.
    """
    target = unwrapped(target)
    if isinstance(target, Expression):  # a relation
        other = _RELATIONS.get((target.owner, target.name))
        return None if other is None else Join(other, _by_keys(target.owner, other), outer)
    if not isinstance(target, type):
        return None
    wanted = [unwrapped(one) for one in on if one is not None]
    if len(wanted) == 1 and isinstance(wanted[0], Expression) and (wanted[0].owner, wanted[0].name) in _RELATIONS:
        return Join(target, _by_keys(wanted[0].owner, target), outer)
    conditions = [condition_of(one) for one in wanted]
    known = [one for one in conditions if one is not None]
    if len(known) < len(conditions):
        return None
    base = next((table for table in tables if table is not target), first)
    joined = all_of(known) if known else _by_keys(base, target)
    return Join(target, joined, outer) if joined.links or known else None


def _by_keys(one: type, other: type) -> Condition:
    """The columns that name an object are equal, as far as both tables have them."""
    shared = [name for name in _keys_of(one) if name in _keys_of(other)]
    return all_of([getattr(one, name) == getattr(other, name) for name in shared])


def _keys_of(table: type) -> tuple[str, ...]:
    return next((names for known, names in _KEYS if issubclass(table, known)), ())


def joined(
    first: type,
    more: Sequence[type],
    joins: Sequence[Join],
    condition: Condition,
    refuse: Callable[[str], NoReturn],
) -> list[Any]:
    """The rows of several tables that belong together; the caller tests its condition.

    Args:
        more: further tables of the query; a condition of it links them.
        condition: the condition of the query. Its columns limit what is requested.
    """
    every = [*joins, *(Join(table, condition, False) for table in more if table not in {join.table for join in joins})]
    rows = [JoinedRow({first: row}) for row in rows_of(first, condition.equal_of(first))]
    for join in every:
        rows = _extended(rows, join, condition, refuse)
        if len(rows) > ROWS_MAX:
            refuse(f"a query with more than {ROWS_MAX:,} joined rows")
    return list(rows)


def _extended(
    rows: Sequence[JoinedRow], join: Join, condition: Condition, refuse: Callable[[str], NoReturn]
) -> list[JoinedRow]:
    """Add the objects of one more table to rows."""
    if not rows:
        return []
    links = [link for link in (_link(pair, rows[0], join.table) for pair in join.on.links) if link is not None]
    if not links:
        refuse(f"a query of several tables without a condition that links {join.table.__name__} with another one")
    equal = condition.equal_of(join.table) if not join.outer else {}
    for column, values in join.on.equal_of(join.table).items():
        equal[column] = equal.get(column, values) & values
    for before, after in links:
        values = frozenset(before.value(row) for row in rows)
        equal[after.name] = equal.get(after.name, values) & values
    by_key: dict[tuple[Any, ...], list[Any]] = {}
    for found in rows_of(join.table, equal):
        alone = JoinedRow({join.table: found})
        by_key.setdefault(tuple(after.value(alone) for _, after in links), []).append(found)
    made: list[JoinedRow] = []
    for row in rows:
        key = tuple(before.value(row) for before, _ in links)
        tried = [JoinedRow({**row, join.table: found}) for found in by_key.get(key, ())]
        matches = tried if join.on is condition else [one for one in tried if join.on.test(one)]
        made += matches or ([JoinedRow({**row, join.table: None})] if join.outer else [])
    return made


def _link(pair: tuple[Expression, Expression], row: JoinedRow, table: type) -> tuple[Expression, Expression] | None:
    """(column of a table that a row has, column of the new table); None if the pair does not link them."""
    for before, after in (pair, pair[::-1]):
        if after.owner is table and before.owner is not table and row.of(before.owner) is not None:
            return before, after
    return None
