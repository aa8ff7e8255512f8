"""The filters that several lists of Airflow have in common: ranges (`<field>_gte`, `_gt`, `_lte`, `_lt`) and search patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Depends, Query

from tradewind.api.responses import When, moments
from tradewind.store.views import Conditions

Seconds = Annotated[float | None, Query(ge=-1e12, le=1e12, description="Seconds.", allow_inf_nan=False)]
Pattern = Annotated[
    str | None,
    Query(description="Part of the text, in any case. `%` and `_` are wildcards, `|` means or, `~` means all."),
]
Prefix = Annotated[
    str | None,
    Query(description="The beginning of the text, in the same case. `|` means or, `~` means all. An index serves it."),
]
Cursor = Annotated[
    str | None,
    Query(
        description="Pages by cursor: empty for the first page, then `next_cursor` of the answer. "
        "`offset` has no effect, and the answer has no total."
    ),
]


async def _ranges(
    run_after_gte: When = None,
    run_after_gt: When = None,
    run_after_lte: When = None,
    run_after_lt: When = None,
    logical_date_gte: When = None,
    logical_date_gt: When = None,
    logical_date_lte: When = None,
    logical_date_lt: When = None,
    start_date_gte: When = None,
    start_date_gt: When = None,
    start_date_lte: When = None,
    start_date_lt: When = None,
    end_date_gte: When = None,
    end_date_gt: When = None,
    end_date_lte: When = None,
    end_date_lt: When = None,
    updated_at_gte: When = None,
    updated_at_gt: When = None,
    updated_at_lte: When = None,
    updated_at_lt: When = None,
) -> dict[str, int]:
    return moments(dict(locals()))


async def _durations(
    duration_gte: Seconds = None, duration_gt: Seconds = None, duration_lte: Seconds = None, duration_lt: Seconds = None
) -> dict[str, int]:
    return durations(locals())


async def _all_ranges(
    dates: Annotated[dict[str, int], Depends(_ranges)], spans: Annotated[dict[str, int], Depends(_durations)]
) -> dict[str, int]:
    return {**dates, **spans}


Ranges = Annotated[dict[str, int], Depends(_all_ranges)]
"""Range filters of runs and task instances: name → microseconds."""


def durations(given: Mapping[str, float | None]) -> dict[str, int]:
    """Ranges of durations: seconds → microseconds."""
    return {name: round(value * 1_000_000) for name, value in given.items() if value is not None}


def conditions(
    patterns: Mapping[str, str | None] | None = None,
    prefixes: Mapping[str, str | None] | None = None,
    among: Mapping[str, Sequence[str] | Sequence[int] | None] | None = None,
    ranges: Mapping[str, int] | None = None,
) -> Conditions:
    """The conditions of a list. None: the request has no such condition."""
    return Conditions(
        {name: one for name, one in (patterns or {}).items() if one is not None},
        {name: one for name, one in (prefixes or {}).items() if one is not None},
        {name: list(one) for name, one in (among or {}).items() if one is not None},
        ranges or {},
    )
