"""What Airflow's secrets masker offers to user code.

`mask_secret` hides a secret that a task found by itself (in a file, a vault) in its log and in what is kept of it; `redact` takes
the secrets that are known out of a value; `should_hide_value_for_key` tells which names sound like a secret's.
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
    """Write `***` for this secret from now on; returns when the worker does so.

    Args:
        secret: a text, or a mapping or list of texts. Of a mapping only what stands under a name that sounds like a secret's.
        name: hide it only if this name sounds like a secret's.
    """
    values = tuple(_texts(secret, name))
    if values:
        secret_registry.note(list(values), True)
        try:
            runtime.ask(MaskSecrets(op=0, values=values))
        except TradewindError:
            pass  # outside a task there is no log of ours, as in Airflow


def redact(value: Any, name: str | None = None, max_depth: int | None = None, replacement: str = MASK) -> Any:
    """The value without secrets; the value itself does not change.

    Args:
        value: a text, or dicts, lists, tuples and sets of texts. A set comes back as a tuple, an enum's member as its value, and
            any other object as it is.
        name: what the value is called; if the name sounds like a secret's, every text in the value is one.
        max_depth: texts that lie deeper (5 levels) are not searched for secrets; names count at any depth.
        replacement: what stands in a secret's place.
    """
    return _redacted(value, name, 0, max_depth or _DEPTH, replacement)


def should_hide_value_for_key(name: Any) -> bool:
    """Does this name of a variable, or of a field of a connection's extra, sound like a secret's?"""
    return isinstance(name, str) and is_secret(name)


_DEPTH = 5
"""Source: SecretsMasker.MAX_RECURSION_DEPTH of Airflow 3.3.2."""


def _redacted(value: Any, name: object, depth: int, deepest: int, replacement: str) -> Any:
    if isinstance(name, str) and should_hide_value_for_key(name):
        return _replaced(value, depth, deepest, replacement)
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


def _replaced(value: Any, depth: int, deepest: int, replacement: str) -> Any:
    """The value with every text in it replaced, and all that lies too deep."""
    if depth > deepest or isinstance(value, str):
        return replacement
    if isinstance(value, dict):
        return {key: _replaced(item, depth + 1, deepest, replacement) for key, item in value.items()}
    if isinstance(value, tuple | set):
        return tuple(_replaced(item, depth + 1, deepest, replacement) for item in value)
    if isinstance(value, list):
        return [_replaced(item, depth + 1, deepest, replacement) for item in value]
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
