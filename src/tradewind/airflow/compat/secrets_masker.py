"""`SecretsMasker` of Airflow: a log filter that hides the secrets known in this process."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar

from tradewind.model.secret_names import MASK
from tradewind.sdk import secret_registry
from tradewind.sdk.mask_secret import mask_secret, replaced, should_hide_value_for_key

__all__ = ["Redactable", "Redacted", "SecretsMasker"]

Redactable = TypeVar("Redactable", str, dict[Any, Any], tuple[Any, ...], list[Any])
Redacted = Any


class SecretsMasker(logging.Filter):
    """Hides secrets in log records and in values."""

    MAX_RECURSION_DEPTH = 5
    min_length_to_mask = 5
    mask_secrets_in_logs = True

    def __init__(self) -> None:
        super().__init__()
        self.sensitive_variables_fields: list[str] = []
        self.patterns: set[str] = set()
        """The secrets that were added to this masker. Each masker hides the secrets of all maskers of the process."""
        self.replacer: re.Pattern[str] | None = None
        """Airflow's regular expression of all secrets. Not used: the process has one mask."""

    def add_mask(self, secret: Any, name: str | None = None) -> None:
        """Hide a secret from now on."""
        mask_secret(secret, name)
        if isinstance(secret, str) and (name is None or self.should_hide_value_for_key(name)):
            self.patterns.add(secret)

    def redact(self, item: Any, name: str | None = None, max_depth: int | None = None, replacement: str = MASK) -> Any:
        """A copy of a value without secrets."""
        return self._redact(item, name=name, depth=0, max_depth=max_depth or self.MAX_RECURSION_DEPTH, **_given(replacement))

    def _redact(self, item: Any, name: str | None, depth: int, max_depth: int, replacement: str = MASK) -> Any:
        """One step of `redact`. Packages (openlineage) override it for objects of their own, and get the values in them."""
        if name and self.should_hide_value_for_key(name):
            return self._redact_all(item, depth, max_depth, **_given(replacement))
        if depth > max_depth:
            return item
        within: Any = {"depth": depth + 1, "max_depth": max_depth, **_given(replacement)}
        if isinstance(item, dict):
            return {key: self._redact(value, name=key, **within) for key, value in item.items()}
        if isinstance(item, Enum):
            return self._redact(item.value, name=name, depth=depth, max_depth=max_depth, **_given(replacement))
        if isinstance(item, str):
            return secret_registry.mask().text(item, replacement)
        if isinstance(item, tuple | set):
            return tuple(self._redact(value, name=None, **within) for value in item)
        if isinstance(item, list):
            return [self._redact(value, name=None, **within) for value in item]
        return item

    def _redact_all(self, item: Any, depth: int, max_depth: int, replacement: str = MASK) -> Any:
        """A copy of a value whose name is that of a secret: all texts in it are replaced."""
        return replaced(item, depth, max_depth, replacement)

    def should_hide_value_for_key(self, name: Any) -> bool:
        """Whether the name looks like the name of a secret."""
        return should_hide_value_for_key(name)

    def reset_masker(self) -> None:
        """Forget all secrets that user code read. The mask of a running attempt's log keeps them."""
        self.patterns.clear()
        secret_registry.forget()

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


def _given(replacement: str) -> dict[str, str]:
    """The argument `replacement`, if it differs from the default: older overrides of `_redact` do not accept it."""
    return {} if replacement == MASK else {"replacement": replacement}


@functools.cache
def _secrets_masker() -> SecretsMasker:
    """The masker of this process."""
    return SecretsMasker()


def reset_secrets_masker() -> None:
    """Forget the secrets that user code read in this process."""
    _secrets_masker().reset_masker()
