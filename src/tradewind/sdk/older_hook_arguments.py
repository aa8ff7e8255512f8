"""Arguments of hooks of provider packages that have been renamed: `google_cloud_storage_conn_id` is `gcp_conn_id` today.

Files for Airflow 1 and 2 create hooks, and call their methods, with the older names. `BaseHook` wraps the `__init__` of each hook
of a provider package, and the methods of some; an older argument gets its present name, with a warning, if only that is accepted.

Source: the hooks of Airflow 1.10.15 and of the provider packages of 2021 and 2022, compared with those of 2026.
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

_POLLING = {"max_tries": "max_polling_attempts"}
_QUERY = {"hql": "sql"}
_PROJECT = {"project": "project_id", "topic_project": "project_id", "subscription_project": "subscription_project_id"}

_RENAMED_IN_METHODS: dict[str, dict[str, str]] = {
    "AthenaHook": _POLLING,
    "DataprocHook": {"location": "region"},
    "EmrContainerHook": _POLLING,
    "GCSHook": {"bucket": "bucket_name", "object": "object_name", "maxResults": "max_results"},
    "HiveMetastoreHook": {"filter": "partition_filter"},
    "HiveServer2Hook": _QUERY,
    "PrestoHook": _QUERY,
    "PubSubHook": _PROJECT,
    "SlackHook": {"method": "api_method", "api_params": "json"},
}
"""Hook → older name → present name of an argument of its methods."""

_DROPPED_IN_METHODS: dict[str, frozenset[str]] = {
    "FTPHook.list_directory": frozenset(("nlst",)),
    "GCSHook.compose": frozenset(("num_retries",)),
    "GCSHook.upload": frozenset(("multipart", "num_retries")),
    "PostgresHook.copy_expert": frozenset(("open",)),
}
"""Method → its arguments that have no effect any more."""

_IS_COROUTINE = 0x80
"""The flag of a code object whose function is a coroutine function."""
_TAKES_ANY_KEYWORD = 0x08
"""The flag of a code object whose function has `**kwargs`. The module `inspect` has the name, but the parser does not load it."""

_HOOKS_WITH_OLDER_METHODS = frozenset(_RENAMED_IN_METHODS) | {name.partition(".")[0] for name in _DROPPED_IN_METHODS}
_OLDER = frozenset(_RENAMED) | _WITHOUT_EFFECT


def wrap(cls: type) -> None:
    """Let the methods of a hook of a provider package accept older arguments. Other classes stay as they are."""
    if cls.__module__.startswith(PROVIDERS):
        _wrap_init(cls)
        if cls.__name__ in _HOOKS_WITH_OLDER_METHODS:
            _wrap_methods(cls)


def _wrap_methods(cls: type) -> None:
    renamed = _RENAMED_IN_METHODS.get(cls.__name__, {})
    for name, method in list(cls.__dict__.items()):
        code = getattr(getattr(method, "__wrapped__", method), "__code__", None)
        if name.startswith("_") or code is None or code.co_flags & _IS_COROUTINE:
            continue
        dropped = _DROPPED_IN_METHODS.get(f"{cls.__name__}.{name}", frozenset())
        accepted = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        open_ended = bool(code.co_flags & _TAKES_ANY_KEYWORD)
        own = {older: new for older, new in renamed.items() if older not in accepted and (new in accepted or open_ended)}
        if own or not dropped <= accepted:
            setattr(cls, name, _accepting(method, f"{cls.__name__}.{name}", own, dropped - accepted))


def _accepting(method: Any, name: str, renamed: dict[str, str], dropped: frozenset[str]) -> Any:
    @functools.wraps(method)
    def accepting(*args: Any, **kwargs: Any) -> Any:
        for older in [given for given in kwargs if given in renamed or given in dropped]:
            value, newer = kwargs.pop(older), renamed.get(older)
            if newer is not None:
                kwargs.setdefault(newer, value)
                message = f"{older} was renamed to {newer} in the provider package; use {newer}"
            else:
                message = f"the provider package has no {older} any more; it has no effect"
            open_dags.warn_author(f"{name}: {message}", DeprecationWarning)
        return method(*args, **kwargs)

    return accepting


def _wrap_init(cls: type) -> None:
    init = cls.__dict__.get("__init__")
    if init is None:
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
