"""Pages by cursor: a page begins after a given row, not after a number of rows.

A cursor is a text that the client sends back. It contains the values of the ordering columns of the row at the end (or at the
start) of a page, and a checksum of the order. So each page has the same cost, however far it is from the first page, and rows
that are added later do not shift the pages.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Annotated
from zlib import crc32

import msgspec

from tradewind.store.sql.engine import Engine, Row
from tradewind.store.sql.queries import Term, Value, Where, order_clause, page
from tradewind.store.views import BadQuery

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """A position in a list."""

    order: int
    """A checksum of the ordering columns."""
    values: tuple[str | Whole | None, ...]
    backwards: bool = False
    """Whether the page ends before this position, instead of beginning after it."""


class CursorPage(msgspec.Struct, frozen=True):
    rows: list[Row]
    """The rows, without the ordering columns."""
    next_cursor: str | None
    previous_cursor: str | None


Select = Callable[[str, Where], tuple[str, Sequence[Value]]]
"""(additional columns, conditions) → the statement without ORDER BY, and its parameters."""


def cursor_page(engine: Engine, select: Select, where: Where, terms: Sequence[Term], cursor: str, limit: int) -> CursorPage:
    """Return the page at a cursor; an empty cursor means the first page.

    Raises:
        BadQuery: the text is not a cursor, or the cursor belongs to another order.
    """
    checksum = crc32(", ".join(f"{one.column} DESC" if one.descending else one.column for one in terms).encode())
    position = _decoded(cursor, checksum, len(terms)) if cursor else None
    backwards = position is not None and position.backwards
    direction = [Term(term.column, term.descending != backwards) for term in terms]
    if position is not None:
        _add_position(where, direction, position.values)
    statement, parameters = select(", ".join(term.column for term in terms), where)
    found = page(engine, statement + order_clause(engine.dialect, direction), parameters, limit + 1, 0)
    more, found = len(found) > limit, found[:limit]
    if backwards:
        found.reverse()
    width = len(terms)
    first = Cursor(checksum, tuple(found[0][-width:]), True) if found else None
    last = Cursor(checksum, tuple(found[-1][-width:])) if found else None
    has_next, has_previous = (True, more) if backwards else (more, position is not None)
    return CursorPage(
        [row[:-width] for row in found],
        _encoded(last) if has_next and last is not None else None,
        _encoded(first) if has_previous and first is not None else None,
    )


def _add_position(where: Where, terms: Sequence[Term], values: Sequence[str | int | None]) -> None:
    """The rows that follow these values. NULL comes first in ascending order, as in the dialects' ORDER BY."""
    alternatives: list[str] = []
    parameters: list[Value] = []
    same: list[str] = []
    same_parameters: list[Value] = []
    for (column, descending), value in zip(terms, values, strict=True):
        if value is None:
            later, own = (None, []) if descending else (f"{column} IS NOT NULL", [])
        elif descending:
            later, own = f"({column} < ? OR {column} IS NULL)", [value]
        else:
            later, own = f"{column} > ?", [value]
        if later is not None:
            alternatives.append(" AND ".join([*same, later]))
            parameters += [*same_parameters, *own]
        same.append(f"{column} IS NULL" if value is None else f"{column} = ?")
        same_parameters += [] if value is None else [value]
    where.add("(" + " OR ".join(f"({one})" for one in alternatives) + ")" if alternatives else "1 = 0", *parameters)


def _encoded(cursor: Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def _decoded(text: str, checksum: int, width: int) -> Cursor:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        found = msgspec.msgpack.decode(raw, type=Cursor)
    except (ValueError, msgspec.DecodeError):
        raise BadQuery("This server did not create this cursor. Use an empty one for the first page.") from None
    if found.order != checksum or len(found.values) != width:
        raise BadQuery("This cursor belongs to another order_by. Use an empty one for the first page.")
    return found
