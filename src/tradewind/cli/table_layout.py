"""Fits a table into the width of a terminal: shortens times, keeps ids whole, leaves out the least important columns.

Ids must be easy to copy, so a column whose cells contain no space is never wrapped. Columns of sentences are wrapped and share the
remaining width. Columns that do not fit are left out; their names are printed below the table. This module only computes with
texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

ALWAYS_SHOWN = frozenset(
    {"dag_id", "run_id", "task_id", "state", "name", "key", "pool", "conn_id", "username", "setting", "filepath"}
)
"""Columns that identify a row. These and the first column are never left out, unless the user has typed their value."""
FIRST_LEFT_OUT = (
    "pid",
    "hostname",
    "owner",
    "owners",
    "fileloc",
    "file",
    "description",
    "extra",
    "include_deferred",
    "schema",
    "login",
    "password",
    "dags",
    "timeout_at",
    "until",
    "tries",
    "trigger_rule",
    "operator_name",
    "operator",
    "timestamp",
    "noticed_at",
    "end_date",
    "run_after",
    "logical_date",
    "data_interval_end",
    "data_interval_start",
)
"""Columns in the order in which they are left out. After them the other columns are left out, from the right."""
TEXTS = frozenset({"value", "extra", "message", "description", "problem", "reason", "meaning"})
"""Columns that may be wrapped, whatever their cells contain."""

GAP = 2
"""Spaces between two columns."""
_TEXT_LEAST, _TEXT_GOOD = 12, 24
"""Width of a column of sentences in characters: the minimum, and the width for which other columns are left out."""
_MOMENT = re.compile(r"(\d{4})-(\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)(?:\.\d+)?(Z|[+-]\d\d:?\d\d)")
_UTC = frozenset({"Z", "+00:00"})


class Fitted(NamedTuple):
    """A table that fits."""

    columns: list[str]
    cells: list[list[str]]
    widths: list[int | None]
    """Width of each column of sentences; None for a column that is as wide as its longest cell and is never wrapped."""
    zone: str | None
    """Time zone of the shortened times; None if no time was shortened."""
    left_out: list[str]
    """Names of the columns that are left out, without empty columns."""
    width: int
    """Width of a line; more than the terminal's width if the ids alone are wider."""


def fit(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    width: int,
    *,
    known: Collection[str] = (),
    all_of_them: bool = False,
    measure: Callable[[str], int] = len,
) -> Fitted:
    """Choose and shorten columns so that a line has at most `width` characters; more only if the ids are wider.

    Args:
        known: columns that repeat what the user has typed: they are left out first.
        all_of_them: leave out no column.
        measure: the width of a text in terminal cells.
    """
    table = _Table(columns, cells, measure)
    zone = table.shorten_times(seconds=True)
    empty = [name for position, name in enumerate(columns) if position and all(row[position] in ("", "-1") for row in cells)]

    def leave_out(names: Sequence[str]) -> None:
        for name in () if all_of_them else names:
            if table.least_width(_TEXT_GOOD) <= width:
                return
            table.left_out.add(name)

    leave_out(empty)
    if table.least_width(_TEXT_GOOD) > width and zone is not None:
        table.shorten_times(seconds=False)
    leave_out(_least_first(columns, known))
    shown = [position for position, name in enumerate(table.columns) if name not in table.left_out]
    widths = table.text_widths(shown, width)
    lengths = [table.natural(position) if own is None else own for position, own in zip(shown, widths, strict=True)]
    return Fitted(
        [table.columns[position] for position in shown],
        [[row[position] for position in shown] for row in table.cells],
        widths,
        zone if any(position in table.times for position in shown) else None,
        [name for name in table.columns if name in table.left_out and name not in empty],
        sum(lengths) + GAP * len(lengths),
    )


class _Table:
    """The working state of `fit`."""

    def __init__(self, columns: Sequence[str], cells: Sequence[Sequence[str]], measure: Callable[[str], int]) -> None:
        self.columns = list(columns)
        self.original = cells
        self.cells = [list(row) for row in cells]
        self.measure = measure
        self.left_out: set[str] = set()
        self.times: dict[int, str] = {}
        """Positions of the columns of times → their time zone."""
        for position in range(len(columns)):
            zones = {_zone(row[position]) for row in cells if row[position]}
            if len(zones) == 1 and (zone := zones.pop()) is not None:
                self.times[position] = zone
        self.texts = {
            position
            for position, name in enumerate(columns)
            if position not in self.times and (name in TEXTS or any(" " in row[position].strip() for row in cells))
        }

    def shorten_times(self, *, seconds: bool) -> str | None:
        """Shorten the times if all are in one time zone. Returns that zone, otherwise None."""
        zones = set(self.times.values())
        if len(zones) != 1:
            self.times = {}
            return None
        for position in self.times:
            moments = [_MOMENT.fullmatch(row[position]) for row in self.original]
            for row, text in zip(self.cells, _short(moments, seconds=seconds), strict=True):
                row[position] = text
        return zones.pop()

    def natural(self, position: int) -> int:
        return max([self.measure(self.columns[position]), *(self.measure(row[position]) for row in self.cells)])

    def least_width(self, text: int) -> int:
        """Width of the columns that are not left out, if a column of sentences has at least `text` characters."""
        shown = [position for position, name in enumerate(self.columns) if name not in self.left_out]
        widths = [min(text, self.natural(position)) if position in self.texts else self.natural(position) for position in shown]
        return sum(widths) + GAP * max(0, len(widths) - 1)

    def text_widths(self, shown: Sequence[int], width: int) -> list[int | None]:
        """Share the remaining width among the columns of sentences: width that one does not need goes to the others."""
        texts = sorted((position for position in shown if position in self.texts), key=self.natural)
        left = width - sum(self.natural(position) for position in shown if position not in self.texts) - GAP * (len(shown) - 1)
        given: dict[int, int] = {}
        for number, position in enumerate(texts):
            share = max(_TEXT_LEAST, left // (len(texts) - number))
            given[position] = max(self.measure(self.columns[position]), min(self.natural(position), share))
            left -= given[position]
        return [given.get(position) for position in shown]


def _least_first(columns: Sequence[str], known: Collection[str]) -> list[str]:
    """The columns that may be left out, in this order: known ones, then the less important ones first."""
    kept = (ALWAYS_SHOWN | {columns[0]}) - set(known) if columns else ALWAYS_SHOWN
    rest = [name for name in columns if name not in kept]
    order = [name for name in columns if name in known]
    order += [name for name in FIRST_LEFT_OUT if name in rest]
    order += reversed(rest)
    return list(dict.fromkeys(order))


def _zone(text: str) -> str | None:
    """The time zone of a text that is a time, otherwise None."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    return "UTC" if found[5] in _UTC else f"UTC{found[5]}"


def _short(moments: Sequence[re.Match[str] | None], *, seconds: bool) -> list[str]:
    """The times of one column in the same short form; only the dates if all are midnight."""
    there = [one for one in moments if one is not None]
    only_dates = all(one[3] + one[4] == "00:00:00" for one in there)
    one_year = len({one[1] for one in there}) == 1

    def text(one: re.Match[str] | None) -> str:
        if one is None:
            return ""
        day = one[2] if one_year and not seconds and not only_dates else f"{one[1]}-{one[2]}"
        return day if only_dates else f"{day} {one[3]}{one[4] if seconds else ''}"

    return [text(one) for one in moments]
