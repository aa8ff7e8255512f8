"""The secrets known in this process, which `redact` masks in a text.

These are secrets of the environment, secret values of variables and connections that user code read, and values that user code
passed to `mask_secret`. New values are only collected; the mask is computed when it is needed.
"""

from __future__ import annotations

import os
from collections import deque

from tradewind.model.secret_mask import SecretMask, secrets_of_environment
from tradewind.model.secret_names import secrets_in

_COLLECTED_MAX = 1_000
"""Values that may wait to be added to the mask; the oldest are dropped."""

_collected: deque[tuple[object, bool]] = deque(maxlen=_COLLECTED_MAX)
_mask: SecretMask | None = None


def add(value: object, secret: bool) -> None:
    """Add a value that user code read. `secret`: all of the value is secret (see `secrets_in`)."""
    _collected.append((value, secret))


def mask() -> SecretMask:
    """A mask of all secrets known now."""
    global _mask
    if _mask is None:
        _mask = SecretMask(secrets_of_environment(os.environ))
    while _collected:
        _mask = _mask.plus(secrets_in(*_collected.popleft()))
    return _mask


def forget() -> None:
    """Forget all secrets that user code read; tests call it between two of them."""
    global _mask
    _collected.clear()
    _mask = None
