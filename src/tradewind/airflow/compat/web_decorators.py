"""Decorators of Airflow's web server that plugins use for their views: permissions, CSRF, the audit log.

The views themselves do not run here (`docs/reference/plugins.md`). The decorators return functions unchanged, so that the module
of a plugin can be imported and its operators, macros and listeners can be used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["action_logging", "api_auth", "csrf", "decorator", "login_required", "requires_authentication"]


def decorator(*given: Any, **_options: Any) -> Any:
    """Return the decorated function unchanged. Accepts both forms, `@name` and `@name(…)`."""
    if len(given) == 1 and callable(given[0]):
        return given[0]
    return _unchanged


def _unchanged(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


action_logging = login_required = requires_authentication = decorator


class _Decorators:
    """An object whose attributes are decorators, such as `csrf.exempt`."""

    exempt = requires_authentication = staticmethod(decorator)


csrf = _Decorators()
api_auth = _Decorators()


def __getattr__(name: str) -> Any:
    """The decorator with this name: `has_access_dag`, `requires_access_view`, ….

    Raises:
        AttributeError: the name is not that of a decorator.
    """
    if name.startswith(("has_access", "has_dag_access", "requires_access", "gzipped", "check_authentication")):
        return decorator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
