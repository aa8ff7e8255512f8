"""Days of the week by name, as arguments of operators and sensors."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from tradewind.model.errors import DefinitionError, did_you_mean


class WeekDay(IntEnum):
    """Numbered like `isoweekday()`: Monday is 1."""

    MONDAY = 1
    TUESDAY = 2
    WEDNESDAY = 3
    THURSDAY = 4
    FRIDAY = 5
    SATURDAY = 6
    SUNDAY = 7

    @classmethod
    def get_weekday_number(cls, week_day_str: str) -> WeekDay:
        """The day with this English name, in any case."""
        return _day(week_day_str)

    @classmethod
    def validate_week_day(cls, week_day: WeekDay | str | Iterable[WeekDay | str]) -> set[int]:
        """The numbers (1 to 7) of the given days.

        Raises:
            DefinitionError: a value that is not a day.
        """
        return {int(day) for day in parse_days(week_day)}


WEEKEND = frozenset({WeekDay.SATURDAY, WeekDay.SUNDAY})
WORKDAYS = frozenset(WeekDay) - WEEKEND


def parse_days(given: Any) -> frozenset[WeekDay]:
    """The given days as a set. A day is a full English name in any case, or a `WeekDay`.

    Raises:
        DefinitionError: a value that is not a day, or no value.
    """
    single = isinstance(given, str | WeekDay) or not isinstance(given, Iterable)
    found = frozenset(_day(one) for one in ([given] if single else given))
    if not found:
        raise DefinitionError("week_day is empty; give at least one day")
    return found


def _day(given: Any) -> WeekDay:
    if isinstance(given, WeekDay):
        return given
    names = [day.name.capitalize() for day in WeekDay]
    if not isinstance(given, str) or given.strip().upper() not in WeekDay.__members__:
        hint = did_you_mean(given.strip().capitalize(), names) if isinstance(given, str) else ""
        raise DefinitionError(f"week_day has {given!r}, which is not a day of the week.{hint} Use one of {', '.join(names)}.")
    return WeekDay[given.strip().upper()]
