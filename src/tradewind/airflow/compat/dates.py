"""`airflow.utils.dates` of Airflow 1 and 2."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tradewind.model.errors import DefinitionError
from tradewind.model.moments import from_micros, to_micros
from tradewind.model.zones import zone_name
from tradewind.timetables.ticks import ticks

__all__ = [
    "cron_presets",
    "date_range",
    "datetime",
    "days_ago",
    "infer_time_unit",
    "parse_execution_date",
    "round_time",
    "scale_time_units",
    "timedelta",
]

cron_presets: dict[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}

_UNITS = {"days": 86_400, "hours": 3_600, "minutes": 60}
"""Unit → its length in seconds."""


def days_ago(n: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0) -> datetime:
    """The day `n` days before today, at midnight UTC or the given time."""
    today = datetime.now(UTC).replace(hour=hour, minute=minute, second=second, microsecond=microsecond)
    return today - timedelta(days=n)


def parse_execution_date(execution_date_str: str) -> datetime:
    """Parse a date in ISO 8601. A date without a time zone is in UTC."""
    found = datetime.fromisoformat(execution_date_str.replace("Z", "+00:00"))
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def round_time(dt: datetime, delta: str | timedelta, start_date: datetime | None = None) -> datetime:
    """A moment on a schedule: the last one for a cron expression, the nearest `start_date + n * delta` for a timedelta.

    Args:
        delta: a cron expression, a preset such as `@daily`, or a timedelta.

    Raises:
        DefinitionError: `delta` is neither.
    """
    if isinstance(delta, str):
        return _last_tick(dt, delta, start_date)
    if not isinstance(delta, timedelta) or not delta:
        raise DefinitionError(f"round_time takes a cron expression or a timedelta, not {delta!r}")
    start = start_date or dt.replace(hour=0, minute=0, second=0, microsecond=0)
    steps, rest = divmod(dt - start, delta)
    return start + (steps + (1 if rest > delta / 2 else 0)) * delta


def _last_tick(dt: datetime, expression: str, start_date: datetime | None) -> datetime:
    found = _Steps(dt, expression).at_or_before(dt)
    return found if start_date is None or found >= start_date else start_date


class _Steps:
    """The times of a cron expression in the time zone of a date. For a date without a time zone, they have no time zone either."""

    def __init__(self, like: datetime, expression: str) -> None:
        self._zone = like.tzinfo
        self._ticks = ticks(cron_presets.get(expression, expression), zone_name(like.tzinfo) or "UTC")

    def _micros(self, date: datetime) -> int:
        return to_micros(date if date.tzinfo is not None else date.replace(tzinfo=UTC))

    def _date(self, micros: int | None) -> datetime:
        if micros is None:
            raise DefinitionError("the cron expression has no matching time")
        found = from_micros(micros)
        return found.replace(tzinfo=None) if self._zone is None else found.astimezone(self._zone)

    def at_or_before(self, date: datetime) -> datetime:
        return self._date(self._ticks.at_or_before(self._micros(date)))

    def after(self, date: datetime) -> datetime:
        return self._date(self._ticks.after(self._micros(date)))

    def before(self, date: datetime) -> datetime:
        return self._date(self._ticks.before(self._micros(date)))


def date_range(
    start_date: datetime,
    end_date: datetime | None = None,
    num: int | None = None,
    delta: str | timedelta | None = None,
) -> list[datetime]:
    """Moments from `start_date` in steps of `delta`, up to `end_date` or `num` of them; without both, up to now. Sorted.

    Args:
        num: how many moments; with a negative number they go back from `start_date`.
        delta: a timedelta, a cron expression or a preset; default: one day.

    Raises:
        DefinitionError: `end_date` and `num` are both given, or `end_date` is before `start_date`.
    """
    if end_date is not None and num:
        raise DefinitionError("date_range takes either end_date or num, not both")
    if end_date is not None and start_date > end_date:
        raise DefinitionError(f"date_range: end_date {end_date} is before start_date {start_date}")
    back = num is not None and num < 0
    if isinstance(delta, str):
        steps = _Steps(start_date, delta)
        step = steps.before if back else steps.after
    else:
        span = abs(delta or timedelta(days=1))

        def step(date: datetime) -> datetime:
            return date - span if back else date + span

    last = end_date if end_date is not None or num else datetime.now(start_date.tzinfo)
    found: list[datetime] = []
    date = start_date
    while len(found) < abs(num) if num else date <= (last or date):
        found.append(date)
        date = step(date)
    return sorted(found)


def infer_time_unit(time_seconds_arr: list[float]) -> str:
    """The best unit for the longest of these durations (in seconds): seconds up to 2 minutes, minutes up to 2 hours, …"""
    longest = max(time_seconds_arr, default=0)
    if not time_seconds_arr:
        return "hours"
    for unit, limit in (("seconds", 120), ("minutes", 7_200), ("hours", 172_800)):
        if longest <= limit:
            return unit
    return "days"


def scale_time_units(time_seconds_arr: list[float], unit: str) -> list[float]:
    """Convert durations in seconds to another unit."""
    return [seconds / _UNITS.get(unit, 1) for seconds in time_seconds_arr]
