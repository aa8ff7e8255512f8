"""The permissions of each role. Every route names its policy; a route without a policy is closed to everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tradewind.api.auth.users import ROLES

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


class Policy(NamedTuple):
    """The permission for `action` on `resource`. Both empty: open to everybody."""

    action: str
    resource: str


OPEN = Policy("", "")

_MAY: dict[str, frozenset[Policy]] = {
    "viewer": frozenset(
        {
            Policy("edit", "login"),
            *(Policy("read", one) for one in ("asset", "dag", "run", "task_instance", "log", "import_error", "pool")),
        }
    ),
    "user": frozenset({Policy("edit", "dag"), Policy("create", "run"), Policy("edit", "run"), Policy("edit", "task_instance")}),
    "op": frozenset(
        {
            Policy("edit", "asset"),
            Policy("edit", "pool"),
            Policy("read", "plugin"),
            *(Policy(action, resource) for action in ("read", "edit") for resource in ("variable", "connection")),
        }
    ),
    "admin": frozenset({Policy("read", "event_log"), Policy("read", "job")}),
}
"""The permissions that each role has in addition to those of the roles before it. Source: Airflow's simple auth manager."""

POLICIES: frozenset[Policy] = frozenset().union(*_MAY.values())
"""All there are; a route cannot name another one."""


def allow(action: str, resource: str) -> Callable[[_Endpoint], _Endpoint]:
    """Mark a route's function with what it does. Raises ValueError when no role could do that."""
    policy = Policy(action, resource)
    if policy not in POLICIES:
        raise ValueError(f"no role may {action} {resource!r}; write the permission into auth/policy.py first")
    return _marked(policy)


def open_to_all() -> Callable[[_Endpoint], _Endpoint]:
    """Mark a route's function as open without a login."""
    return _marked(OPEN)


def policy_of(endpoint: object) -> Policy | None:
    """The policy of a route's function."""
    found = getattr(endpoint, "__tradewind_policy__", None)
    return found if isinstance(found, Policy) else None


def may(role: str, policy: Policy) -> bool:
    """Does the role have the permission?"""
    if role not in ROLES:
        return False
    return any(policy in _MAY[one] for one in ROLES[: ROLES.index(role) + 1])


def _marked(policy: Policy) -> Callable[[_Endpoint], _Endpoint]:
    def mark(endpoint: _Endpoint) -> _Endpoint:
        endpoint.__tradewind_policy__ = policy  # type: ignore[attr-defined]
        return endpoint

    return mark
