"""What a body may hold at all: JSON allows numbers and texts that neither our messages nor the database can take."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError

_LEAST, _GREATEST = -(2**63), 2**64 - 1
"""What MessagePack can hold; a field that goes into the database has narrower bounds of its own."""

Place = tuple[str | int, ...]


async def refuse_what_cannot_be_kept(request: Request) -> None:
    """Raises RequestValidationError (422) for a body with such a value, with its place."""
    if not await request.body():
        return
    try:
        content = await request.json()  # read already, and kept, where the route has a body
    except ValueError:
        return  # the route's own answer says so
    problem = first_problem(content)
    if problem is not None:
        place, why = problem
        raise RequestValidationError([{"loc": ("body", *place), "msg": why, "type": "value_error"}])


def first_problem(content: Any) -> tuple[Place, str] | None:
    """(place, reason) of a value in a decoded JSON document that cannot be kept; None where there is none."""
    waiting: list[tuple[Place, Any]] = [((), content)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            for key, item in value.items():
                if _is_broken(key):
                    return place, "a key holds half of a surrogate pair (\\ud800 to \\udfff), which is no character"
                waiting.append(((*place, key), item))
        elif isinstance(value, list):
            waiting.extend(((*place, index), item) for index, item in enumerate(value))
        elif isinstance(value, str) and _is_broken(value):
            return place, "the text holds half of a surrogate pair (\\ud800 to \\udfff), which is no character"
        elif isinstance(value, int) and not _LEAST <= value <= _GREATEST:
            return place, "the integer is beyond 64 bits; write it as a text"
    return None


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
