"""`airflow.utils.strings`."""

from __future__ import annotations

import secrets
import string

__all__ = ["TRUE_LIKE_VALUES", "get_random_string", "to_boolean"]

TRUE_LIKE_VALUES = {"on", "t", "true", "y", "yes", "1"}


def get_random_string(length: int = 8, choices: str = string.ascii_letters + string.digits) -> str:
    """A random text of letters and digits."""
    return "".join(secrets.choice(choices) for _ in range(length))


def to_boolean(astring: str | None) -> bool:
    """Whether the text is a word for true, such as `yes` or `1`."""
    return astring is not None and astring.lower() in TRUE_LIKE_VALUES
