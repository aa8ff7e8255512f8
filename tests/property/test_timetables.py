"""Fire moments against a reference that looks at every minute.

The reference shares nothing with the calendars but `zoneinfo`: it asks of each minute of a few days what the wall clock
shows, and decides by the words of the rule. Windows are put around changes of the clock, in every zone of the tz database.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tradewind.model.definition import CronSchedule, Delta, DeltaSchedule
from tradewind.model.moments import DAY, MINUTE, to_micros
from tradewind.timetables import Bounds, RunTimes, next_run
from tradewind.timetables.ticks import ticks

ZONES = sorted(name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "posix/", "right/")))


@dataclass(frozen=True)
class Column:
    """One column as text and as the set it stands for; `star` when it is unrestricted."""

    text: str
    values: frozenset[int]
    star: bool = False


def columns(low: int, high: int, *, sparse: bool) -> st.SearchStrategy[Column]:
    full = frozenset(range(low, high + 1))
    star = st.just(Column("*", full, True))
    listed = st.frozensets(st.integers(low, high), min_size=1, max_size=min(4, high - low)).map(
        lambda values: Column(",".join(map(str, sorted(values))), values)
    )
    stepped = st.integers(2, max(2, (high - low) // 2)).map(
        lambda step: Column(f"*/{step}", frozenset(range(low, high + 1, step)))
    )
    # Never the whole column written out: that is read as `*` or not by a rule of its own (see the unit tests).
    ranged = st.tuples(st.integers(low, high - 1), st.integers(1, 5)).map(
        lambda pair: Column(
            f"{pair[0]}-{min(high, pair[0] + pair[1])}", frozenset(range(pair[0], min(high, pair[0] + pair[1]) + 1))
        )
    )
    if sparse:
        return st.one_of(star, star, star, listed, stepped, ranged)
    return st.one_of(star, listed, stepped, ranged)


expressions = st.tuples(
    columns(0, 59, sparse=False),
    columns(0, 23, sparse=False),
    columns(1, 31, sparse=True),
    columns(1, 12, sparse=True),
    columns(0, 6, sparse=True),
)


@lru_cache(maxsize=100_000)
def _offset(zone: str, moment: datetime) -> timedelta:
    offset = moment.astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return offset


@lru_cache(maxsize=1000)
def changes(zone: str, year: int) -> list[datetime]:
    """The days of a year after which the clock shows another offset."""
    days = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(366)]
    return [day for day, following in itertools.pairwise(days) if _offset(zone, day) != _offset(zone, following)]


def named(cron: tuple[Column, ...], wall: datetime) -> bool:
    """Whether the expression names this wall-clock minute."""
    minute, hour, day, month, weekday = cron
    if wall.minute not in minute.values or wall.hour not in hour.values or wall.month not in month.values:
        return False
    in_day, in_week = wall.day in day.values, wall.isoweekday() % 7 in weekday.values
    if day.star or weekday.star:
        return in_day and in_week
    return in_day or in_week


def reference(cron: tuple[Column, ...], zone: str, begin: datetime, minutes: int) -> list[int]:
    """Every fire moment of the window [begin, begin + minutes), found minute by minute."""
    tz = ZoneInfo(zone)
    found: set[datetime] = set()
    start = begin - timedelta(days=1, minutes=1)
    before: datetime | None = None
    moment = start
    while moment < begin + timedelta(minutes=minutes):
        local = moment.astimezone(tz)
        wall = local.replace(tzinfo=None)
        if named(cron, wall):
            again = local.replace(fold=1).utcoffset() != local.replace(fold=0).utcoffset()
            if cron[1].star or not again or local.fold == 1:
                found.add(moment)
        if before is not None and not cron[1].star and wall - before > timedelta(minutes=1):
            left_out = before + timedelta(minutes=1)
            while left_out < wall and not named(cron, left_out):
                left_out += timedelta(minutes=1)
            if left_out < wall:
                found.add(moment + (left_out - before - timedelta(minutes=1)))
        before = wall
        moment += timedelta(minutes=1)
    return sorted(to_micros(m) for m in found if begin <= m < begin + timedelta(minutes=minutes))


@st.composite
def windows(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone and a day, mostly one near a change of its clock."""
    zone = draw(st.sampled_from(ZONES))
    year = draw(st.integers(1990, 2030))
    near = changes(zone, year)
    if near and draw(st.integers(0, 5)) > 0:
        day = draw(st.sampled_from(near)) - timedelta(days=draw(st.integers(0, 2)))
    else:
        day = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=draw(st.integers(0, 360)))
    return zone, day + timedelta(minutes=draw(st.integers(0, 1439)))


