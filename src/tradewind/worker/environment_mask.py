"""The secrets in this process's environment, which all of its tasks can read."""

from __future__ import annotations

import functools
import os

from tradewind.model.secret_mask import SecretMask, secrets_of_environment


@functools.cache
def environment_mask() -> SecretMask:
    """Worked out once: a worker host's environment does not change. Every attempt's mask begins with it."""
    return SecretMask(secrets_of_environment(os.environ))
