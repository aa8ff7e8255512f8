"""Which names sound like a secret's: what stands under them is not shown."""

from __future__ import annotations

import json
from typing import Any

MASK = "***"
SHORTEST_SECRET = 4
"""Shorter values are not masked: they would blank out ordinary text."""

_WORDS = (
    "access_key",
    "access_token",
    "api_key",
    "apikey",
    "authorization",
    "credential",
    "keyfile",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "secret",
    "token",
)
"""Source: the names Airflow's masker hides, and those that providers use for keys."""


def is_secret(name: str) -> bool:
    """Does this name sound like a secret's?"""
    plain = name.lower().replace("-", "_")
    return any(word in plain for word in _WORDS)


def masked(value: Any, name: str = "") -> Any:
    """A JSON value with everything under a secret's name masked, at any depth."""
    if name and is_secret(name):
        return MASK if value not in (None, "") else value
    if isinstance(value, dict):
        return {key: masked(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


def secret_texts(value: object) -> list[str]:
    """Every text in a secret value: a variable's, or the parts of a connection that are not shown."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in secret_texts(item)]
    if not isinstance(value, dict):
        return []
    found = [item for key, item in value.items() if key in ("password", "extra", "value", "login") and isinstance(item, str)]
    found += _in_extra(value.get("extra"))
    return found + [text for item in value.values() if isinstance(item, dict | list) for text in secret_texts(item)]


def _in_extra(extra: object) -> list[str]:
    """What stands under a secret's name in a connection's extra, which user code reads as JSON."""
    try:
        parts = json.loads(extra) if isinstance(extra, str) else None
    except ValueError:
        return []
    return [item for key, item in parts.items() if isinstance(item, str) and is_secret(key)] if isinstance(parts, dict) else []
