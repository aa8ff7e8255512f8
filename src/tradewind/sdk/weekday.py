"""Days of the week by name, as operators and sensors take them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from tradewind.model.errors import DefinitionError, did_you_mean


class WeekDay(IntEnum):
    """Monday is 1, as `isoweekday()` counts."""

    MONDAY = 1
    TUESDAY = 2
    WEDNESDAY = 3
    THURSDAY = 4
    FRIDAY = 5
    SATURDAY = 6
    SUNDAY = 7

    @classmethod
    def get_weekday_number(cls, week_day_str: str) -> WeekDay:
        """The day of that name, in any case."""
        return _day(week_day_str)

    @classmethod
    def validate_week_day(cls, week_day: WeekDay | str | Iterable[WeekDay | str]) -> set[int]:
        """Numbers of the named days.

        Raises:
            DefinitionError: a name that is no day.
        """
        return {int(day) for day in days_of(week_day)}


WEEKEND = frozenset({WeekDay.SATURDAY, WeekDay.SUNDAY})
WORKDAYS = frozenset(WeekDay) - WEEKEND


def days_of(given: Any) -> frozenset[WeekDay]:
    """The days that an author named: one or several, by full English name in any case, or as `WeekDay`.

    Raises:
        DefinitionError: something that is no day, or nothing at all.
    """
    single = isinstance(given, str | WeekDay) or not isinstance(given, Iterable)
    found = frozenset(_day(one) for one in ([given] if single else given))
    if not found:
        raise DefinitionError("week_day names no day")
    return found


def _day(given: Any) -> WeekDay:
    if isinstance(given, WeekDay):
        return given
    names = [day.name.capitalize() for day in WeekDay]
    if not isinstance(given, str) or given.strip().upper() not in WeekDay.__members__:
        hint = did_you_mean(given.strip().capitalize(), names) if isinstance(given, str) else ""
        raise DefinitionError(f"week_day has {given!r}, which is no day of the week.{hint} There are {', '.join(names)}.")
    return WeekDay[given.strip().upper()]
