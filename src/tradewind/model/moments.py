"""Moments and durations as integers.

Inside Tradewind a moment is an `int`: microseconds since 1970-01-01T00:00:00Z. A duration is an `int` of microseconds. Integers
compare exactly, sort, fit in eight bytes and have no time zone that could be lost. Only values for people or DAG authors are a
`datetime`, always with a time zone.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def to_micros(moment: datetime) -> int:
    """Return the microseconds since 1970-01-01T00:00:00Z.

    Raises:
        ValueError: `moment` has no time zone, or lies outside the years 1 to 9999 in UTC, so that it could not be shown.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone; write it as UTC or in a named zone")
    # not `moment - _EPOCH`: a pendulum datetime returns its own Interval type
    micros = datetime.__sub__(moment, _EPOCH) // _MICROSECOND
    if not _FIRST <= micros <= _LAST:
        raise ValueError(f"{moment.isoformat()} lies outside the years 1 to 9999 in UTC")
    return micros


def from_micros(micros: int) -> datetime:
    """Return the datetime of a moment, in UTC and with its time zone."""
    return _EPOCH + timedelta(microseconds=micros)


def duration_micros(duration: timedelta) -> int:
    """Return the microseconds of a timedelta, or of a subclass such as pendulum's, which cannot be divided by a timedelta."""
    return timedelta.__floordiv__(duration, _MICROSECOND)


def iso_duration(micros: int) -> str:
    """A duration in ISO 8601: `P1DT1H30M`, `PT0.5S`."""
    seconds, rest = divmod(abs(micros), SECOND)
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3_600)
    minutes, seconds = divmod(seconds, 60)
    text = str(seconds) + (f".{rest:06d}".rstrip("0") if rest else "")
    time = "".join(f"{value}{unit}" for value, unit in ((hours, "H"), (minutes, "M")) if value)
    time += f"{text}S" if seconds or rest else ""
    date = f"{days}D" if days else ""
    if not date and not time:
        return "PT0S"
    return ("-" if micros < 0 else "") + f"P{date}" + (f"T{time}" if time else "")


def iso(micros: int | None) -> str | None:
    """Return ISO 8601 in UTC with a `Z`; microseconds only if they are not zero. None stays None."""
    if micros is None:
        return None
    return from_micros(micros).isoformat().replace("+00:00", "Z")


def shown_moment(micros: int | None) -> str:
    """Return `iso` for a sentence; an unknown moment as "None"."""
    return str(iso(micros))


def parse_moment(text: str) -> int:
    """Read a moment in ISO 8601, with or without a time zone (without: UTC), or a date.

    Raises:
        ValueError: the text is not a moment; the message shows a valid example.
    """
    cleaned = text.strip().replace(" ", "T", 1) if "T" not in text else text.strip()
    try:
        moment = datetime.fromisoformat(cleaned)
    except ValueError:
        raise ValueError(f"{text!r} is not a date and time; write it like 2026-01-31 or 2026-01-31T06:00:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return to_micros(moment)
