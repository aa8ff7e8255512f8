"""The range filters of Airflow's lists: `<field>_gte`, `_gt`, `_lte`, `_lt`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from tradewind.api.responses import When, moments


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
) -> dict[str, int]:
    return moments(dict(locals()))


Ranges = Annotated[dict[str, int], Depends(_ranges)]
"""Range filters of runs and task instances: name → microseconds."""