def _fixed(minute: str, hour: str) -> tuple[Column, ...]:
    def column(text: str, low: int, high: int) -> Column:
        if text == "*":
            return Column("*", frozenset(range(low, high + 1)), True)
        return Column(text, frozenset(int(part) for part in text.split(",")))

    return (
        column(minute, 0, 59),
        column(hour, 0, 23),
        column("*", 1, 31),
        column("*", 1, 12),
        column("*", 0, 6),
    )


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(expressions, windows())
@example(_fixed("30", "2"), ("Europe/Paris", datetime(2024, 3, 30, tzinfo=UTC)))
@example(_fixed("0,30", "1,2"), ("Europe/Paris", datetime(2024, 10, 26, tzinfo=UTC)))
@example(_fixed("15", "*"), ("Australia/Lord_Howe", datetime(2024, 10, 5, tzinfo=UTC)))
@example(_fixed("15,35", "2"), ("Australia/Lord_Howe", datetime(2024, 10, 5, tzinfo=UTC)))
@example(_fixed("0,45", "1"), ("Australia/Lord_Howe", datetime(2024, 4, 6, tzinfo=UTC)))
@example(_fixed("15", "8"), ("Pacific/Apia", datetime(2011, 12, 29, tzinfo=UTC)))
@example(_fixed("0", "*"), ("Pacific/Apia", datetime(2011, 12, 29, tzinfo=UTC)))
@example(_fixed("30", "1,2"), ("Antarctica/Troll", datetime(2024, 3, 30, tzinfo=UTC)))
@example(_fixed("30", "*"), ("Antarctica/Troll", datetime(2024, 10, 26, tzinfo=UTC)))
def test_fire_moments_equal_a_minute_by_minute_reference(cron: tuple[Column, ...], window: tuple[str, datetime]) -> None:
    zone, begin = window
    minutes = 2 * 1440 + 600
    expected = reference(cron, zone, begin, minutes)
    if not any(column.star for column in cron[2:]) and not cron[2].values & set(range(1, 30)):
        return  # may name no date at all, which is refused: see the unit tests
    text = " ".join(column.text for column in cron)
    clock = ticks(text, zone)
    first, end = to_micros(begin), to_micros(begin) + minutes * MINUTE
    forward: list[int] = []
    moment = clock.at_or_after(first)
    while moment is not None and moment < end:
        forward.append(moment)
        moment = clock.after(moment)
        assert moment is None or moment > forward[-1]
    assert forward == expected
    backward: list[int] = []
    moment = clock.before(end)
    while moment is not None and moment >= first:
        backward.append(moment)
        moment = clock.before(moment)
    assert backward[::-1] == expected
    for tick in expected[:3]:
        assert clock.at_or_before(tick) == clock.at_or_after(tick) == tick
        assert clock.before(clock.after(tick) or 0) == tick


SWEEP = [_fixed("30", "1,2,3"), _fixed("0,20,40", "*"), _fixed("0", "0")]


