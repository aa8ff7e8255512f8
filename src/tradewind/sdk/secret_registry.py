"""The secrets that this process knows: what `redact` takes out of a text.

They are those of the environment, those that user code was told (variables, connections), and those that user code named with
`mask_secret`. What is told is only noted; the mask is made when somebody asks for it.
"""

from __future__ import annotations

import os
from collections import deque

from tradewind.model.secret_mask import SecretMask, secrets_of_environment
from tradewind.model.secret_names import told_secrets

_NOTED_MAX = 1_000
"""Values that wait to be put into the mask; the oldest go first."""

_noted: deque[tuple[object, bool]] = deque(maxlen=_NOTED_MAX)
_mask: SecretMask | None = None


def note(value: object, secret: bool) -> None:
    """User code was told this value; `secret`: all of it is one (see `told_secrets`)."""
    _noted.append((value, secret))


def mask() -> SecretMask:
    """Every secret that is known now."""
    global _mask
    if _mask is None:
        _mask = SecretMask(secrets_of_environment(os.environ))
    while _noted:
        _mask = _mask.plus(told_secrets(*_noted.popleft()))
    return _mask
