"""Times of cron expressions in time zones, also when the clock changes."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tradewind.model.errors import ScheduleError
from tradewind.model.moments import from_micros, iso, parse_moment, to_micros
from tradewind.timetables.ticks import ticks
from tradewind.timetables.zones import zone


def local(expression: str, name: str, start: str, count: int) -> list[str]:
    """The next times of an expression, as local times of the zone."""
    clock = ticks(expression, name)
    moment: int | None = to_micros(datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(name)))
    found: list[str] = []
    for _ in range(count):
        assert moment is not None
        moment = clock.after(moment)
        assert moment is not None
        found.append(from_micros(moment).astimezone(ZoneInfo(name)).strftime("%d %H:%M%z"))
    return found


def test_local_times_that_do_not_exist_have_one_run() -> None:
    assert local("30 2 * * *", "Europe/Paris", "2024-03-30 00:00", 3) == ["30 02:30+0100", "31 03:30+0200", "01 02:30+0200"]
    assert local("0,20,40 2 * * *", "Europe/Paris", "2024-03-30 12:00", 2) == ["31 03:00+0200", "01 02:00+0200"]


def test_a_local_time_that_occurs_twice_has_one_run_at_the_second() -> None:
    assert local("30 2 * * *", "Europe/Paris", "2024-10-26 12:00", 2) == ["27 02:30+0100", "28 02:30+0100"]
    assert local("30 1,2,3 * * *", "Europe/Paris", "2024-10-27 00:00", 3) == [
        "27 01:30+0200",
        "27 02:30+0100",
        "27 03:30+0100",
    ]


def test_every_hour_means_every_elapsed_hour() -> None:
    assert local("30 * * * *", "Europe/Paris", "2024-10-27 01:00", 4) == [
        "27 01:30+0200",
        "27 02:30+0200",
        "27 02:30+0100",
        "27 03:30+0100",
    ]
    assert local("30 * * * *", "Europe/Paris", "2024-03-31 01:00", 2) == ["31 01:30+0100", "31 03:30+0200"]


def test_changes_of_half_an_hour_and_of_a_whole_day() -> None:
    assert local("15 2 * * *", "Australia/Lord_Howe", "2024-10-05 12:00", 2) == ["06 02:45+1100", "07 02:15+1100"]
    assert local("0 6 * * *", "Pacific/Apia", "2011-12-29 12:00", 2) == ["31 06:00+1400", "01 06:00+1400"]
    assert local("0 6 30 12 *", "Pacific/Apia", "2011-12-01 12:00", 1) == ["31 06:00+1400"]


def test_the_first_run_of_a_day_on_which_the_clock_changed() -> None:
    """Airflow adds differences of local times to elapsed time here, and starts the day at 01:02."""
    assert local("2 * 2 * *", "Australia/Sydney", "2024-10-03 00:00", 2) == ["02 00:02+1100", "02 01:02+1100"]


def test_bounds_can_be_included_or_excluded() -> None:
    clock = ticks("0 * * * *", "UTC")
    hour = parse_moment("2024-05-01T10:00:00Z")
    assert clock.at_or_after(hour) == clock.at_or_before(hour) == hour
    assert clock.after(hour) == hour + 3600 * 10**6
    assert clock.before(hour) == hour - 3600 * 10**6
    assert clock.at_or_after(hour + 1) == clock.after(hour)
    assert clock.before(hour + 1) == clock.at_or_before(hour + 1) == hour
    assert clock.at_or_before(hour - 1) == clock.before(hour)
    assert clock.after(hour - 1) == hour


def test_distant_times_are_computed_without_stepping() -> None:
    clock = ticks("0 0 29 2 *", "America/New_York")
    assert iso(clock.after(parse_moment("2097-01-01"))) == "2104-02-29T05:00:00Z"
    assert iso(clock.before(parse_moment("2103-01-01"))) == "2096-02-29T05:00:00Z"


def test_a_schedule_of_years_ends_also_in_a_time_zone() -> None:
    clock = ticks("0 0 1 1 * 0 2030", "Europe/Paris")
    assert clock.after(parse_moment("2030-06-01")) is None
    assert clock.before(parse_moment("2029-06-01")) is None


@pytest.mark.parametrize(
    ("name", "hours"), [("+02:00", 2), ("-0330", -3.5), ("UTC+5", 5), ("+05:45", 5.75), ("UTC", 0), ("Z", 0), ("utc", 0)]
)
def test_fixed_offsets_are_time_zones(name: str, hours: float) -> None:
    moment = ticks("0 12 * * *", name).after(parse_moment("2024-05-01T18:00:00Z"))
    assert moment is not None
    assert (from_micros(moment) + timedelta(hours=hours)).hour == 12
    assert zone(name).fixed == hours * 3600


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Europe/Pris", "Did you mean 'Europe/Paris'?"),
        ("Europe", "is not a time zone"),
        ("../etc/passwd", "is not a time zone"),
        ("", "is not a time zone"),
        ("+25:00", "is not an offset"),
        ("+02:75", "is not an offset"),
    ],
)
def test_unknown_zones_are_errors(name: str, says: str) -> None:
    with pytest.raises(ScheduleError, match="is not a"):
        zone(name)
    with pytest.raises(ScheduleError) as refused:
        ticks("@daily", name)
    assert says in str(refused.value)


def test_spans_contain_the_clock_changes_of_their_year() -> None:
    paris = zone("Europe/Paris")
    summer = paris.period_at(parse_moment("2024-07-01") // 10**6)
    assert iso(summer.start * 10**6) == "2024-03-31T01:00:00Z"
    assert iso(summer.end * 10**6) == "2024-10-27T01:00:00Z"
    assert (summer.before, summer.offset, summer.after) == (3600, 7200, 3600)
