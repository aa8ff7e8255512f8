"""What sounds like a secret is not shown."""

from __future__ import annotations

import json
from typing import Any

from tradewind.model.secret_names import MASK, is_secret


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
