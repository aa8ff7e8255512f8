"""How a table fits a terminal: short times, ids whole, the least important columns left out. Pure: from texts to texts.

Ids are there to be copied, so a column whose cells have no blank is never broken over lines. Columns of sentences are: they take
what is left. What does not fit beside the others is left out, and named below the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

KEPT = frozenset({"dag_id", "run_id", "task_id", "state", "name", "key", "pool", "conn_id", "username", "setting", "filepath"})
"""Columns without which a row cannot be told from another one: left out last of all. So is the first column."""
LEAST = (
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
"""Columns in the order in which they are left out. Others follow, from the right."""
TEXTS = frozenset({"value", "extra", "message", "description", "problem", "reason", "meaning"})
"""Columns that may be broken over lines whatever stands in them."""

GAP = 2
"""Blanks between two columns."""
_TEXT_LEAST, _TEXT_GOOD = 12, 24
"""Characters of a column of sentences: so few it has where nothing else can be left out; so many where something can."""
_MOMENT = re.compile(r"(\d{4})-(\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)(?:\.\d+)?(Z|[+-]\d\d:?\d\d)")
_UTC = frozenset({"Z", "+00:00"})


class Fitted(NamedTuple):
    """What is shown of a table."""

    columns: list[str]
    cells: list[list[str]]
    widths: list[int | None]
    """Of columns of sentences; None: as wide as the longest cell, and never broken."""
    zone: str | None
    """In which its shortened times are; None where none was shortened."""
    left_out: list[str]
    """Columns that are not shown, but for those in which nothing stands."""
    width: int
    """Of a line; more than there is where ids alone are wider."""


def fit(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    width: int,
    *,
    known: Collection[str] = (),
    all_of_them: bool = False,
    measure: Callable[[str], int] = len,
) -> Fitted:
    """Choose and shorten columns so that a line has at most `width` characters, as far as ids allow.

    Args:
        known: columns that say what the reader has just typed: they are left out first.
        all_of_them: leave out no column.
        measure: how many places a text takes.
    """
    table = _Table(columns, cells, measure)
    zone = table.shorten_times(seconds=True)
    empty = [name for place, name in enumerate(columns) if place and all(row[place] in ("", "-1") for row in cells)]

    def leave_out(names: Sequence[str]) -> None:
        for name in () if all_of_them else names:
            if table.least_width(_TEXT_GOOD) <= width:
                return
            table.left_out.add(name)

    leave_out(empty)
    if table.least_width(_TEXT_GOOD) > width and zone is not None:
        table.shorten_times(seconds=False)
    leave_out(_least_first(columns, known))
    shown = [place for place, name in enumerate(table.columns) if name not in table.left_out]
    widths = table.text_widths(shown, width)
    lengths = [table.natural(place) if own is None else own for place, own in zip(shown, widths, strict=True)]
    return Fitted(
        [table.columns[place] for place in shown],
        [[row[place] for place in shown] for row in table.cells],
        widths,
        zone if any(place in table.times for place in shown) else None,
        [name for name in table.columns if name in table.left_out and name not in empty],
        sum(lengths) + GAP * len(lengths),
    )


class _Table:
    """A table under way."""

    def __init__(self, columns: Sequence[str], cells: Sequence[Sequence[str]], measure: Callable[[str], int]) -> None:
        self.columns = list(columns)
        self.original = cells
        self.cells = [list(row) for row in cells]
        self.measure = measure
        self.left_out: set[str] = set()
        self.times: dict[int, str] = {}
        """RunSlots of columns of moments, with their zone."""
        for place in range(len(columns)):
            zones = {_zone(row[place]) for row in cells if row[place]}
            if len(zones) == 1 and (zone := zones.pop()) is not None:
                self.times[place] = zone
        self.texts = {
            place
            for place, name in enumerate(columns)
            if place not in self.times and (name in TEXTS or any(" " in row[place].strip() for row in cells))
        }

    def shorten_times(self, *, seconds: bool) -> str | None:
        """Write moments shorter; their zone, where all columns have one and the same."""
        zones = set(self.times.values())
        if len(zones) != 1:
            self.times = {}
            return None
        for place in self.times:
            moments = [_MOMENT.fullmatch(row[place]) for row in self.original]
            for row, text in zip(self.cells, _short(moments, seconds=seconds), strict=True):
                row[place] = text
        return zones.pop()

    def natural(self, place: int) -> int:
        return max([self.measure(self.columns[place]), *(self.measure(row[place]) for row in self.cells)])

    def least_width(self, text: int) -> int:
        """Of the columns that are not left out, where a column of sentences has at least `text` characters."""
        shown = [place for place, name in enumerate(self.columns) if name not in self.left_out]
        widths = [min(text, self.natural(place)) if place in self.texts else self.natural(place) for place in shown]
        return sum(widths) + GAP * max(0, len(widths) - 1)

    def text_widths(self, shown: Sequence[int], width: int) -> list[int | None]:
        """Share what is left among columns of sentences: what one does not need, the others get."""
        texts = sorted((place for place in shown if place in self.texts), key=self.natural)
        left = width - sum(self.natural(place) for place in shown if place not in self.texts) - GAP * (len(shown) - 1)
        given: dict[int, int] = {}
        for number, place in enumerate(texts):
            share = max(_TEXT_LEAST, left // (len(texts) - number))
            given[place] = max(self.measure(self.columns[place]), min(self.natural(place), share))
            left -= given[place]
        return [given.get(place) for place in shown]


def _least_first(columns: Sequence[str], known: Collection[str]) -> list[str]:
    """The columns that may be left out, in that order: what is known, then what matters least."""
    kept = (KEPT | {columns[0]}) - set(known) if columns else KEPT
    rest = [name for name in columns if name not in kept]
    order = [name for name in columns if name in known]
    order += [name for name in LEAST if name in rest]
    order += reversed(rest)
    return list(dict.fromkeys(order))


def _zone(text: str) -> str | None:
    """The zone of a moment; None: it is none."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    return "UTC" if found[5] in _UTC else f"UTC{found[5]}"


def _short(moments: Sequence[re.Match[str] | None], *, seconds: bool) -> list[str]:
    """Moments of one column, all written alike. Days alone where all are midnights."""
    there = [one for one in moments if one is not None]
    midnights = all(one[3] + one[4] == "00:00:00" for one in there)
    one_year = len({one[1] for one in there}) == 1

    def text(one: re.Match[str] | None) -> str:
        if one is None:
            return ""
        day = one[2] if one_year and not seconds and not midnights else f"{one[1]}-{one[2]}"
        return day if midnights else f"{day} {one[3]}{one[4] if seconds else ''}"

    return [text(one) for one in moments]
