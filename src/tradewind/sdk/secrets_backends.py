"""Secrets backends: stores of connections and variables outside of Tradewind, such as HashiCorp Vault or AWS Secrets Manager.

    [secrets]
    backend = airflow.providers.hashicorp.secrets.vault.VaultBackend
    backend_kwargs = {"connections_path": "connections", "url": "http://127.0.0.1:8200"}

The settings are Airflow's, in an airflow.cfg or as `AIRFLOW__SECRETS__BACKEND`; `[workers] secrets_backend` has priority. The
backend is asked first, then the environment and the database. It runs where user code runs, and only there: in the processes of
tasks and triggers, and where DAG files are read.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowConfigException
from tradewind.sdk.mask_secret import mask_secret

if TYPE_CHECKING:
    from tradewind.sdk.variables import Connection

log = logging.getLogger("tradewind.task")

_SETTINGS = (("workers", "secrets_backend"), ("secrets", "backend"))
_CACHED_MAX = 1_000
"""Maximum number of values in the cache."""

_is_asking: ContextVar[bool] = ContextVar("asking a secrets backend", default=False)
"""True while the backend is being asked. A backend may read connections itself; it is not asked for them again."""
_cache: dict[tuple[str, str], tuple[float, Any]] = {}
"""(kind, name) → when it was read, and the answer."""


@functools.lru_cache(maxsize=8)
def _make(path: str, arguments: str, section: str) -> Any:
    """The backend of a class path and its arguments as JSON.

    Raises:
        AirflowConfigException: there is no such class, or it does not accept the arguments.
    """
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise AirflowConfigException(f"the secrets backend {path!r} of [{section}] cannot be imported: {error}") from error
    try:
        given = json.loads(arguments) if arguments.strip() else {}
        if not isinstance(given, dict):
            raise TypeError(f"they are a JSON {type(given).__name__}, not an object")
        return found(**given)
    except (TypeError, ValueError) as error:
        raise AirflowConfigException(
            f"the arguments of the secrets backend {path} of [{section}] are wrong: {error}"
        ) from error


def backend() -> Any | None:
    """The configured backend, or None.

    Raises:
        AirflowConfigException: see `_make`.
    """
    for section, key in _SETTINGS:
        path = conf.get(section, key, fallback="").strip()
        if path:
            return _make(path, conf.get(section, f"{key}_kwargs", fallback="") or "", section)
    return None


def connection(conn_id: str) -> Connection | None:
    """The connection of this id that the backend has, or None."""
    found: Connection | None = _ask("connection", conn_id)
    if found is not None:
        for secret in (found.password, found.extra):
            if secret:
                mask_secret(secret if secret is found.password else _extra(found))
    return found


def variable(key: str) -> str | None:
    """The text of the variable that the backend has, or None."""
    found = _ask("variable", key)
    if found is not None:
        mask_secret(found, key)
    return None if found is None else str(found)


def _extra(found: Connection) -> Any:
    try:
        return found.extra_dejson
    except Exception:  # extra is not a JSON object, so no name tells which part is secret
        return []


def _ask(kind: str, name: str) -> Any | None:
    """Ask the backend. If it fails, the next place is asked, as in Airflow."""
    if _is_asking.get():
        return None
    source = backend()
    if source is None:
        return None
    lives = (
        conf.getfloat("secrets", "cache_ttl_seconds", fallback=900)
        if conf.getboolean("secrets", "use_cache", fallback=False)
        else 0
    )
    known = _cache.get((kind, name))
    if known is not None and time.monotonic() - known[0] < lives:
        return known[1]
    token = _is_asking.set(True)
    try:
        found = source.get_connection(conn_id=name) if kind == "connection" else source.get_variable(key=name)
    except Exception:
        message = "The secrets backend %s cannot read the %s %r; the environment and the database are asked"
        log.exception(message, type(source).__name__, kind, name)
        return None
    finally:
        _is_asking.reset(token)
    if lives:
        if len(_cache) >= _CACHED_MAX:
            _cache.clear()
        _cache[kind, name] = time.monotonic(), found
    return found
