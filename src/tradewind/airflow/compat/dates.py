"""`airflow.utils.dates` of Airflow 1 and 2."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tradewind.model.errors import DefinitionError

__all__ = [
    "cron_presets",
    "date_range",
    "days_ago",
    "infer_time_unit",
    "parse_execution_date",
    "round_time",
    "scale_time_units",
]

cron_presets: dict[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}

_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


def days_ago(n: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0) -> datetime:
    """The day `n` days before today, at midnight UTC or the given time."""
    today = datetime.now(UTC).replace(hour=hour, minute=minute, second=second, microsecond=microsecond)
    return today - timedelta(days=n)


def parse_execution_date(execution_date_str: str) -> datetime:
    """A date written as ISO 8601; without a zone, UTC."""
    found = datetime.fromisoformat(execution_date_str.replace("Z", "+00:00"))
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def round_time(dt: datetime, delta: Any, start_date: datetime | None = None) -> datetime:
    """The last moment `start_date + n * delta` that is not nearer to the next one than to `dt`.

    Args:
        delta: a timedelta. (Cron expressions: use a timetable.)

    Raises:
        DefinitionError: `delta` is no timedelta.
    """
    if not isinstance(delta, timedelta) or not delta:
        raise DefinitionError(f"round_time takes a timedelta, not {delta!r}")
    start = start_date or dt.replace(hour=0, minute=0, second=0, microsecond=0)
    steps, rest = divmod(dt - start, delta)
    return start + (steps + (1 if rest > delta / 2 else 0)) * delta


def date_range(
    start_date: datetime, end_date: datetime | None = None, num: int | None = None, delta: timedelta | None = None
) -> list[datetime]:
    """Moments from `start_date` in steps of `delta` (a day), up to `end_date` or `num` of them.

    Raises:
        DefinitionError: neither `end_date` nor `num` is given, or both are.
    """
    if (end_date is None) == (num is None):
        raise DefinitionError("date_range takes either end_date or num")
    step = delta or timedelta(days=1)
    found = [start_date]
    while len(found) < num if num is not None else end_date is not None and found[-1] + step <= end_date:
        found.append(found[-1] + step)
    return found


def infer_time_unit(time_seconds_arr: list[float]) -> str:
    """The largest unit in which the longest of these durations is more than two."""
    longest = max(time_seconds_arr, default=0)
    return next(
        (unit for unit, seconds in reversed(_UNITS) if longest <= 2 * seconds * (24 if unit == "hours" else 60)), "days"
    )


def scale_time_units(time_seconds_arr: list[float], unit: str) -> list[float]:
    """Durations in seconds, in another unit."""
    return [seconds / dict(_UNITS).get(unit, 1) for seconds in time_seconds_arr]
