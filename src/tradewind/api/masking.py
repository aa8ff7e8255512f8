"""What sounds like a secret is not shown."""

from __future__ import annotations

import json

from tradewind.model.secret_names import MASK, is_secret, masked


def masked_text(text: str, name: str = "") -> str:
    """A text that may be JSON, with everything under a secret's name masked."""
    if name and is_secret(name):
        return MASK
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return json.dumps(masked(found)) if isinstance(found, dict | list) else text
