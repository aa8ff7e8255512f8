"""`access_control` of a DAG: what the users of a role may do with it, in Airflow's words.

    {"finance": {"can_read", "can_edit"}}                                Airflow 2 and 3, with FAB
    {"finance": {"DAGs": {"can_read"}, "DAG Runs": {"can_create"}}}      since Airflow 2.10
    {"finance": {"can_dag_read"}}                                        Airflow 1.10

A role is a custom role, or one of the built-in ones (Viewer, User, Op). The users have these rights in addition to their other
rights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_DAGS, _RUNS = "DAGs", "DAG Runs"

_ACTIONS: dict[tuple[str, str], str] = {
    (_DAGS, "can_read"): "read",
    (_DAGS, "can_dag_read"): "read",
    (_DAGS, "can_edit"): "edit",
    (_DAGS, "can_dag_edit"): "edit",
    (_DAGS, "can_delete"): "delete",
    (_RUNS, "can_read"): "read",
    (_RUNS, "can_create"): "run",
    (_RUNS, "can_edit"): "edit",
    (_RUNS, "can_delete"): "edit",
    (_RUNS, "menu_access"): "read",
}
"""(resource, permission) → grant action of `model.accounts`. Source: FAB's resources "DAGs" and "DAG Runs"."""


def granted(access_control: Any) -> dict[str, tuple[str, ...]]:
    """Role → grant actions. Permissions that do not exist are left out; `unknown` names them."""
    found: dict[str, set[str]] = {}
    for role, resource, permission in _entries(access_control):
        action = _ACTIONS.get((resource, permission))
        if action is not None:
            found.setdefault(role, set()).add(action)
    return {role: tuple(sorted(actions)) for role, actions in sorted(found.items())}


def unknown(access_control: Any) -> list[str]:
    """The permissions that do not exist, in the form in which messages name them."""
    return sorted(
        {
            f"{permission!r} of {resource!r}"
            for _, resource, permission in _entries(access_control)
            if (resource, permission) not in _ACTIONS
        }
    )


def _entries(access_control: Any) -> Iterator[tuple[str, str, str]]:
    """(role, resource, permission)."""
    if not isinstance(access_control, Mapping):
        return
    for role, given in access_control.items():
        resources = given if isinstance(given, Mapping) else {_DAGS: given}
        for resource, permissions in resources.items():
            for permission in _texts(permissions):
                yield str(role), str(resource), permission


def _texts(permissions: Any) -> Iterable[str]:
    if isinstance(permissions, str):
        return (permissions,)
    return map(str, permissions) if isinstance(permissions, Iterable) else ()
