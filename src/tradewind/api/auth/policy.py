"""The permissions of each role. Every route names its policy; a route without a policy is closed to everybody.

Access to an object of a DAG (`DAG_RESOURCES`) is decided by the permissions for that DAG: see `permissions.Access`. The guard
finds the DAG by the parameters of the route (`objects.py`). A route that finds the objects itself is marked with
`checks_objects=True`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tradewind.model.accounts import ROLES

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


class Policy(NamedTuple):
    """The permission for `action` on `resource`. Both empty: open to everybody."""

    action: str
    resource: str


OPEN = Policy("", "")

_MAY: dict[str, frozenset[Policy]] = {
    "public": frozenset({Policy("read", "login"), Policy("edit", "login"), Policy("read", "me"), Policy("edit", "me")}),
    "viewer": frozenset(
        {
            Policy("edit", "favorite"),
            Policy("read", "provider"),
            *(Policy("read", one) for one in ("asset", "dag", "run", "task_instance", "log", "import_error", "pool")),
        }
    ),
    "user": frozenset({Policy("edit", "dag"), Policy("create", "run"), Policy("edit", "run"), Policy("edit", "task_instance")}),
    "op": frozenset(
        {
            Policy("edit", "asset"),
            Policy("edit", "pool"),
            Policy("read", "plugin"),
            Policy("read", "configuration"),
            *(Policy(action, resource) for action in ("read", "edit") for resource in ("variable", "connection")),
        }
    ),
    "admin": frozenset(
        {Policy("read", "event_log"), Policy("read", "job"), Policy("read", "account"), Policy("edit", "account")}
    ),
}
"""The permissions that each role has in addition to those of the roles before it. Source: Airflow's simple auth manager."""

POLICIES: frozenset[Policy] = frozenset().union(*_MAY.values())
"""All permissions that exist; a route cannot name another one."""


DAG_RESOURCES = frozenset({"dag", "run", "task_instance", "log", "import_error"})
"""Resources that belong to a DAG: the permissions for this DAG decide."""

OTHER_RESOURCES = frozenset(
    {
        "account",
        "asset",
        "configuration",
        "connection",
        "event_log",
        "favorite",
        "job",
        "login",
        "me",
        "plugin",
        "pool",
        "provider",
        "variable",
    }
)
"""Resources that belong to no DAG: the role of the account decides. If a route names a DAG nevertheless, the account needs
that DAG, too.
"""

PERSONAL_RESOURCES = frozenset({"favorite"})
"""Personal data of an account about a DAG, such as favourites. The account only needs permission to read this DAG."""


def allow(action: str, resource: str, *, checks_objects: bool = False) -> Callable[[_Endpoint], _Endpoint]:
    """Mark the function of a route with its resource and its action.

    Args:
        checks_objects: the function itself checks each DAG that it changes (`guard.need`), because the guard cannot see in
            the path or in the body which ones these are.

    Raises:
        ValueError: no role has this permission.
    """
    policy = Policy(action, resource)
    if policy not in POLICIES:
        raise ValueError(f"no role may {action} {resource!r}; write the permission into auth/policy.py first")
    return _marked(policy, checks_objects)


def checks_objects(endpoint: object) -> bool:
    """Whether the function of the route itself checks the permission for each DAG that it changes."""
    return getattr(endpoint, "__tradewind_checks_objects__", False) is True


def open_to_all(*, any_parameters: bool = False) -> Callable[[_Endpoint], _Endpoint]:
    """Mark a route's function as open without a login.

    Args:
        any_parameters: unknown query parameters are accepted: an identity provider adds some of its own.
    """

    def mark(endpoint: _Endpoint) -> _Endpoint:
        endpoint.__tradewind_any_parameters__ = any_parameters  # type: ignore[attr-defined]
        return _marked(OPEN)(endpoint)

    return mark


def accepts_any_parameters(endpoint: object) -> bool:
    """Whether the route accepts query parameters that it does not name."""
    return getattr(endpoint, "__tradewind_any_parameters__", False) is True


def policy_of(endpoint: object) -> Policy | None:
    """The policy of a route's function."""
    found = getattr(endpoint, "__tradewind_policy__", None)
    return found if isinstance(found, Policy) else None


def permissions_of(role: str) -> frozenset[Policy]:
    """All permissions of a role; none for an unknown name."""
    return _PERMISSIONS.get(role, frozenset())


def may(role: str, policy: Policy) -> bool:
    """Whether the role has the permission."""
    return policy in permissions_of(role)


_PERMISSIONS: dict[str, frozenset[Policy]] = {
    role: frozenset().union(*(_MAY[one] for one in ROLES[: ROLES.index(role) + 1])) for role in ROLES
}


def _marked(policy: Policy, checks_objects: bool = False) -> Callable[[_Endpoint], _Endpoint]:
    def mark(endpoint: _Endpoint) -> _Endpoint:
        endpoint.__tradewind_policy__ = policy  # type: ignore[attr-defined]
        endpoint.__tradewind_checks_objects__ = checks_objects  # type: ignore[attr-defined]
        return endpoint

    return mark
