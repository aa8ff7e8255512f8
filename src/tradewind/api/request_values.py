"""The check of JSON bodies for values that messages to the scheduler and the database cannot contain: huge integers, broken
texts.
"""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError

_LEAST, _GREATEST = -(2**63), 2**64 - 1
"""The integers that MessagePack can hold. A field that is stored in the database has narrower bounds."""

Place = tuple[str | int, ...]


async def refuse_unstorable_values(request: Request) -> None:
    """Raises RequestValidationError (422) with the place of the first such value in the body."""
    if not await request.body():
        return
    try:
        content = await request.json()  # cached: the route does not read it again
    except ValueError:
        return  # the route itself responds with an error
    problem = first_unstorable_value(content)
    if problem is not None:
        place, why = problem
        raise RequestValidationError([{"loc": ("body", *place), "msg": why, "type": "value_error"}])


def first_unstorable_value(content: Any) -> tuple[Place, str] | None:
    """(place, reason) of a value in a decoded JSON document that cannot be stored; None: there is none."""
    waiting: list[tuple[Place, Any]] = [((), content)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            for key, item in value.items():
                if _is_broken(key):
                    return place, "a key holds half of a surrogate pair (\\ud800 to \\udfff), which is not a character"
                waiting.append(((*place, key), item))
        elif isinstance(value, list):
            waiting.extend(((*place, index), item) for index, item in enumerate(value))
        elif isinstance(value, str) and _is_broken(value):
            return place, "the text holds half of a surrogate pair (\\ud800 to \\udfff), which is not a character"
        elif isinstance(value, int) and not _LEAST <= value <= _GREATEST:
            return place, "the integer has more than 64 bits; send it as a string"
    return None


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
