"""Arguments of hooks of provider packages that have been renamed: `google_cloud_storage_conn_id` is `gcp_conn_id` today.

Files for Airflow 1 and 2 create hooks with the older names. `BaseHook` wraps the `__init__` of each hook of a provider package; an
older argument gets its present name, with a warning, if the hook accepts only the present one.

Source: the `__init__` methods of the hooks of Airflow 1.10.15 and of the provider packages of 2021 and 2022.
"""

from __future__ import annotations

import functools
from typing import Any

from tradewind.sdk import open_dags
from tradewind.sdk.older_names import IN_DEFAULT_ARGS

PROVIDERS = "airflow.providers."

_RENAMED: dict[str, tuple[str, ...]] = {
    **IN_DEFAULT_ARGS,
    "conn_id": ("ssh_conn_id", "mongo_conn_id"),
    "ftp_conn_id": ("ssh_conn_id",),
    "http_conn_id": ("slack_webhook_conn_id",),
    "timeout": ("conn_timeout",),
}
"""Older name → present names; the first one that the hook accepts is used."""

_WITHOUT_EFFECT = frozenset(("delegate_to",))
"""Arguments that packages have dropped without another name."""

_TAKES_ANY_KEYWORD = 0x08
"""The flag of a code object whose function has `**kwargs`. The module `inspect` has the name, but the parser does not load it."""

_OLDER = frozenset(_RENAMED) | _WITHOUT_EFFECT


def wrap_init(cls: type) -> None:
    """Let the `__init__` of a hook of a provider package accept older arguments. Other classes stay as they are."""
    init = cls.__dict__.get("__init__")
    if init is None or not cls.__module__.startswith(PROVIDERS):
        return

    @functools.wraps(init)
    def accepting(self: Any, *args: Any, **kwargs: Any) -> None:
        if not _OLDER.isdisjoint(kwargs):
            _rename(type(self).__name__, _accepted(cls), kwargs)
        init(self, *args, **kwargs)

    cls.__init__ = accepting  # type: ignore[misc]


@functools.cache
def _accepted(cls: type) -> frozenset[str]:
    """The names that the `__init__` of a hook accepts; those of its base classes, too, if it hands on other arguments."""
    found: set[str] = set()
    for base in cls.__mro__:
        init = base.__dict__.get("__init__")
        if init is None:
            continue
        code = getattr(getattr(init, "__wrapped__", init), "__code__", None)
        if code is None:
            break
        found.update(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        if not code.co_flags & _TAKES_ANY_KEYWORD:
            break
    return frozenset(found)


def _rename(hook: str, accepted: frozenset[str], given: dict[str, Any]) -> None:
    for older in [name for name in given if name in _OLDER and name not in accepted]:
        newer = next((name for name in _RENAMED.get(older, ()) if name in accepted), None)
        if newer is not None:
            given.setdefault(newer, given.pop(older))
            message = f"{older} was renamed to {newer} in the provider package; use {newer}"
        elif older in _WITHOUT_EFFECT:
            del given[older]
            message = f"the provider package has no {older} any more; it has no effect"
        else:
            continue
        open_dags.warn_author(f"{hook}: {message}", DeprecationWarning)
