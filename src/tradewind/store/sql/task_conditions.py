"""Conditions of task instance lists on fields that only the definitions of DAGs have: pool, queue, operator, executor, name, group.

The database has no column for them. So the tasks that match are found in the definitions first. The statement names these tasks
by the version of the DAG and the task id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tradewind.model.operator_classes import class_name
from tradewind.store.search_patterns import begins, like, prefixes
from tradewind.store.sql.queries import Value, Where
from tradewind.store.views import Conditions, TooBroad

FIELDS = ("pool", "queue", "operator", "executor", "task_display_name")
"""The fields of `Conditions` for which this module decides."""

VERSIONS_MAX = 500
TASK_IDS_MAX = 20_000
"""Maximum number of versions and task ids that one list examines, because databases limit the parameters of a statement."""


class TaskFacts(NamedTuple):
    """The fields of one task in the definition."""

    task_id: str
    pool: str
    queue: str
    operator: str
    executor: str | None
    task_display_name: str
    groups: tuple[str, ...]
    """Ids of the groups that contain the task."""


Matches = Callable[[TaskFacts], bool]


def split(conditions: Conditions) -> tuple[Conditions, Conditions]:
    """Return (the conditions for the database, the conditions on `FIELDS`)."""
    rest = Conditions(
        {name: one for name, one in conditions.patterns.items() if name not in FIELDS},
        {name: one for name, one in conditions.prefixes.items() if name not in FIELDS},
        {name: one for name, one in conditions.among.items() if name not in FIELDS},
        conditions.ranges,
    )
    ours = Conditions(
        {name: one for name, one in conditions.patterns.items() if name in FIELDS and one != "~" and one.strip("|")},
        {name: one for name, one in conditions.prefixes.items() if name in FIELDS and prefixes(one)},
        {name: one for name, one in conditions.among.items() if name in FIELDS and one},
    )
    return rest, ours


def is_empty(conditions: Conditions) -> bool:
    return not (conditions.patterns or conditions.prefixes or conditions.among)


def only(conditions: Conditions, names: Iterable[str]) -> Conditions:
    """Return the conditions on these fields."""
    kept = set(names)
    return Conditions(
        {name: one for name, one in conditions.patterns.items() if name in kept},
        {name: one for name, one in conditions.prefixes.items() if name in kept},
        {name: one for name, one in conditions.among.items() if name in kept},
    )


def matcher(conditions: Conditions) -> Matches:
    """Return a function that says whether a task meets all conditions."""
    among = [(name, set(wanted)) for name, wanted in conditions.among.items()]
    patterns = [(name, like(pattern)) for name, pattern in conditions.patterns.items()]

    def matches(task: TaskFacts) -> bool:
        return (
            all(regex.search(_text(task, name)) for name, regex in patterns)
            and all(begins(_text(task, name), prefix) for name, prefix in conditions.prefixes.items())
            and all(not wanted.isdisjoint(_values(task, name)) for name, wanted in among)
        )

    return matches


def _text(task: TaskFacts, name: str) -> str:
    return str(getattr(task, name) or "")


def _values(task: TaskFacts, name: str) -> tuple[str | None, ...]:
    """The values that a filter may name: an operator by its shown name (`@task`) or by the name of its class."""
    value = getattr(task, name)
    return (value, class_name(value)) if name == "operator" else (value,)


class VersionTasks(NamedTuple):
    """The tasks of one version that match."""

    version: int
    task_ids: Sequence[str]
    all_tasks: bool


def chosen_pool_term(pool_conditions: Conditions, column: str) -> tuple[str, list[Value]]:
    """Return the condition on a pool that a person chose for a task instance (`column`). It replaces the definition's pool."""
    own = Where()
    for pattern in pool_conditions.patterns.values():
        regex = [part for part in pattern.split("|") if part]
        own.add("(" + " OR ".join([f"lower({column}) LIKE lower(?)"] * len(regex)) + ")", *(f"%{part}%" for part in regex))
    for prefix in pool_conditions.prefixes.values():
        own.prefix(column, prefix)
    for values in pool_conditions.among.values():
        own.one_of(column, list(values))
    return " AND ".join(own.terms) or "1 = 1", own.parameters


def tasks_term(found: Sequence[VersionTasks], version_column: str, task_column: str) -> tuple[str, list[Value]]:
    """Return the condition that a task instance is one of these tasks.

    Raises:
        TooBroad: there are too many tasks for one statement.
    """
    if sum(len(one.task_ids) for one in found if not one.all_tasks) > TASK_IDS_MAX:
        raise TooBroad("This filter looks at the tasks of too many DAGs. Name a DAG, or a run.")
    terms: list[str] = []
    parameters: list[Value] = []
    whole = [one.version for one in found if one.all_tasks]
    if whole:
        terms.append(f"{version_column} IN ({', '.join('?' * len(whole))})")
        parameters += whole
    for one in found:
        if one.task_ids and not one.all_tasks:
            terms.append(f"({version_column} = ? AND {task_column} IN ({', '.join('?' * len(one.task_ids))}))")
            parameters += [one.version, *one.task_ids]
    return "(" + " OR ".join(terms) + ")" if terms else "1 = 0", parameters
