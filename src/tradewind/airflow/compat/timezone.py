"""`airflow.utils.timezone`: timezone-aware datetimes."""

from __future__ import annotations

import datetime as _dt
from datetime import tzinfo
from typing import Any

from tradewind.sdk.conf import conf

__all__ = [
    "coerce_datetime",
    "convert_to_utc",
    "datetime",
    "from_timestamp",
    "is_localized",
    "is_naive",
    "make_aware",
    "make_naive",
    "parse",
    "parse_timezone",
    "utc",
    "utc_epoch",
    "utcnow",
]

utc = _dt.UTC


def is_localized(value: _dt.datetime) -> bool:
    """Whether a moment has a time zone."""
    return value.utcoffset() is not None


def is_naive(value: _dt.datetime) -> bool:
    """Whether a moment has no time zone."""
    return value.utcoffset() is None


def utcnow() -> _dt.datetime:
    """The current time as a timezone-aware datetime in UTC."""
    return _dt.datetime.now(_dt.UTC)


def utc_epoch() -> _dt.datetime:
    """The start of 1970 as a timezone-aware datetime in UTC."""
    return _dt.datetime(1970, 1, 1, tzinfo=_dt.UTC)


def convert_to_utc(value: _dt.datetime | None) -> _dt.datetime | None:
    """Convert a datetime to UTC. A datetime without a time zone is in the default time zone."""
    if value is None:
        return None
    return (value if is_localized(value) else value.replace(tzinfo=_default())).astimezone(_dt.UTC)


def make_aware(value: _dt.datetime | None, timezone: tzinfo | None = None) -> _dt.datetime | None:
    """The same local time with a time zone (default: the default time zone).

    Raises:
        ValueError: the datetime already has a time zone.
    """
    if value is None:
        return None
    if is_localized(value):
        raise ValueError(f"make_aware expects a naive datetime, got {value}")
    return value.replace(tzinfo=timezone or _default())


def make_naive(value: _dt.datetime, timezone: tzinfo | None = None) -> _dt.datetime:
    """The local time in a time zone (default: the default time zone), without the time zone.

    Raises:
        ValueError: the datetime has no time zone.
    """
    if is_naive(value):
        raise ValueError("make_naive() cannot be applied to a naive datetime")
    return value.astimezone(timezone or _default()).replace(tzinfo=None)


def datetime(*args: Any, **kwargs: Any) -> _dt.datetime:
    """A timezone-aware `datetime.datetime(…)`: in the default time zone, unless `tzinfo` is given."""
    if "tzinfo" not in kwargs:
        kwargs["tzinfo"] = _default()
    return _dt.datetime(*args, **kwargs)  # noqa: DTZ001  the zone is among the arguments


def parse(string: str, timezone: tzinfo | None = None, *, strict: bool = False) -> _dt.datetime:
    """Parse a date. A date without a time zone is in `timezone`, or in the default time zone."""
    import pendulum  # lazy import: 80 ms; only where a date is read

    return pendulum.parse(string, tz=timezone or _default(), strict=strict)  # type: ignore[return-value]


def coerce_datetime(value: _dt.datetime | None, tz: tzinfo | None = None) -> Any:
    """Convert to a pendulum datetime. A datetime without a time zone is in `tz`, or in UTC."""
    if value is None:
        return None
    import pendulum  # lazy import: 80 ms; only where a date is looked at

    return pendulum.instance(value if is_localized(value) else value.replace(tzinfo=tz or _dt.UTC))


def from_timestamp(timestamp: float, tz: Any = "UTC") -> Any:
    """The datetime that is this number of seconds after the start of 1970."""
    import pendulum  # lazy import: 80 ms; only where a date is looked at

    return pendulum.from_timestamp(timestamp, tz)


def parse_timezone(name: str | int) -> tzinfo:
    """The time zone with a name, or with an offset in seconds."""
    import pendulum  # lazy import: 80 ms; only where a zone is asked for

    return pendulum.timezone(name)


def _default() -> tzinfo:
    import pendulum  # lazy import: 80 ms; only where a zone is asked for

    zone: tzinfo = pendulum.timezone(conf.get("core", "default_timezone", fallback="UTC"))
    return zone
