"""Masking of secrets in responses."""

from __future__ import annotations

import json

from tradewind.model.secret_names import MASK, is_secret, masked


def masked_text(text: str, name: str = "") -> str:
    """The text, masked if `name` is the name of a secret. In a JSON text, values with such names are masked."""
    if name and is_secret(name):
        return MASK
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return json.dumps(masked(found)) if isinstance(found, dict | list) else text
