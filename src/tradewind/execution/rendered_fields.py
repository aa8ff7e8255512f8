"""What a task's templated fields came to, kept with the attempt: for people who ask what was really run.

Taken right after rendering, before the task changes anything. What stands under a name that sounds like a secret's is masked
here; secrets that the task asked for by name are masked by its worker. Sizes are bounded: a long text is cut, and of a large
container only the beginning is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tradewind.model.secret_names import MASK, is_secret

TEXT_MAX = 4096
"""Characters of one text; Airflow's limit for a field."""
ITEMS_MAX = 500
"""Items of all containers of one field together."""
TOTAL_MAX = 64 * 1024
"""Bytes of everything; fields that do not fit any more are said to be left out."""

_PLAIN = (int, float, bool, type(None))
_encode = msgspec.json.Encoder().encode


def kept_fields(task: Any) -> bytes:
    """JSON object of the templated fields that have a value; empty when there are none."""
    found: dict[str, Any] = {}
    room = TOTAL_MAX
    for name in task.template_fields:
        value = getattr(task, name, None)
        if value is None or (isinstance(value, str | list | tuple | dict) and not value):
            continue
        try:
            shown = _shown(value, name, [ITEMS_MAX])
            size = len(_encode(shown)) + len(name)
        except Exception as error:  # an object of the author's that cannot even be shown
            shown, size = f"(cannot be shown: {type(error).__name__})", 100
        if size > room:
            shown = "(left out: the fields of one attempt have too much text together)"
        else:
            room -= size
        found[name] = shown
    return _encode(found) if found else b""


def _shown(value: Any, name: str, left: list[int]) -> Any:
    """`value` as JSON can hold it. `left`: how many more items may be looked at."""
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