@pytest.mark.parametrize("year", [1999, 2026])
def test_every_zone_of_the_database_keeps_the_rule_on_the_days_of_its_changes(year: int) -> None:
    """Each change of each clock in a year, not a sample of them."""
    seen: set[tuple[object, ...]] = set()
    checked = 0
    for zone in ZONES:
        for day in changes(zone, year):
            # zones that share a change share its reference
            offsets = tuple(_offset(zone, day + timedelta(minutes=minute)) for minute in range(-1440, 2881, 15))
            if (day, offsets) in seen:
                continue
            seen.add((day, offsets))
            for cron in SWEEP:
                expected = reference(cron, zone, day, 1440)
                clock = ticks(" ".join(column.text for column in cron), zone)
                found: list[int] = []
                moment = clock.at_or_after(to_micros(day))
                while moment is not None and moment < to_micros(day) + DAY:
                    found.append(moment)
                    moment = clock.after(moment)
                assert found == expected, (zone, day, cron)
                checked += 1
    assert checked > 50


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(expressions, windows(), st.sampled_from(["trigger", "data"]))
def test_catchup_gives_a_run_at_every_moment_of_the_reference(
    cron: tuple[Column, ...], window: tuple[str, datetime], kind: str
) -> None:
    """None is left out and none made up, where clocks are changed too; data intervals lie between neighbouring ticks."""
    zone, begin = window
    expected = reference(cron, zone, begin, 1440)
    if not expected or (not any(column.star for column in cron[2:]) and not cron[2].values & set(range(1, 30))):
        return
    schedule = CronSchedule((" ".join(column.text for column in cron),), zone, interval_kind=kind)
    bounds, now = Bounds(to_micros(begin), None, catchup=True), to_micros(begin) + DAY
    runs: list[RunTimes] = []
    run = next_run(schedule, None, bounds, now)
    while run is not None and run.logical_date is not None and run.logical_date < now:
        runs.append(run)
        run = next_run(schedule, run, bounds, now)
    assert [run.logical_date for run in runs] == expected
    if kind == "data":
        assert [run.end for run in runs[:-1]] == expected[1:]


deltas = st.builds(
    Delta,
    micros=st.integers(1, 40 * DAY),
    parts=st.sampled_from([(), (("months", 1),), (("months", 5), ("years", 1))]),
)


@st.composite
def schedules(draw: st.DrawFn) -> CronSchedule | DeltaSchedule:
    kind = draw(st.sampled_from(["trigger", "data"]))
    interval = draw(deltas) if kind == "trigger" and draw(st.booleans()) else Delta()
    if draw(st.booleans()):
        return DeltaSchedule(draw(deltas), interval_kind=kind, interval=interval)
    texts = ["*/5 * * * *", "30 2 * * *", "@hourly", "15 */6 * * mon-fri", "0 0 L * *", "0 12 * * fri#2", "@quarterly"]
    return CronSchedule(
        tuple(draw(st.lists(st.sampled_from(texts), min_size=1, max_size=3))),
        draw(st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "+05:30"])),
        interval_kind=kind,
        interval=interval,
        run_immediately=draw(st.sampled_from([True, False, None, 3600 * 1_000_000])),
    )


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    schedules(),
    st.integers(0, 400 * DAY),
    st.one_of(st.none(), st.integers(-400 * DAY, 100 * DAY)),
    st.booleans(),
    st.integers(0, 20 * DAY),
)
def test_runs_move_forward_and_join(
    schedule: CronSchedule | DeltaSchedule, now_offset: int, start_offset: int | None, catchup: bool, pause: int
) -> None:
    """Logical dates increase, intervals are never reversed, data intervals join, and end dates end the schedule."""
    now = to_micros(datetime(2024, 3, 1, tzinfo=UTC)) + now_offset
    earliest = None if start_offset is None else now + start_offset
    latest = now + 500 * DAY
    bounds = Bounds(earliest, latest, catchup and earliest is not None)
    last: RunTimes | None = None
    clock = now
    for _ in range(12):
        run = next_run(schedule, last, bounds, clock)
        if run is None:
            break
        assert run.logical_date is not None
        assert run.start is not None
        assert run.end is not None
        assert run.logical_date == run.start <= run.end == run.run_after
        assert run.start <= latest
        if last is not None:
            assert last.logical_date is not None
            assert last.end is not None
            assert run.logical_date > last.logical_date
            assert run.run_after > last.run_after
            if schedule.interval_kind == "data":
                assert run.start == last.end if bounds.catchup else run.start >= last.end
        if earliest is not None:
            assert run.run_after >= earliest
        if schedule.interval_kind == "data":
            assert run.start < run.end
        last = run
        clock = max(clock, run.run_after) + pause
