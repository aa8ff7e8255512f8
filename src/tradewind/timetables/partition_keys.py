"""Translates between the partition keys of asset events and those of the runs that consume the events, by Airflow's rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any, assert_never

from tradewind.model.errors import ScheduleError
from tradewind.model.moments import to_micros
from tradewind.model.partitions import (
    MOST_KEYS,
    Allowed,
    Chain,
    Custom,
    FanOut,
    Fixed,
    Identity,
    Mapper,
    PartitionRules,
    Product,
    Rollup,
    SegmentWindow,
    StartOf,
    TimeWindow,
    Unit,
    Unsupported,
    Window,
)
from tradewind.timetables.zones import zone

_DIRECTIVES = {"Y": r"\d{4}", **dict.fromkeys("mdHMSVUW", r"\d{2}")}
_QUARTER = "{quarter}"


class PartitionKeyError(ValueError):
    """A key that a mapper does not accept."""


def downstream_keys(mapper: Mapper, key: str) -> list[str]:
    """Return the downstream keys for the key of an event, each once, in the mapper's order.

    Raises:
        PartitionKeyError: the mapper does not accept the key, or the key gives too many keys.
    """
    try:
        found = list(dict.fromkeys(_downstream(mapper, key)))
    except (ValueError, TypeError, OverflowError) as error:
        raise PartitionKeyError(f"the mapper {shown(mapper)} does not accept the partition key {key!r}: {error}") from error
    most = MOST_KEYS if mapper.most is None else mapper.most
    if len(found) > most:
        raise PartitionKeyError(
            f"the mapper {shown(mapper)} gives {len(found)} keys for the partition key {key!r}; at most {most} are allowed"
            f" (max_downstream_keys)"
        )
    return found


def _downstream(mapper: Mapper, key: str) -> list[str]:
    match mapper:
        case Identity():
            return [key]
        case Fixed():
            return [mapper.key]
        case Allowed():
            if key not in mapper.keys:
                raise ValueError(f"the allowed keys are {', '.join(mapper.keys)}")
            return [key]
        case StartOf():
            return [formatted(mapper, _start(mapper.unit, _localized(mapper, key)))]
        case Product():
            return [_product(mapper, key)]
        case Chain():
            keys = [key]
            for part in mapper.of:
                keys = [made for one in keys for made in _downstream(part, one)]
            return keys
        case FanOut():
            coarse = _single_key(mapper.upstream, key)
            return [formatted(mapper.downstream, part) for part in parts(mapper.window, decoded(mapper.upstream, coarse))]
        case Rollup():
            return _downstream(mapper.upstream, key)
        case Unsupported():
            raise ValueError(f"the class {mapper.name} was not known when its DAG file was read; it is read again")
        case Custom():
            raise ValueError(f"the class {mapper.name} is user code, which can run only in a child process")
        case _:
            assert_never(mapper)


def _single_key(mapper: Mapper, key: str) -> str:
    found = _downstream(mapper, key)
    if len(found) != 1:
        raise TypeError(f"{shown(mapper)} gives {len(found)} keys here, where one is needed")
    return found[0]


def _product(mapper: Product, key: str) -> str:
    texts = key.split(mapper.delimiter)
    if len(texts) != len(mapper.of):
        raise ValueError(f"it has {len(texts)} parts between {mapper.delimiter!r}; {len(mapper.of)} are expected")
    return mapper.delimiter.join(_single_key(one, part) for one, part in zip(mapper.of, texts, strict=True))


def expected_keys(mapper: Rollup, key: str) -> frozenset[str]:
    """Return the keys of events that make up a downstream key.

    Raises:
        PartitionKeyError: the mapper does not accept the key.
    """
    try:
        wanted_parts = parts(mapper.window, decoded(mapper.upstream, key))
        return frozenset(encoded(mapper.upstream, part) for part in wanted_parts)
    except (ValueError, TypeError, OverflowError) as error:
        raise PartitionKeyError(f"the mapper {shown(mapper)} does not accept the partition key {key!r}: {error}") from error


def enough(mapper: Rollup, key: str, arrived: Iterable[str]) -> bool:
    """Return whether enough keys of events have come for the run of a downstream key. Raises PartitionKeyError."""
    expected = expected_keys(mapper, key)
    return not expected - set(arrived) if mapper.minimum is None else len(expected & set(arrived)) >= needed(mapper, expected)


def needed(mapper: Rollup, expected: frozenset[str]) -> int:
    """Return how many of the expected keys have to come. The number may be greater than `expected`; then the run never starts."""
    return needed_of(mapper.minimum, len(expected))


def needed_of(minimum: int | None, expected: int) -> int:
    """Return how many of so many expected keys have to come. `minimum`: as in `Rollup`."""
    if minimum is None:
        return expected
    return minimum if minimum > 0 else max(0, expected + minimum)


def key_date(mapper: Mapper, key: str) -> int | None:
    """Return the moment of a downstream key in microseconds; None for a key without a date. Raises PartitionKeyError."""
    try:
        return _date(mapper, key)
    except (ValueError, TypeError, OverflowError) as error:
        raise PartitionKeyError(f"the mapper {shown(mapper)} does not accept the partition key {key!r}: {error}") from error


def _date(mapper: Mapper, key: str) -> int | None:
    match mapper:
        case StartOf():
            start = _start(mapper.unit, decoded(mapper, key))
            return to_micros(start if start.tzinfo is not None else aware(start, zone(mapper.timezone).tz))
        case Product():
            texts = key.split(mapper.delimiter)
            if len(texts) != len(mapper.of):
                return None
            dates = [found for one, part in zip(mapper.of, texts, strict=True) if (found := _date(one, part)) is not None]
            return dates[0] if len(dates) == 1 else None
        case Chain():
            return _date(mapper.of[-1], key)
        case FanOut():
            return _date(mapper.downstream, key)
        case Rollup():
            return _date(mapper.upstream, key)
        case _:
            return None


def run_date(
    rules: PartitionRules, assets: Iterable[tuple[str, str]], key: str, carried: Iterable[int], said: Iterable[int] = ()
) -> int | None:
    """Return the partition date of the run for a key; None if there is none, or if the assets give different dates.

    Args:
        assets: name and URI of each asset whose events the run consumes.
        carried: the partition dates of those events whose mapper does not change the key.
        said: the dates that mappers of users have given.
    """
    try:
        dates = {found for asset in assets if (found := key_date(rules.mapper(*asset), key)) is not None}
    except PartitionKeyError:
        return None
    dates.update(said)
    moments = dates or set(carried)
    return next(iter(moments)) if len(moments) == 1 else None


def decoded(mapper: Mapper, key: str) -> Any:
    """Return the value of a downstream key: a datetime without zone for the beginning of a period, else the key itself."""
    if not isinstance(mapper, StartOf):
        return key
    if mapper.unit == "week":
        found = key_pattern(mapper.output_format).search(key)
        if found is None or not {"Y", "m", "d"} <= found.groupdict().keys():
            raise ValueError(f"{mapper.output_format!r} does not say the day; it must contain %Y, %m and %d")
        return datetime(int(found["Y"]), int(found["m"]), int(found["d"]))  # noqa: DTZ001 (as below)
    if mapper.unit == "quarter":
        found = key_pattern(mapper.output_format).search(key)
        if found is None or not {"Y", "quarter"} <= found.groupdict().keys():
            raise ValueError(f"{mapper.output_format!r} does not say the quarter; it must contain %Y and {_QUARTER}")
        return datetime(int(found["Y"]), int(found["quarter"]) * 3 - 2, 1)  # noqa: DTZ001 (as below)
    return datetime.strptime(key, mapper.output_format)  # noqa: DTZ007 (a reading of a clock; `aware` puts it into a zone)


def encoded(mapper: Mapper, part: Any) -> str:
    """Return the key of an event for a decoded value."""
    if not isinstance(mapper, StartOf):
        return str(part)
    tz = zone(mapper.timezone).tz
    local = part if part.tzinfo is None else part.astimezone(tz).replace(tzinfo=None)
    return aware(local, tz).strftime(mapper.input_format)


def formatted(mapper: Mapper, moment: Any) -> str:
    """Return the downstream key for a part of a window."""
    if isinstance(mapper, StartOf):
        text: str = moment.strftime(mapper.output_format)
        return text.format(quarter=(moment.month - 1) // 3 + 1) if mapper.unit == "quarter" else text
    return moment.isoformat() if isinstance(moment, datetime) else str(moment)


def _localized(mapper: StartOf, key: str) -> datetime:
    moment = datetime.strptime(key, mapper.input_format)  # noqa: DTZ007 (as above)
    tz = zone(mapper.timezone).tz
    return aware(moment, tz) if moment.tzinfo is None else moment.astimezone(tz)


def aware(wall: datetime, tz: tzinfo) -> datetime:
    """Add the time zone to a local time: of a repeated time the later one; a skipped time is moved forward, as in Airflow."""
    later = wall.replace(tzinfo=tz, fold=1)
    if later.astimezone(UTC).astimezone(tz).replace(tzinfo=None, fold=0) == wall.replace(fold=0):
        return later
    return wall.replace(tzinfo=tz, fold=0).astimezone(UTC).astimezone(tz)


def _start(unit: Unit, moment: datetime) -> datetime:
    hour = moment.replace(minute=0, second=0, microsecond=0)
    if unit == "hour":
        return hour
    day = hour.replace(hour=0)
    match unit:
        case "day":
            return day
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            assert_never(unit)


_STEPS: dict[str, tuple[int, timedelta | None]] = {
    "hour": (60, timedelta(minutes=1)),
    "day": (24, timedelta(hours=1)),
    "week": (7, timedelta(days=1)),
    "quarter": (3, None),
    "year": (12, None),
}
"""How many parts a window has, and their length; None: a month. The number of days of a month differs."""


def parts(window: Window, anchor: Any) -> list[Any]:
    """Return the parts of a window that begins, or ends, at a moment. Raises ValueError: it cannot begin there."""
    if isinstance(window, SegmentWindow):
        return list(window.segments)
    assert isinstance(window, TimeWindow)
    if window.unit in ("month", "quarter", "year") and anchor.day != 1:
        raise ValueError(f"a window of a {window.unit} begins on day 1 of a month, not on {anchor.isoformat()}")
    if window.unit == "month":
        before = _months(anchor, -1)
        if window.backward:  # from the second day of the previous month up to this day
            return [before + timedelta(days=number + 1) for number in range((anchor - before).days)]
        return [anchor + timedelta(days=number) for number in range((_months(anchor, 1) - anchor).days)]
    count, length = _STEPS[window.unit]
    first = 1 - count if window.backward else 0
    numbers = range(first, first + count)
    return [_months(anchor, number) if length is None else anchor + number * length for number in numbers]


def _months(moment: datetime, count: int) -> datetime:
    total = moment.month - 1 + count
    return moment.replace(year=moment.year + total // 12, month=total % 12 + 1)


@lru_cache(maxsize=256)
def key_pattern(output_format: str) -> re.Pattern[str]:
    """Return the pattern of the keys that a format makes; a group for each directive and placeholder.

    Raises:
        ScheduleError: the format repeats a directive or a placeholder, or has a placeholder without a valid name.
    """
    text, seen, loose = "", set[str](), False
    for part in re.findall(r"%[YmdHMSVUW]|\{[^}]*\}|.", output_format, re.DOTALL):
        name = part[1] if part[0] == "%" and len(part) == 2 else part[1:-1] if part[0] == "{" and len(part) > 1 else None
        if name is None:
            text, loose = text + re.escape(part), False
            continue
        if not name.isidentifier():
            raise ScheduleError(f"output_format {output_format!r} has the placeholder {part}; its name must be an identifier")
        if name in seen:
            raise ScheduleError(f"output_format {output_format!r} has {part} twice")
        seen.add(name)
        free = part[0] == "{" and name != "quarter"
        if free and loose:
            raise ScheduleError(f"output_format {output_format!r} has two placeholders without a text between them")
        loose = free
        pattern = _DIRECTIVES[name] if part[0] == "%" else "[1-4]" if name == "quarter" else r"\w+"
        text += f"(?P<{name}>{pattern})"
    return re.compile(f"^{text}$")


def cron_key(moment: datetime, key_format: str) -> str:
    """Return the key of a partition date, which is a local time."""
    return moment.strftime(key_format)


def cron_key_date(key: str, key_format: str, timezone: str) -> int:
    """Return the partition date of a key of `CronPartitionTimetable`. Raises PartitionKeyError."""
    try:
        wall = datetime.strptime(key, key_format)  # noqa: DTZ007 (as above)
        return to_micros(aware(wall, zone(timezone).tz))
    except ValueError as error:
        raise PartitionKeyError(f"the partition key {key!r} does not match the key_format {key_format!r}: {error}") from error


def shown(mapper: Mapper) -> str:
    """Return Airflow's name of a mapper."""
    match mapper:
        case StartOf():
            return f"StartOf{mapper.unit.title()}Mapper"
        case Unsupported() | Custom():
            return mapper.name
        case Identity() | Fixed() | Allowed():
            return {Identity: "IdentityMapper", Fixed: "FixedKeyMapper", Allowed: "AllowedKeyMapper"}[type(mapper)]
        case _:
            return f"{type(mapper).__name__}Mapper"
