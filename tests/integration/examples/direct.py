"""The expected totals of the weather warehouse, computed directly from the table."""

from __future__ import annotations


def direct_totals(rows: list[list[str]]) -> tuple[int, float, float, float]:
    """(days, precipitation, highest temperature, lowest temperature)."""
    return (
        len(rows),
        sum(float(row[1]) for row in rows),
        max(float(row[2]) for row in rows),
        min(float(row[3]) for row in rows),
    )
