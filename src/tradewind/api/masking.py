"""What sounds like a secret is not shown."""

from __future__ import annotations

import json
from typing import Any

MASK = "***"

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
    """`value` with everything under a secret's name masked, at any depth."""
    if name and is_secret(name):
        return MASK if value not in (None, "") else value
    if isinstance(value, dict):
        return {key: masked(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


def masked_text(text: str, name: str = "") -> str:
    """The same for a text that may be JSON."""
    if name and is_secret(name):
        return MASK
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return json.dumps(masked(found)) if isinstance(found, dict | list) else text
