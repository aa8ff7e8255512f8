"""What a DAG, a task and a task group may be called."""

from __future__ import annotations

import re
from collections.abc import Container

from tradewind.model.errors import DefinitionError

MAX_LENGTH = 250
"""Longest id, its groups' prefixes included; Airflow's limit."""

_KEY = re.compile(r"[A-Za-z0-9_.\-]+")
_GROUP = re.compile(r"[A-Za-z0-9_\-]+")
_SUFFIX = re.compile(r"__\d+$")


def check_dag_id(dag_id: object) -> str:
    """The id itself, when a DAG may be called so: letters, digits, `-`, `_`, `.`, no `..`, at most 250 characters.

    Raises:
        DefinitionError: it may not.
    """
    checked = _checked("dag_id", dag_id, _KEY, "letters, digits, dashes, dots and underscores")
    if ".." in checked:
        raise DefinitionError(f"dag_id {checked!r} has two dots in a row, which an id may not have")
    return checked


def check_task_id(task_id: object) -> str:
    """The id itself, when a task may be called so (before the prefix of its groups).

    Raises:
        DefinitionError: it may not.
    """
    return _checked("task_id", task_id, _KEY, "letters, digits, dashes, dots and underscores")


def check_group_id(group_id: object) -> str:
    """The id itself, when a task group may be called so: as a task, but without dots.

    Raises:
        DefinitionError: it may not.
    """
    return _checked("group_id", group_id, _GROUP, "letters, digits, dashes and underscores")


def _checked(kind: str, value: object, pattern: re.Pattern[str], allowed: str) -> str:
    if not isinstance(value, str):
        raise DefinitionError(f"{kind} is {value!r}; it must be a text")
    if not pattern.fullmatch(value):
        raise DefinitionError(f"{kind} {value!r} may only have {allowed}")
    if len(value) > MAX_LENGTH:
        raise DefinitionError(f"{kind} {value[:40]!r}… has {len(value)} characters; at most {MAX_LENGTH} are allowed")
    return value


def with_suffix(wanted: str, taken: Container[str], counters: dict[str, int]) -> str:
    """`wanted`, or where that is taken `wanted__1`, `wanted__2`, …: repeated calls of one `@task` function.

    `counters` remembers the last number given per id, so that 10,000 calls cost 10,000 steps.
    """
    if wanted not in taken:
        return wanted
    stem = _SUFFIX.sub("", wanted)
    number = counters.get(stem, 0) + 1
    while f"{stem}__{number}" in taken:
        number += 1
    counters[stem] = number
    return f"{stem}__{number}"
