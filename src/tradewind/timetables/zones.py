"""Time zones as tables of constant offsets.

`zoneinfo` gives the offset at an instant, but not the next change of the offset, which schedules need. Therefore each zone stores,
for each UTC year, the instants at which its offset changes. The table of a year takes about 0.2 ms once; after that a look-up is
one bisection.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple

from tradewind.model.errors import ScheduleError, did_you_mean

DAY_SECONDS = 86_400
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

_MARGIN = 3 * DAY_SECONDS
"""How far the table of a year extends beyond its ends. A change moves the clock by at most 24 hours (Apia skipped a day)."""

_FIXED = re.compile(r"(?:(?:UTC|GMT)\s*)?([+-])(\d{1,2}):?(\d{2})?(?::?(\d{2}))?", re.IGNORECASE)


class OffsetPeriod(NamedTuple):
    """A period with one offset. All fields are seconds; instants are seconds since the epoch, UTC.

    `before` and `after` are the offsets of the adjacent periods (the own offset at the ends of the table).
    """

    start: int
    end: int
    offset: int
    before: int
    after: int


def year_start(year: int) -> int:
    """First second of a UTC year, in seconds since the epoch."""
    return (date(year, 1, 1).toordinal() - EPOCH_ORDINAL) * DAY_SECONDS


def year_of(second: int) -> int:
    """UTC year of an instant given in seconds."""
    return date.fromordinal(second // DAY_SECONDS + EPOCH_ORDINAL).year


class Zone:
    """A named time zone or a fixed offset.

    `fixed` is the offset in seconds if it never changes, else None.
    """

    __slots__ = ("_years", "fixed", "name", "tz")

    def __init__(self, name: str, tz: tzinfo, fixed: int | None) -> None:
        self.name = name
        self.tz = tz
        self.fixed = fixed
        self._years: dict[int, tuple[list[int], list[int]]] = {}

    def offset_at(self, second: int) -> int:
        """Seconds east of UTC at an instant."""
        if self.fixed is not None:
            return self.fixed
        shift = datetime.fromtimestamp(second, self.tz).utcoffset()
        assert shift is not None
        return shift // timedelta(seconds=1)

    def period_at(self, second: int) -> OffsetPeriod:
        """The period around an instant. If no change is near, its ends are the ends of the year's table."""
        year = year_of(second)
        table = self._years.get(year)
        if table is None:
            table = self._years[year] = self._changes(year)
        starts, offsets = table
        index = bisect_right(starts, second) - 1
        offset = offsets[index]
        last = index + 1 == len(starts)
        return OffsetPeriod(
            starts[index],
            year_start(year + 1) + _MARGIN if last else starts[index + 1],
            offset,
            offsets[index - 1] if index else offset,
            offset if last else offsets[index + 1],
        )

    def _changes(self, year: int) -> tuple[list[int], list[int]]:
        """Starts and offsets of the periods of one year. Steps of one day suffice: no zone has two changes in a day."""
        at, end = year_start(year) - _MARGIN, year_start(year + 1) + _MARGIN
        offset = self.offset_at(at)
        starts, offsets = [at], [offset]
        while at < end:
            following = at + DAY_SECONDS
            new = self.offset_at(following)
            if new != offset:
                low, high = at, following
                while high - low > 1:
                    middle = (low + high) // 2
                    if self.offset_at(middle) == offset:
                        low = middle
                    else:
                        high = middle
                if high < end:
                    starts.append(high)
                    offsets.append(self.offset_at(high))
                offset = new
            at = following
        return starts, offsets


@lru_cache(maxsize=1024)
def zone(name: str) -> Zone:
    """The time zone with this name: a name of the tz database, `UTC`, or a fixed offset such as `+02:00`.

    Raises:
        ScheduleError: there is no such time zone; the message names the closest one.
    """
    if name.upper() in ("UTC", "Z", "GMT"):
        return Zone(name, UTC, 0)
    matched = _FIXED.fullmatch(name.strip())
    if matched:
        sign, hours, minutes, seconds = matched.groups()
        total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        if total >= DAY_SECONDS or int(minutes or 0) > 59 or int(seconds or 0) > 59:
            raise ScheduleError(f"{name!r} is not an offset from UTC; write it like +02:00, at most ±23:59")
        total = -total if sign == "-" else total
        return Zone(name, timezone(timedelta(seconds=total)), total)
    from zoneinfo import ZoneInfo, available_timezones  # lazy import: takes 5 ms, not needed for a DAG file in UTC

    try:
        return Zone(name, ZoneInfo(name), None)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError; a directory name is an OSError
        hint = did_you_mean(name, available_timezones())
        raise ScheduleError(f"{name!r} is not a time zone.{hint} Use a name like Europe/Paris, or UTC.") from None
