"""`SecretsMasker` of Airflow: a log filter that hides the secrets known in this process."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tradewind.sdk import mask_secret as functions
from tradewind.sdk import secret_registry

__all__ = ["Redactable", "Redacted", "SecretsMasker"]

Redactable = TypeVar("Redactable", str, dict[Any, Any], tuple[Any, ...], list[Any])
Redacted = Any


class SecretsMasker(logging.Filter):
    """Hides secrets in records, and finds them in values."""

    MAX_RECURSION_DEPTH = 5
    min_length_to_mask = 5
    mask_secrets_in_logs = True

    def __init__(self) -> None:
        super().__init__()
        self.sensitive_variables_fields: list[str] = []

    def add_mask(self, secret: Any, name: str | None = None) -> None:
        """Hide a secret from now on."""
        functions.mask_secret(secret, name)

    def redact(self, item: Any, name: str | None = None, max_depth: int | None = None, replacement: str = "***") -> Any:
        """A copy of a value without secrets."""
        return functions.redact(item, name, max_depth, replacement)

    def should_hide_value_for_key(self, name: Any) -> bool:
        """Does the name look like the name of a secret?"""
        return functions.should_hide_value_for_key(name)

    def filter(self, record: logging.LogRecord) -> bool:
        """Hide secrets in a record's message and arguments; every record passes."""
        mask = secret_registry.mask()
        if isinstance(record.msg, str):
            record.msg = mask.text(record.msg)
        if isinstance(record.args, Mapping):
            record.args = {key: self.redact(value) for key, value in record.args.items()}
        elif isinstance(record.args, Iterable):
            record.args = tuple(self.redact(value) for value in record.args)
        return True


@functools.cache
def _secrets_masker() -> SecretsMasker:
    """The masker of this process."""
    return SecretsMasker()
