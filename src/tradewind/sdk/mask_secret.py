"""Functions of Airflow's secrets masker for user code.

`mask_secret` masks a secret that a task has read itself (from a file, a vault) in its log and in its stored values. `redact`
removes known secrets from a value. `should_hide_value_for_key` tells whether a name looks like the name of a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from tradewind.model.errors import TradewindError
from tradewind.model.secret_names import MASK, is_secret
from tradewind.sdk import secret_registry
from tradewind.wire import runtime
from tradewind.wire.messages import MaskSecrets


def mask_secret(secret: Any, name: str | None = None) -> None:
    """Replace this secret with `***` from now on. Returns when the worker has applied the mask.

    Args:
        secret: a string, or a mapping or list of strings. Of a mapping, only values whose key looks like the name of a secret.
        name: if given, mask the secret only if this name looks like the name of a secret.
    """
    values = tuple(_texts(secret, name))
    if values:
        secret_registry.add(list(values), True)
        try:
            runtime.ask(MaskSecrets(op=0, values=values))
        except TradewindError:
            pass  # outside of a task there is no task log to mask, as in Airflow


def redact(value: Any, name: str | None = None, max_depth: int | None = None, replacement: str = MASK) -> Any:
    """A copy of the value without secrets.

    Args:
        value: a string, or dicts, lists, tuples and sets of strings. A set becomes a tuple, an enum member its value; other objects
            stay unchanged.
        name: the name of the value. If it looks like the name of a secret, every string in the value is masked.
        max_depth: strings nested deeper than this (default 5) are not searched for secrets; names count at any depth.
        replacement: the replacement for a secret.
    """
    return _redacted(value, name, 0, max_depth or _DEPTH, replacement)


def should_hide_value_for_key(name: Any) -> bool:
    """True if this name of a variable, or key in a connection's extra, looks like the name of a secret."""
    return isinstance(name, str) and is_secret(name)


_DEPTH = 5
"""Source: SecretsMasker.MAX_RECURSION_DEPTH of Airflow 3.3.2."""


def _redacted(value: Any, name: object, depth: int, deepest: int, replacement: str) -> Any:
    if isinstance(name, str) and should_hide_value_for_key(name):
        return replaced(value, depth, deepest, replacement)
    if isinstance(value, dict):
        return {key: _redacted(item, key, depth + 1, deepest, replacement) for key, item in value.items()}
    if isinstance(value, tuple | set):
        return tuple(_redacted(item, None, depth + 1, deepest, replacement) for item in value)
    if isinstance(value, list):
        return [_redacted(item, None, depth + 1, deepest, replacement) for item in value]
    if depth <= deepest and isinstance(value, Enum):
        return _redacted(value.value, name, depth, deepest, replacement)
    if depth <= deepest and isinstance(value, str):
        return secret_registry.mask().text(value, replacement)
    return value


def replaced(value: Any, depth: int, deepest: int, replacement: str) -> Any:
    """The value with every string in it replaced; values nested too deep are replaced as a whole."""
    if depth > deepest or isinstance(value, str):
        return replacement
    if isinstance(value, dict):
        return {key: replaced(item, depth + 1, deepest, replacement) for key, item in value.items()}
    if isinstance(value, tuple | set):
        return tuple(replaced(item, depth + 1, deepest, replacement) for item in value)
    if isinstance(value, list):
        return [replaced(item, depth + 1, deepest, replacement) for item in value]
    return value


def _texts(secret: Any, name: str | None) -> Iterable[str]:
    if isinstance(secret, Mapping):
        for key, item in secret.items():
            yield from _texts(item, str(key))
    elif isinstance(secret, str):
        if secret and (name is None or is_secret(name)):
            yield secret
    elif isinstance(secret, Iterable) and not isinstance(secret, bytes | bytearray):
        for item in secret:
            yield from _texts(item, name)
