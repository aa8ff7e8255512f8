"""The secrets in the environment of this process. All of its tasks can read them."""

from __future__ import annotations

import functools
import os

from tradewind.model.secret_mask import SecretMask, secrets_of_environment


@functools.cache
def environment_mask() -> SecretMask:
    """Return the mask of these secrets; every attempt's mask begins with it. Computed once: the environment does not change."""
    return SecretMask(secrets_of_environment(os.environ))
