"""Every built-in timetable against an independent calendar, in every time zone: what a scheduler that looks now and then creates.

The reference walks minute by minute through the wall clock of `zoneinfo` (see test_timetables.py) and knows nothing of the
product. `make test` draws a fixed number of windows from a seed; TIMETABLE_SEED=… draws others, and the slow tests walk through
all of them.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest

from tests.property.test_timetables import Column, changes, reference
from tradewind.model.definition import CronSchedule, Delta, DeltaSchedule, EventsSchedule, OnceSchedule, Schedule
from tradewind.model.moments import DAY, MINUTE, to_micros
from tradewind.timetables import Bounds, RunTimes, next_run
from tradewind.timetables.ticks import ticks

SEED = int(os.environ.get("TIMETABLE_SEED", "20260101"))
ZONES = sorted(name for name in available_timezones() if not name.startswith(("posix/", "right/")) and name != "localtime")
FIRST_YEAR, LAST_YEAR = 1990, 2039
"""Beyond 2037 zones follow a rule instead of a table; 2038 is beyond 32 bits."""

SPECIAL = {
    "half an hour": ("Australia/Lord_Howe", datetime(2024, 10, 5, tzinfo=UTC)),
    "half an hour back": ("Australia/Lord_Howe", datetime(2024, 4, 6, tzinfo=UTC)),
    "a skipped day": ("Pacific/Apia", datetime(2011, 12, 29, tzinfo=UTC)),
    "another skipped day": ("Pacific/Kwajalein", datetime(1993, 8, 20, tzinfo=UTC)),
    "two hours": ("Antarctica/Troll", datetime(2024, 3, 30, tzinfo=UTC)),
    "two hours back": ("Antarctica/Troll", datetime(2024, 10, 26, tzinfo=UTC)),
    "Ramadan begins": ("Africa/Casablanca", datetime(2024, 3, 9, tzinfo=UTC)),
    "Ramadan ends": ("Africa/Casablanca", datetime(2024, 4, 13, tzinfo=UTC)),
    "winter time is the exception": ("Europe/Dublin", datetime(2024, 10, 26, tzinfo=UTC)),
    "a change at midnight": ("America/Havana", datetime(2024, 3, 9, tzinfo=UTC)),
    "a change at midnight, back": ("Asia/Beirut", datetime(2024, 10, 26, tzinfo=UTC)),
    "a change for good": ("Asia/Pyongyang", datetime(2018, 5, 3, tzinfo=UTC)),
    "three hours": ("Antarctica/Casey", datetime(2010, 3, 4, tzinfo=UTC)),
    "beyond the table": ("Europe/Paris", datetime(2039, 3, 26, tzinfo=UTC)),
    "beyond 32 bits": ("UTC", datetime(2038, 1, 18, tzinfo=UTC)),
}


class Window(NamedTuple):
    """Some days of a zone and the expressions that are looked at there."""

    zone: str
    begin: datetime
    minutes: int
    crons: tuple[tuple[Column, ...], ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(" ".join(column.text for column in cron) for cron in self.crons)

    def fires(self) -> list[int]:
        """By the reference: every moment at which one of them fires."""
        return sorted({at for cron in self.crons for at in reference(cron, self.zone, self.begin, self.minutes)})


def column(chance: Random, low: int, high: int, star: float) -> Column:
    full = frozenset(range(low, high + 1))
    roll = chance.random()
    if roll < star:
        return Column("*", full, True)
    if roll < star + (1 - star) / 3:
        step = chance.randint(2, max(2, (high - low) // 2))
        return Column(f"*/{step}", frozenset(range(low, high + 1, step)))
    values = frozenset(chance.sample(sorted(full), chance.randint(1, min(4, len(full) - 1))))
    return Column(",".join(map(str, sorted(values))), values)


def expression(chance: Random) -> tuple[Column, ...]:
    """Mostly of hours and minutes: that is where clocks are changed."""
    everyday = [Column("*", frozenset(range(low, high + 1)), True) for low, high in ((1, 31), (1, 12), (0, 6))]
    if chance.random() < 0.3:
        everyday[2] = column(chance, 0, 6, 0.2)
    return (column(chance, 0, 59, 0.1), column(chance, 0, 23, 0.3), *everyday)


def drawn(chance: Random, crons: int = 1) -> Window:
    zone, year = chance.choice(ZONES), chance.randint(FIRST_YEAR, LAST_YEAR)
    near = changes(zone, year)
    day = chance.choice(near) if near else datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=chance.randrange(360))
    begin = day - timedelta(minutes=chance.randrange(1440))
    return Window(zone, begin, 2 * 1440, tuple(expression(chance) for _ in range(crons)))


# --- ticks ------------------------------------------------------------------------------------------------------------


def agree(window: Window) -> None:
    """Forward and back, the same moments as the reference; each follows and precedes its neighbours."""
    for cron, text in zip(window.crons, window.texts, strict=True):
        expected = reference(cron, window.zone, window.begin, window.minutes)
        clock, first = ticks(text, window.zone), to_micros(window.begin)
        end = first + window.minutes * MINUTE
        found, moment = [], clock.at_or_after(first)
        while moment is not None and moment < end:
            found.append(moment)
            following = clock.after(moment)
            assert following is None or (following > moment and clock.before(following) == moment), (window.zone, text, moment)
            moment = following
        assert found == expected, (window.zone, window.begin, text)


def test_ticks_of_windows_drawn_by_seed() -> None:
    print(f"again: TIMETABLE_SEED={SEED}")
    chance = Random(SEED)
    for _ in range(150):
        agree(drawn(chance))


def fixed(minute: int, hour: int) -> tuple[Column, ...]:
    return (
        Column(str(minute), frozenset({minute})),
        Column(str(hour), frozenset({hour})),
        *(Column("*", frozenset(range(low, high + 1)), True) for low, high in ((1, 31), (1, 12), (0, 6))),
    )


@pytest.mark.parametrize("what", SPECIAL)
def test_every_hour_of_the_day_where_clocks_are_special(what: str) -> None:
    """A job of every hour, at two minutes, beside hourly ones."""
    zone, begin = SPECIAL[what]
    hourly = (Column("15,45", frozenset({15, 45})), Column("*", frozenset(range(24)), True), *fixed(0, 0)[2:])
    agree(Window(zone, begin, 2 * 1440 + 60, (hourly, *(fixed(minute, hour) for hour in range(24) for minute in (0, 30)))))


# --- runs: what a scheduler creates that looks now and then --------------------------------------------------------------


def looks(chance: Random, first: int, end: int) -> list[int]:
    """Moments at which it looks: sometimes often, sometimes after a long pause."""
    found, moment = [], first
    while moment < end:
        found.append(moment)
        moment += chance.choice([1, 7, 45, 60, 400, 1500]) * MINUTE + chance.choice([0, 0, 1, 30_000_000])
    return [*found, end]


def created(schedule: Schedule, bounds: Bounds, at: list[int]) -> list[RunTimes]:
    """Every run that is made: none before its time, each only once, in order."""
    runs: list[RunTimes] = []
    for now in at:
        for _ in range(10_000):
            run = next_run(schedule, runs[-1] if runs else None, bounds, now)
            if run is None or run.run_after > now:
                break
            assert not runs or run.run_after > runs[-1].run_after
            runs.append(run)
        else:
            raise AssertionError("it never comes to an end")
    return runs


def due(fires: list[int], at: list[int], catchup: bool) -> list[int]:
    """By the reference: the ticks that get a run. Without catch-up each look makes up for the latest one alone."""
    if catchup:
        return [tick for tick in fires if tick <= at[-1]]
    found: list[int] = []
    for now in at:
        latest = max((tick for tick in fires if tick <= now), default=None)
        if latest is not None and (not found or latest > found[-1]):
            found.append(latest)
    return found


@pytest.mark.parametrize("catchup", [True, False], ids=["catchup", "no catchup"])
@pytest.mark.parametrize("kind", ["trigger", "data"])
def test_runs_of_cron_timetables(kind: str, catchup: bool) -> None:
    """Of one expression and of several: a run for each tick, or for the latest one; data intervals join and are never empty."""
    chance = Random(f"{SEED} {kind} {catchup}")
    for number in range(70):
        window = drawn(chance, 1 + number % 2)
        fires = window.fires()
        begin = to_micros(window.begin)
        at = looks(chance, begin + chance.randrange(2000) * MINUTE, begin + window.minutes * MINUTE - 1)
        schedule = CronSchedule(window.texts, window.zone, interval_kind=kind)
        runs = created(schedule, Bounds(begin, None, catchup), at)
        where = (window.zone, window.begin, window.texts, at)
        if kind == "trigger":
            assert [run.run_after for run in runs] == due(fires, at, catchup), where
            assert all(run.start == run.end == run.logical_date == run.run_after for run in runs)
        else:
            # the first tick begins the first interval
            assert [run.run_after for run in runs] == due(fires[1:], at, catchup), where
            begins = dict(zip(fires[1:], fires, strict=False))
            assert [run.start for run in runs] == [begins[run.run_after] for run in runs], where
            assert all(run.start is not None and run.end is not None and run.start < run.end == run.run_after for run in runs)


@pytest.mark.parametrize("catchup", [True, False], ids=["catchup", "no catchup"])
def test_runs_of_delta_timetables(catchup: bool) -> None:
    """An exact step knows no time zone: the same distance on every day."""
    chance = Random(f"{SEED} delta {catchup}")
    for _ in range(100):
        begin = to_micros(datetime(chance.randint(FIRST_YEAR, LAST_YEAR), 3, 28, tzinfo=UTC)) + chance.randrange(DAY)
        step = chance.choice([7, 60, 90, 1440]) * MINUTE
        at = looks(chance, begin + chance.randrange(2000) * MINUTE, begin + 3 * DAY)
        runs = created(DeltaSchedule(Delta(step), interval_kind="data"), Bounds(begin, None, catchup), at)
        assert all(run.start is not None and run.end == run.start + step == run.run_after for run in runs)
        if catchup:
            assert [run.start for run in runs] == list(range(begin, at[-1] - step + 1, step))
        for one, following in pairwise(runs):
            assert one.end is not None
            assert following.start is not None
            assert following.start >= one.end


def test_runs_of_event_timetables_and_of_once() -> None:
    chance = Random(f"{SEED} events")
    for _ in range(100):
        begin = to_micros(datetime(chance.randint(FIRST_YEAR, LAST_YEAR), 10, 25, tzinfo=UTC))
        dates = tuple(sorted({begin + chance.randrange(4 * 1440) * MINUTE for _ in range(chance.randint(1, 8))}))
        at = looks(chance, begin, begin + 3 * DAY)
        runs = created(EventsSchedule(dates), Bounds(begin, None, True), at)
        assert [run.run_after for run in runs] == [date for date in dates if date <= at[-1]]
        assert len(created(OnceSchedule(), Bounds(begin, None, True), at)) == 1


# --- everything -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(16))
def test_every_change_of_every_clock_in_fifty_years(part: int) -> None:
    """Zones that make the same change at the same moment are looked at once."""
    chance = Random(f"{SEED} {part}")
    seen: set[tuple[object, ...]] = set()
    for zone in ZONES[part::16]:
        for year in range(FIRST_YEAR, LAST_YEAR + 1):
            for day in changes(zone, year):
                offsets = tuple((day + timedelta(hours=hour)).astimezone(ZoneInfo(zone)).utcoffset() for hour in range(-24, 49))
                if (day, offsets) not in seen:
                    seen.add((day, offsets))
                    agree(Window(zone, day - timedelta(hours=6), 2160, (expression(chance), fixed(30, chance.randrange(4)))))
    assert len(seen) > 100
