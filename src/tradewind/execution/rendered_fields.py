"""The rendered templated fields of an attempt. They are stored so that people can see with which values the task ran.

They are read right after rendering, before the task can change them. Values whose name looks like the name of a secret are masked
here; the worker masks secrets that the task reads. Sizes are limited: a long string is cut, and only the beginning of a large
container is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tradewind.model.secret_names import MASK, is_secret

TEXT_MAX = 4096
"""Maximum number of characters of one string; Airflow's limit for a field."""
ITEMS_MAX = 500
"""Maximum number of items in all containers of one field together."""
TOTAL_MAX = 64 * 1024
"""Maximum number of bytes of all fields together. Fields beyond it are replaced with a remark."""

_PLAIN = (int, float, bool, type(None))
_encode = msgspec.json.Encoder().encode


def stored_fields(task: Any) -> bytes:
    """A JSON object of the templated fields; empty bytes if none of them has a value, which is the most frequent case."""
    found: dict[str, Any] = {}
    room, some = TOTAL_MAX, False
    for name in task.template_fields:
        value = getattr(task, name, None)
        some = some or not (value is None or (isinstance(value, str | list | tuple | dict) and not value))
        try:
            shown = _shown(value, name, [ITEMS_MAX])
            size = len(_encode(shown)) + len(name)
        except Exception as error:  # an object of the author whose str() fails
            shown, size = f"(cannot be shown: {type(error).__name__})", 100
        if size > room:
            shown = "(left out: the rendered fields of this attempt are too long in total)"
        else:
            room -= size
        found[name] = shown
    return _encode(found) if some else b""


def _shown(value: Any, name: str, left: list[int]) -> Any:
    """Convert `value` for JSON. `left`: the number of items that may still be stored, in a list that calls share."""
    if name and is_secret(name):
        return MASK
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, _PLAIN):
        return value if type(value) in _PLAIN else _cut(str(value))
    if isinstance(value, Mapping):
        found: dict[str, Any] = {}
        for key, item in value.items():
            if not _count(left):
                found["…"] = f"{len(value) - len(found)} more"
                break
            found[str(key)] = _shown(item, str(key), left)
        return found
    if isinstance(value, list | tuple | set | frozenset):
        items: list[Any] = []
        for item in value:
            if not _count(left):
                items.append(f"… {len(value) - len(items)} more")
                break
            items.append(_shown(item, "", left))
        return items
    return _cut(str(value))


def _count(left: list[int]) -> bool:
    left[0] -= 1
    return left[0] >= 0


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({len(text) - TEXT_MAX} more characters)"
