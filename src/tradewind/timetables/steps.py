"""Steps in time: an exact duration, a number of months and years, or both.

Months and years are counted in the calendar of UTC (as in Airflow, a DAG's start date is stored in UTC). The 31st becomes the last
day of a shorter month. Days, hours and smaller units are exact and are part of `Delta.micros`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tradewind.model.definition import Delta
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND, from_micros, to_micros
from tradewind.model.phrases import Argument, Phrase, all_of, english, phrase
from tradewind.timetables.cron import month_length

_EXACT = {
    "weeks": 7 * DAY,
    "days": DAY,
    "hours": HOUR,
    "minutes": MINUTE,
    "seconds": SECOND,
    "microseconds": 1,
}
_ABSOLUTE = ("year", "month", "day", "hour", "minute", "second", "microsecond")
_KNOWN = ("years", "months", "leapdays", *_ABSOLUTE)

_ROUNDING = {"years": 365 * DAY, "months": 30 * DAY}
"""The length of a year and a month that Airflow assumes when it computes the latest interval without catchup."""


def shift(moment: int, delta: Delta, sign: int = 1) -> int:
    """`moment` plus `sign` times `delta`, in microseconds since the epoch.

    Raises:
        ScheduleError: the result is outside of the years 1 to 9999.
    """
    if not delta.parts:
        return moment + sign * delta.micros
    try:
        return to_micros(_shift_parts(from_micros(moment), dict(delta.parts), sign)) + sign * delta.micros
    except (ValueError, OverflowError):
        raise ScheduleError(f"a step of {describe_delta(delta)} leads outside of the years 1 to 9999") from None


def _shift_parts(moment: datetime, parts: dict[str, int], sign: int) -> datetime:
    """relativedelta's order: first set absolute fields (`day=1`), then add years and months, then leap days."""
    months = (parts.get("year", moment.year) + sign * parts.get("years", 0)) * 12
    months += parts.get("month", moment.month) - 1 + sign * parts.get("months", 0)
    year, month = divmod(months, 12)
    month += 1
    day = min(parts.get("day", moment.day), month_length(year, month))
    moment = moment.replace(
        year=year,
        month=month,
        day=day,
        hour=parts.get("hour", moment.hour),
        minute=parts.get("minute", moment.minute),
        second=parts.get("second", moment.second),
        microsecond=parts.get("microsecond", moment.microsecond),
    )
    leap_days = parts.get("leapdays", 0)
    if leap_days and month > 2 and month_length(year, 2) == 29:
        moment += timedelta(days=sign * leap_days)
    return moment


def nominal_length(delta: Delta) -> int:
    """The length in microseconds, with 30 days for a month and 365 days for a year."""
    return delta.micros + sum(_ROUNDING.get(name, 0) * count for name, count in delta.parts)


def is_zero(delta: Delta) -> bool:
    return not delta.micros and not delta.parts


def always_positive(delta: Delta) -> bool:
    """True if every step goes forward, from all days on which months differ (leap years, short and long months).

    Three steps are tested from each day, because a step such as `hour=3` goes forward once and then stands still.
    """
    if not delta.parts:
        return delta.micros > 0
    for year in (2023, 2024):
        for month in range(1, 13):
            for day in (1, 15, month_length(year, month)):
                moment = to_micros(datetime(year, month, day, tzinfo=UTC))
                for _ in range(3):
                    before, moment = moment, shift(moment, delta)
                    if moment <= before:
                        return False
    return True


def delta_of(**parts: float) -> Delta:
    """A `Delta` from relativedelta's arguments: `months=1, days=2, hours=6`, …

    Raises:
        ScheduleError: an argument that is not supported.
    """
    micros = 0
    kept: dict[str, int] = {}
    for name, count in parts.items():
        if name in _EXACT:
            micros += round(count * _EXACT[name])
        elif name in _KNOWN:
            # 0 means nothing for "months", but is a value for the absolute field "hour"
            if count or name in _ABSOLUTE:
                kept[name] = int(count)
        else:
            raise ScheduleError(f"relativedelta({name}={count}) is not supported in a schedule; use a cron expression instead")
    return Delta(micros=micros, parts=tuple(sorted(kept.items())))


def describe_delta(delta: Delta) -> str:
    """A delta in English: "1 month, 2 days and 6 hours"."""
    return english(delta_phrase(delta))


def delta_phrase(delta: Delta, *, every: bool = False) -> Argument:
    """A delta as an argument of a phrase.

    Args:
        every: "every" precedes it, so a first unit is not counted: "month, 2 days and 6 hours".
    """
    words: list[str | Phrase] = [_count(count, name) for name, count in delta.parts if name not in _ABSOLUTE]
    words += [phrase("calendar_field", field=name, value=count) for name, count in delta.parts if name in _ABSOLUTE]
    sign, rest = (-1 if delta.micros < 0 else 1), abs(delta.micros)
    for name in ("days", "hours", "minutes"):
        count, rest = divmod(rest, _EXACT[name])
        if count:
            words.append(_count(sign * count, name))
    if rest:
        words.append(_count(sign if rest == SECOND else f"{'-' if sign < 0 else ''}{rest / SECOND:g}", "seconds"))
    if not words:
        return phrase("no_time")
    if every and isinstance(first := words[0], Phrase) and first.arguments.get("count") == 1:
        words[0] = phrase(f"one_{first.code.removeprefix('count_')}")
    return all_of(words)


def _count(count: int | str, unit: str) -> Phrase:
    """Return "1 day" or "2 days". `unit` is in the plural."""
    return phrase(f"count_{unit[:-1] if count in (1, -1) else unit}", count=count)
