"""Decides which names are names of secrets. The values of such names are not shown.

Two settings change the answer, as in Airflow: `core.sensitive_var_conn_names` (more names) and
`core.hide_sensitive_var_conn_fields`. Each process sets them once, when it starts (`configure`, `configure_from`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

MASK = "***"
SHORTEST_SECRET = 5
"""Minimum length of a masked value: shorter texts occur in ordinary text. Airflow's default (logging.min_length_masked_secret)."""

_WORDS = (
    "access_key",
    "access_token",
    "api_key",
    "apikey",
    "auth_header",
    "authorization",
    "bearer",
    "connection_string",
    "credential",
    "dsn",
    "keyfile",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "proxies",
    "proxy",
    "secret",
    "service_account",
    "service_key",
    "token",
    "webhook_url",
)
"""Source: DEFAULT_SENSITIVE_FIELDS of Airflow 3.3.2's masker, and names that providers use for keys."""

DEFAULT_SENSITIVE_FIELDS = frozenset(_WORDS)
"""Airflow's name."""

_NOT_A_WORD = re.compile(r"\W+")


NAMES_VARIABLE = "TRADEWIND__CORE__SENSITIVE_VAR_CONN_NAMES"
HIDE_VARIABLE = "TRADEWIND__CORE__HIDE_SENSITIVE_VAR_CONN_FIELDS"
"""Environment variables in which a service passes the two settings to the processes that it starts."""

_words: tuple[str, ...] = _WORDS
"""The words that apply in this process: the words above and those of the deployment, or no words at all."""


def configure(more: str = "", hide: bool = True) -> None:
    """Set the words that `is_secret` uses in this process.

    Args:
        more: further words, separated by commas.
        hide: False: no name is the name of a secret. Passwords of connections and secret settings are hidden nevertheless.
    """
    global _words
    added = (_plain(word) for word in more.split(",") if word.strip())
    _words = tuple(dict.fromkeys((*_WORDS, *added))) if hide else ()


def configure_from(environment: Mapping[str, str]) -> None:
    """Set the words that `is_secret` uses, from the environment. For processes that a service has started."""
    configure(environment.get(NAMES_VARIABLE, ""), environment.get(HIDE_VARIABLE, "true") != "false")


def is_secret(name: str) -> bool:
    """Return whether this is the name of a secret: it contains one of the words."""
    plain = _plain(name)
    return any(word in plain for word in _words)


def is_secret_setting(name: str) -> bool:
    """Return whether this is the name of a secret setting. The deployment cannot change this."""
    plain = _plain(name)
    return any(word in plain for word in _WORDS)


def _plain(name: str) -> str:
    return _NOT_A_WORD.sub("_", name.strip().lower())


def masked(value: Any, name: str = "") -> Any:
    """Return a JSON value in which the values of secret names are masked, at any depth."""
    if name and is_secret(name):
        return MASK if value not in (None, "") else value
    if isinstance(value, dict):
        return {key: masked(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


def secret_texts(value: object) -> list[str]:
    """Return every text in a secret value: a variable's text, or the parts of a connection that are not shown."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in secret_texts(item)]
    if not isinstance(value, dict):
        return []
    found = [item for key, item in value.items() if key in ("password", "extra", "value", "login") and isinstance(item, str)]
    found += _in_extra(value.get("extra"))
    return found + [text for item in value.values() if isinstance(item, dict | list) for text in secret_texts(item)]


def secrets_in(value: object, secret: bool) -> list[str]:
    """Return the secrets in a value that user code received: a variable's text, or the parts of a connection.

    Args:
        secret: True: the whole value is secret. False: only the values of secret names in a JSON text, at any depth.
    """
    found = secret_texts(value) if secret else []
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            found += _leaves(json.loads(value), secret)
        except ValueError:
            pass
    return found


def _leaves(value: object, secret: bool) -> list[str]:
    """Return every text in a JSON value that is secret, or the value of a secret name."""
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in _leaves(item, secret or is_secret(str(key)))]
    if isinstance(value, list):
        return [text for item in value for text in _leaves(item, secret)]
    return [value] if secret and isinstance(value, str) else []


def _in_extra(extra: object) -> list[str]:
    """Return the values of secret names in a connection's extra, which user code reads as JSON."""
    return secrets_in(extra, secret=False)
