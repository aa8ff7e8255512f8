"""`airflow.utils.timezone`: aware moments."""

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
    """Now, aware, in UTC."""
    return _dt.datetime.now(_dt.UTC)


def utc_epoch() -> _dt.datetime:
    """The first moment of 1970, aware."""
    return _dt.datetime(1970, 1, 1, tzinfo=_dt.UTC)


def convert_to_utc(value: _dt.datetime | None) -> _dt.datetime | None:
    """A moment in UTC; without a zone, the default one is meant."""
    if value is None:
        return None
    return (value if is_localized(value) else value.replace(tzinfo=_default())).astimezone(_dt.UTC)


def make_aware(value: _dt.datetime | None, timezone: tzinfo | None = None) -> _dt.datetime | None:
    """The same clock time in a zone (the default one).

    Raises:
        ValueError: the moment has a zone already.
    """
    if value is None:
        return None
    if is_localized(value):
        raise ValueError(f"make_aware expects a naive datetime, got {value}")
    return value.replace(tzinfo=timezone or _default())


def make_naive(value: _dt.datetime, timezone: tzinfo | None = None) -> _dt.datetime:
    """The clock time of a zone (the default one), without the zone.

    Raises:
        ValueError: the moment has no zone.
    """
    if is_naive(value):
        raise ValueError("make_naive() cannot be applied to a naive datetime")
    return value.astimezone(timezone or _default()).replace(tzinfo=None)


def datetime(*args: Any, **kwargs: Any) -> _dt.datetime:
    """`datetime.datetime(…)` that is aware: in the default zone unless `tzinfo` says otherwise."""
    if "tzinfo" not in kwargs:
        kwargs["tzinfo"] = _default()
    return _dt.datetime(*args, **kwargs)  # noqa: DTZ001  the zone is among the arguments


def parse(string: str, timezone: tzinfo | None = None, *, strict: bool = False) -> _dt.datetime:
    """Read a date; without a zone, `timezone` or the default one is meant."""
    import pendulum  # lazy import: 80 ms; only where a date is read

    return pendulum.parse(string, tz=timezone or _default(), strict=strict)  # type: ignore[return-value]


def coerce_datetime(value: _dt.datetime | None, tz: tzinfo | None = None) -> Any:
    """A pendulum moment; without a zone, `tz` or UTC is meant."""
    if value is None:
        return None
    import pendulum  # lazy import: 80 ms; only where a date is looked at

    return pendulum.instance(value if is_localized(value) else value.replace(tzinfo=tz or _dt.UTC))


def from_timestamp(timestamp: float, tz: Any = "UTC") -> Any:
    """The moment that is this number of seconds after 1970."""
    import pendulum  # lazy import: 80 ms; only where a date is looked at

    return pendulum.from_timestamp(timestamp, tz)


def parse_timezone(name: str | int) -> tzinfo:
    """The zone of a name or of an offset in seconds."""
    import pendulum  # lazy import: 80 ms; only where a zone is asked for

    return pendulum.timezone(name)


def _default() -> tzinfo:
    import pendulum  # lazy import: 80 ms; only where a zone is asked for

    zone: tzinfo = pendulum.timezone(conf.get("core", "default_timezone", fallback="UTC"))
    return zone
