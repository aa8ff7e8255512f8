"""Validation of DAG ids, task ids and task group ids."""

from __future__ import annotations

import re
from collections.abc import Container

from tradewind.model.errors import DefinitionError

MAX_LENGTH = 250
"""Maximum length of an id, including the prefix of its groups; Airflow's limit."""

_KEY = re.compile(r"[\w.\-]+")
_GROUP = re.compile(r"[\w\-]+")
_SUFFIX = re.compile(r"__\d+$")


def check_dag_id(dag_id: object) -> str:
    """Check a DAG id: letters of any script, digits, `-`, `_`, `.`, no `..`, at most 250 characters. Returns the id.

    Raises:
        DefinitionError: the id is invalid.
    """
    checked = _checked("dag_id", dag_id, _KEY, "letters, digits, dashes, dots and underscores")
    if ".." in checked:
        raise DefinitionError(f"dag_id {checked!r} has two dots in a row, which is not allowed")
    return checked


def check_task_id(task_id: object) -> str:
    """Check a task id (without the prefix of its groups): same rules as for a DAG id, but `..` is allowed. Returns the id.

    Raises:
        DefinitionError: the id is invalid.
    """
    return _checked("task_id", task_id, _KEY, "letters, digits, dashes, dots and underscores")


def check_group_id(group_id: object) -> str:
    """Check a task group id: same rules as for a task id, but without dots. Returns the id.

    Raises:
        DefinitionError: the id is invalid.
    """
    return _checked("group_id", group_id, _GROUP, "letters, digits, dashes and underscores")


def _checked(kind: str, value: object, pattern: re.Pattern[str], allowed: str) -> str:
    if not isinstance(value, str):
        raise DefinitionError(f"{kind} is {value!r}; it must be a string")
    if not pattern.fullmatch(value):
        raise DefinitionError(f"{kind} {value!r} may contain only {allowed}")
    if len(value) > MAX_LENGTH:
        raise DefinitionError(f"{kind} {value[:40]!r}… has {len(value)} characters; at most {MAX_LENGTH} are allowed")
    return value


def with_suffix(wanted: str, taken: Container[str], counters: dict[str, int]) -> str:
    """`wanted`, or `wanted__1`, `wanted__2`, … if the id is already used. For repeated calls of one `@task` function.

    `counters` stores the last number used for each id, so that 10,000 calls take 10,000 steps.
    """
    if wanted not in taken:
        return wanted
    stem = _SUFFIX.sub("", wanted)
    number = counters.get(stem, 0) + 1
    while f"{stem}__{number}" in taken:
        number += 1
    counters[stem] = number
    return f"{stem}__{number}"
