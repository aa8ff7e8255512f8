"""Cron expressions, evaluated on a wall clock without a time zone.

Five fields: minute, hour, day of the month, month, day of the week. An optional sixth field is the second, a seventh the year.
    Lists,
ranges, steps, names, `L` (last day of the month), `L5` (last Friday), `fri#2` (second Friday), `15W` (the working day nearest to
the 15th), `?` for `*`.

The meaning is the same as in Airflow, because DAG files are used here unchanged. Rules that may surprise:

- if both day of the month *and* day of the week are given, one of them must match; this includes `*/2`;
- with `fri#2` the day of the month has no effect (where Airflow fails, because the two never coincide, the expression is refused);
- with `15W` the day of the week has no effect;
- a range from a value to itself (`5-5`) means all values; a range may wrap around (`22-2`);
- Sunday is 0, 7 and `sun`.

Wall-clock times are seconds since 1970-01-01 00:00:00 on that clock. The next match is found without stepping through time: with
bit masks of the days of a month and a bisection in the minutes of a day.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from tradewind.model.errors import ScheduleError, did_you_mean, nearest
from tradewind.timetables.zones import DAY_SECONDS, EPOCH_ORDINAL

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def preset(text: str) -> str:
    """The cron expression of a preset; any other string unchanged."""
    return PRESETS.get(text.strip().lower(), text.strip())


_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_WEEKDAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_WEEKDAY_NAME = "|".join(_WEEKDAYS)

_SEARCH_MONTHS = 12 * 50
"""How many months are searched for a match. 29 February is at most 8 years away; Airflow gives up after 50 years."""


class Field(NamedTuple):
    """The name and the valid values of one field."""

    name: str
    low: int
    high: int
    names: dict[str, int]


_FIELDS = (
    Field("minute", 0, 59, {}),
    Field("hour", 0, 23, {}),
    Field("day of the month", 1, 31, {}),
    Field("month", 1, 12, _MONTHS),
    Field("day of the week", 0, 6, _WEEKDAYS),
    Field("second", 0, 59, {}),
    Field("year", 1970, 2099, {}),
)
_DAY, _MONTH, _WEEKDAY = 2, 3, 4

_RANGE = re.compile(r"([^-/]+)-([^-/]+)(?:/(\d+))?")
_STEP = re.compile(r"([^-/]+)/(\d+)")
_NTH = re.compile(rf"((?:{_WEEKDAY_NAME})-(?:{_WEEKDAY_NAME})|[a-z0-9]+)#(\d+)")
_LAST = re.compile(r"l(\d+)")
_NEAR = re.compile(r"(\d+)w|w(\d+)")


class Values(NamedTuple):
    """One parsed field: its values, whether it is equivalent to `*`, and the parts that only day fields have."""

    values: frozenset[int]
    star: bool
    last_day: bool = False
    nth: frozenset[tuple[int, int]] = frozenset()
    """(weekday, number of the week in the month; 0 is the last)."""
    near: int = 0
    """The day of the month of `15W`, the nearest working day; 0 for none."""


def month_length(year: int, month: int) -> int:
    """Number of days of a month. (The standard library's `calendar` has this, too, but takes 2 ms to import.)"""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


class CronExpression:
    """A compiled expression, made by `compile_cron`.

    `columns` are its fields in lower case, `fields` the parsed values. `hourly` is True if the hour is `*`: then the expression
    also matches in hours that a clock change repeats (see `ticks`).
    """

    __slots__ = (
        "_day",
        "_days",
        "_minutes",
        "_months",
        "_seconds",
        "_weekday",
        "_years",
        "columns",
        "fields",
        "hourly",
        "text",
    )

    def __init__(self, text: str, columns: tuple[str, ...]) -> None:
        self.text = text
        self.columns = columns
        self.fields = read = tuple(_read_column(text, columns, index) for index in range(len(columns)))
        minute, hour, day, month, weekday = read[:5]
        self.hourly = hour.star
        self._minutes = sorted(h * 60 + m for h in hour.values for m in minute.values)
        self._seconds = sorted(read[5].values) if len(read) > 5 else [0]
        self._years = read[6].values if len(read) > 6 and not read[6].star else None
        self._months = month.values
        self._day = day
        self._weekday = weekday
        self._days: dict[int, int] = {}

    def at_or_after(self, wall: int) -> int | None:
        """The first match at or after a wall-clock second; None if there is none within 50 years."""
        days, second = divmod(wall, DAY_SECONDS)
        today = date.fromordinal(days + EPOCH_ORDINAL)
        index = today.year * 12 + today.month - 1
        mask = self._month_mask(index) >> today.day
        if mask & 1:
            found = self._time_at_or_after(second)
            if found is not None:
                return days * DAY_SECONDS + found
        mask = (mask >> 1) << (today.day + 1)
        for _ in range(_SEARCH_MONTHS):
            if mask:
                day = (mask & -mask).bit_length() - 1
                return self._midnight(index, day) + self._minutes[0] * 60 + self._seconds[0]
            index += 1
            if index >= 12 * 10_000:
                return None
            mask = self._month_mask(index)
        return None

    def at_or_before(self, wall: int) -> int | None:
        """The last match at or before a wall-clock second; None if there is none within 50 years."""
        days, second = divmod(wall, DAY_SECONDS)
        today = date.fromordinal(days + EPOCH_ORDINAL)
        index = today.year * 12 + today.month - 1
        mask = self._month_mask(index)
        if mask >> today.day & 1:
            found = self._time_at_or_before(second)
            if found is not None:
                return days * DAY_SECONDS + found
        mask &= (1 << today.day) - 1
        for _ in range(_SEARCH_MONTHS):
            if mask:
                return self._midnight(index, mask.bit_length() - 1) + self._minutes[-1] * 60 + self._seconds[-1]
            index -= 1
            if index < 12:
                return None
            mask = self._month_mask(index)
        return None

    def matches(self, wall: int) -> bool:
        """True if a wall-clock second matches."""
        return self.at_or_after(wall) == wall

    def _time_at_or_after(self, second: int) -> int | None:
        minute, rest = divmod(second, 60)
        at = bisect_left(self._minutes, minute)
        if at < len(self._minutes) and self._minutes[at] == minute:
            within = bisect_left(self._seconds, rest)
            if within < len(self._seconds):
                return minute * 60 + self._seconds[within]
            at += 1
        return self._minutes[at] * 60 + self._seconds[0] if at < len(self._minutes) else None

    def _time_at_or_before(self, second: int) -> int | None:
        minute, rest = divmod(second, 60)
        at = bisect_right(self._minutes, minute) - 1
        if at >= 0 and self._minutes[at] == minute:
            within = bisect_right(self._seconds, rest) - 1
            if within >= 0:
                return minute * 60 + self._seconds[within]
            at -= 1
        return self._minutes[at] * 60 + self._seconds[-1] if at >= 0 else None

    @staticmethod
    def _midnight(index: int, day: int) -> int:
        return (date(index // 12, index % 12 + 1, day).toordinal() - EPOCH_ORDINAL) * DAY_SECONDS

    def _month_mask(self, index: int) -> int:
        """A bit mask: bit n is set if day n of month `index` (year * 12 + month - 1) matches."""
        mask = self._days.get(index)
        if mask is None:
            if len(self._days) > 1024:
                self._days.clear()
            mask = self._days[index] = self._make_month_mask(index // 12, index % 12 + 1)
        return mask

    def _make_month_mask(self, year: int, month: int) -> int:
        if month not in self._months or (self._years is not None and year not in self._years):
            return 0
        length = month_length(year, month)
        first_weekday = date(year, month, 1).isoweekday() % 7
        whole = (1 << (length + 1)) - 2
        by_day = whole
        if not self._day.star:
            by_day = sum(1 << d for d in self._day.values) & whole
            if self._day.last_day:
                by_day |= 1 << length
        if self._day.near:
            by_day = 1 << _nearest_working_day(self._day.near, first_weekday, length)
        if self._weekday.nth:
            by_weekday = _nth_mask(self._weekday.nth, first_weekday, length)
            both = not self._day.near and not self._day.star and not self._weekday.star
            return by_weekday if both else by_day & by_weekday
        if self._weekday.star or self._day.near:
            return by_day
        by_weekday = sum(1 << d for d in range(1, length + 1) if (first_weekday + d - 1) % 7 in self._weekday.values)
        return by_weekday if self._day.star else by_day | by_weekday


def _nth_mask(nth: frozenset[tuple[int, int]], first_weekday: int, length: int) -> int:
    mask = 0
    for weekday, which in nth:
        first = 1 + (weekday - first_weekday) % 7
        day = first + 7 * ((length - first) // 7 if which == 0 else which - 1)
        if day <= length:
            mask |= 1 << day
    return mask


def _nearest_working_day(day: int, first_weekday: int, length: int) -> int:
    """The day from Monday to Friday that is nearest to `day`, in the same month."""
    day = min(day, length)
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


# --- parsing --------------------------------------------------------------------------------------------------------


def _field_error(text: str, index: int, value: str, why: str) -> ScheduleError:
    return ScheduleError(f"Cron expression {text!r}: the {_FIELDS[index].name} field is {value!r}; {why}")


def _valid(index: int) -> str:
    field = _FIELDS[index]
    names = ""
    if field.names:
        ordered = list(field.names)
        names = f" or {ordered[0]} to {ordered[-1]}"
    return f"it must be {field.low} to {field.high}{names}"


def _number(text: str, index: int, word: str) -> int:
    """One value of a field, given as number or name.

    Raises:
        ScheduleError: not a valid number or name of this field.
    """
    field = _FIELDS[index]
    if word.isascii() and word.isdigit():
        value = int(word)
        if index == _WEEKDAY and value == 7:
            return 0
        if field.low <= value <= field.high:
            return value
        raise _field_error(text, index, word, _valid(index) + ".")
    if word in field.names:
        return field.names[word]
    raise _field_error(text, index, word, f"{_valid(index)}.{did_you_mean(word, field.names)}")


def _expand_range(text: str, index: int, low: int, high: int, step: int, part: str) -> list[int]:
    """The values of a range. It may wrap around; a range from a value to itself means all values."""
    field = _FIELDS[index]
    if step < 1:
        raise _field_error(text, index, part, "a step must be at least 1.")
    if low == high:
        return list(range(field.low, field.high + 1, step))
    if low < high:
        return list(range(low, high + 1, step))
    upper = list(range(low, field.high + 1, step))
    left_over = field.high - upper[-1]
    # one more than expected, as in Airflow: 50-10/15 means minutes 50 and 6, not 50 and 5
    skip = step - left_over if step > left_over + 1 else 0
    return upper + list(range(field.low + skip, high + 1, step))


def _read_range(text: str, index: int, part: str) -> list[int] | None:
    """The values of `a-b`, `a-b/s`, `a/s`, `*/s`; None if `part` is a single value."""
    field = _FIELDS[index]
    stepped = _STEP.fullmatch(part)
    if stepped:
        step = int(stepped[2])
        if step < 1:
            raise _field_error(text, index, part, "a step must be at least 1.")
        low = field.low if stepped[1] == "*" else _number(text, index, stepped[1])
        return list(range(low, field.high + 1, step))
    ranged = _RANGE.fullmatch(part)
    if not ranged:
        return None
    first, last, step_text = ranged.groups()
    if index == _DAY and last == "l":
        last = "31"
    low, high = (_number(text, index, word) for word in (first, last))
    return _expand_range(text, index, low, high, int(step_text) if step_text else 1, part)


def _read_nth(text: str, part: str) -> set[tuple[int, int]] | None:
    """(weekday, week) of `fri#2`, `mon-wed#1`, `L5`; None if `part` has none of these forms."""
    last = _LAST.fullmatch(part)
    if last:
        return {(_number(text, _WEEKDAY, last[1]), 0)}
    nth = _NTH.fullmatch(part)
    if not nth:
        return None
    which = int(nth[2])
    if not 1 <= which <= 5:
        raise _field_error(text, _WEEKDAY, part, "the number after # must be 1 to 5.")
    days = _read_range(text, _WEEKDAY, nth[1])
    if days is None:
        days = [_number(text, _WEEKDAY, nth[1])]
    return {(day, which) for day in days}


def _read_column(text: str, columns: tuple[str, ...], index: int) -> Values:
    column = columns[index]
    field = _FIELDS[index]
    everything = frozenset(range(field.low, field.high + 1))
    if "?" in column:
        if column != "?" or index not in (_DAY, _WEEKDAY):
            raise _field_error(
                text, index, column, "? must stand alone, and only in the fields day of the month and day of the week."
            )
        return Values(everything, True)
    if index == _DAY and (near := _NEAR.fullmatch(column)):
        day = _number(text, index, near[1] or near[2])
        return Values(frozenset({day}), False, near=day)
    values: set[int] = set()
    nth: set[tuple[int, int]] = set()
    star = last_day = False
    for part in column.split(","):
        if part == "*":
            star = True
        elif index == _DAY and part == "l":
            last_day = True
        elif index == _WEEKDAY and (found := _read_nth(text, part)) is not None:
            nth |= found
        elif (spread := _read_range(text, index, part)) is not None:
            values |= set(spread)
        else:
            values.add(_number(text, index, part))
    if nth and values - {day for day, _ in nth} and len(values | {day for day, _ in nth}) < 7:
        raise _field_error(text, index, column, "weekdays such as fri and fri#2 cannot be combined.")
    covered = values | {day for day, _ in nth}
    if covered >= everything and not last_day:
        # a list of all values is the same as *, unless that would turn "one of the two days must match" into "this day must match"
        other = {_DAY: _WEEKDAY, _WEEKDAY: _DAY}.get(index)
        star = star or other is None or "*" in columns[other]
    return Values(everything if star else frozenset(covered), star, last_day, frozenset(nth))


def _check_day_beside_nth(cron: CronExpression) -> None:
    """Refuse a day of the month together with `fri#2` if the two never coincide: Airflow fails at each scheduling of such a DAG."""
    day, weekday = cron.fields[_DAY], cron.fields[_WEEKDAY]
    if not weekday.nth or day.star or day.near or weekday.star:
        return
    days = day.values | ({28, 29, 30, 31} if day.last_day else set())
    for _, which in weekday.nth:
        near = range(22, 32) if which == 0 else range(7 * which - 6, 7 * which + 1)
        if not days.isdisjoint(near):
            return
    raise _field_error(
        cron.text,
        _DAY,
        cron.columns[_DAY],
        f"together with {cron.columns[_WEEKDAY]!r} the day of the month must be *, because it has no effect.",
    )


@lru_cache(maxsize=8192)
def compile_cron(expression: str) -> CronExpression:
    """Compile a cron expression or preset (`@daily`).

    Raises:
        ScheduleError: the expression is invalid, or no date ever matches it. The message names the field, its value and the valid
            values.
    """
    text = expression.strip()
    lowered = text.lower()
    if lowered.startswith("@"):
        if lowered not in PRESETS:
            hint = did_you_mean(lowered, [*PRESETS, "@once", "@continuous"])
            raise ScheduleError(f"{text!r} is not a schedule preset.{hint} The presets are {', '.join(PRESETS)}.")
        lowered = PRESETS[lowered]
    columns = tuple(lowered.split())
    if not 5 <= len(columns) <= 7:
        close = nearest("@" + lowered, PRESETS) if len(columns) == 1 else None
        hint = f" Did you mean {close!r}?" if close else ""
        count = "1 field" if len(columns) == 1 else f"{len(columns)} fields"
        raise ScheduleError(
            f"Cron expression {text!r} has {count}; it needs 5 (minute, hour, day of the month, month, "
            f"day of the week), 6 (then second) or 7 (then year), or a preset such as @daily.{hint}"
        )
    compiled = CronExpression(text, columns)
    _check_day_beside_nth(compiled)
    half_century = _SEARCH_MONTHS // 12 * 366 * DAY_SECONDS
    if all(compiled.at_or_after(start) is None for start in (0, half_century, 2 * half_century)):
        raise ScheduleError(
            f"Cron expression {text!r} never matches: the months ({columns[_MONTH]}) do not have such days ({columns[_DAY]}). "
            "For the last day of each month, use L."
        )
    return compiled
