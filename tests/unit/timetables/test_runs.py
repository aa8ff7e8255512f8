"""Which run comes next, with and without catch-up. The bulk of the evidence is tests/conformance/test_family_c.py."""

from __future__ import annotations

from itertools import islice

import pytest

from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    Delta,
    DeltaSchedule,
    EventsSchedule,
    NoSchedule,
    OnceSchedule,
    Schedule,
)
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND, iso, parse_moment
from tradewind.timetables import Bounds, RunTimes, manual_interval, next_run, upcoming

NOW = parse_moment("2024-05-10T09:30:00Z")
START = parse_moment("2024-05-08T00:00:00Z")
DAILY = CronSchedule(("0 6 * * *",))
DAILY_DATA = CronSchedule(("0 6 * * *",), interval_kind="data")


def runs(schedule: Schedule, bounds: Bounds, now: int, count: int = 4) -> list[tuple[str | None, ...]]:
    """(logical date, end of the data interval, run after) of the first runs, at a fixed current time."""
    found: list[tuple[str | None, ...]] = []
    last: RunTimes | None = None
    for _ in range(count):
        last = next_run(schedule, last, bounds, now)
        if last is None:
            break
        assert last.start == last.logical_date
        found.append((iso(last.logical_date), iso(last.end), iso(last.run_after)))
    return found


def days(*numbers: int) -> list[str]:
    return [f"2024-05-{number:02d}T06:00:00Z" for number in numbers]


def test_cron_trigger_with_catchup_has_every_run_since_the_start_date() -> None:
    found = runs(DAILY, Bounds(START, None, True), NOW)
    assert [run[0] for run in found] == [run[2] for run in found] == days(8, 9, 10, 11)


def test_cron_trigger_without_catchup_starts_with_the_latest_run() -> None:
    assert [run[0] for run in runs(DAILY, Bounds(START, None, False), NOW, 2)] == days(10, 11)


@pytest.mark.spec("S4")
def test_a_run_starts_at_the_end_of_its_data_interval() -> None:
    found = runs(DAILY_DATA, Bounds(START, None, True), NOW, 3)
    assert [run[0] for run in found] == days(8, 9, 10)
    assert [run[1] for run in found] == [run[2] for run in found] == days(9, 10, 11)


@pytest.mark.spec("S244")
def test_data_intervals_without_catchup_start_with_the_latest_complete_one() -> None:
    assert [run[:2] for run in runs(DAILY_DATA, Bounds(START, None, False), NOW, 1)] == [tuple(days(9, 10))]
    on_the_tick = parse_moment("2024-05-10T06:00:00Z")
    assert [run[:2] for run in runs(DAILY_DATA, Bounds(START, None, False), on_the_tick, 1)] == [tuple(days(9, 10))]


def test_data_intervals_with_catchup_need_a_start_date() -> None:
    assert runs(DAILY_DATA, Bounds(None, None, True), NOW) == []


def test_a_schedule_ends_with_its_end_date() -> None:
    end = parse_moment("2024-05-09T06:00:00Z")
    assert [run[0] for run in runs(DAILY, Bounds(START, end, True), NOW)] == days(8, 9)
    assert [run[0] for run in runs(DAILY_DATA, Bounds(START, end, True), NOW)] == days(8, 9)
    assert runs(DAILY, Bounds(START, end, False), NOW) == []


def test_a_schedule_starts_at_a_start_date_in_the_future() -> None:
    later = NOW + 3 * DAY
    assert [run[0] for run in runs(DAILY, Bounds(later, None, False), NOW, 2)] == days(14, 15)
    assert [run[0] for run in runs(DAILY_DATA, Bounds(later, None, False), NOW, 2)] == days(14, 15)


def test_after_a_pause_without_catchup_missed_runs_are_not_created() -> None:
    bounds = Bounds(START, None, False)
    first = next_run(DAILY, None, bounds, NOW)
    assert first is not None
    second = next_run(DAILY, first, bounds, NOW + 5 * DAY)
    assert second is not None
    assert iso(second.logical_date) == days(15)[0]


def test_with_an_interval_the_logical_date_is_its_start() -> None:
    schedule = CronSchedule(("0 6 * * *",), interval=Delta(micros=HOUR))
    assert runs(schedule, Bounds(START, None, True), NOW, 1) == [
        ("2024-05-08T05:00:00Z", "2024-05-08T06:00:00Z", "2024-05-08T06:00:00Z")
    ]


@pytest.mark.parametrize(
    ("wanted", "minutes_late", "day"),
    [
        (True, 600, 10),
        (False, 600, 11),
        (False, 60, 10),  # within a tenth of the gap
        (None, 60, 10),
        (None, 600, 11),
        (30 * MINUTE, 60, 11),
        (60 * MINUTE, 60, 10),
    ],
)
def test_run_immediately_creates_the_latest_missed_run(wanted: bool | int | None, minutes_late: int, day: int) -> None:
    schedule = CronSchedule(("0 6 * * *",), run_immediately=wanted)
    late = parse_moment("2024-05-10T06:00:00Z") + minutes_late * MINUTE
    # With catch-up, because without it the latest tick is run in any case.
    run = next_run(schedule, None, Bounds(None, None, True), late)
    assert run is not None
    assert iso(run.logical_date) == days(day)[0]


def test_several_expressions_that_match_the_same_time_have_one_run() -> None:
    schedule = CronSchedule(("0 6 * * *", "0 18 * * *", "0 6 10 * *"))
    found = [run[0] for run in runs(schedule, Bounds(START, None, True), NOW, 5)]
    assert found == [f"2024-05-{text}:00:00Z" for text in ("08T06", "08T18", "09T06", "09T18", "10T06")]
    assert [run[0] for run in runs(schedule, Bounds(START, None, False), NOW, 1)] == ["2024-05-10T06:00:00Z"]


@pytest.mark.spec("S248")
def test_a_delta_counts_from_the_start_date_or_now() -> None:
    every = DeltaSchedule(Delta(micros=2 * DAY))
    assert [run[0] for run in runs(every, Bounds(START, None, True), NOW, 2)] == [
        "2024-05-08T00:00:00Z",
        "2024-05-10T00:00:00Z",
    ]
    assert [run[0] for run in runs(every, Bounds(START, None, False), NOW, 2)] == [
        "2024-05-10T09:30:00Z",
        "2024-05-12T09:30:00Z",
    ]


def test_months_are_counted_on_the_calendar() -> None:
    monthly = DeltaSchedule(Delta(parts=(("months", 1),)), interval_kind="data")
    start = parse_moment("2024-01-31T12:00:00Z")
    assert [run[0] for run in runs(monthly, Bounds(start, None, True), NOW, 3)] == [
        "2024-01-31T12:00:00Z",
        "2024-02-29T12:00:00Z",
        "2024-03-29T12:00:00Z",
    ]


@pytest.mark.spec("S246", "S248")
def test_once_and_never() -> None:
    assert runs(NoSchedule(), Bounds(START, None, False), NOW) == []
    assert [run[0] for run in runs(OnceSchedule(), Bounds(START, None, False), NOW)] == ["2024-05-08T00:00:00Z"]
    assert [run[0] for run in runs(OnceSchedule(), Bounds(None, None, False), NOW)] == [iso(NOW)]
    assert runs(OnceSchedule(), Bounds(START, START - 1, False), NOW) == []


def test_continuous_runs_have_adjacent_intervals_and_different_logical_dates() -> None:
    bounds = Bounds(None, NOW + HOUR, False)
    first = next_run(ContinuousSchedule(), None, bounds, NOW)
    assert first == RunTimes(NOW, NOW, NOW, NOW)
    second = next_run(ContinuousSchedule(), first, bounds, NOW + 30 * SECOND)
    assert second == RunTimes(NOW + 1, NOW + 1, NOW + 30 * SECOND, NOW + 30 * SECOND)
    third = next_run(ContinuousSchedule(), second, bounds, NOW + 50 * SECOND)
    assert third == RunTimes(NOW + 30 * SECOND, NOW + 30 * SECOND, NOW + 50 * SECOND, NOW + 50 * SECOND)
    assert next_run(ContinuousSchedule(), third, bounds, NOW + 2 * HOUR) is None


def test_events_have_runs_in_order_until_the_last() -> None:
    events = EventsSchedule((START, START + HOUR, NOW + DAY))
    assert len(runs(events, Bounds(START + 1, None, True), NOW)) == 2
    assert [run[0] for run in runs(events, Bounds(None, None, False), NOW)] == [iso(NOW + DAY)]
    assert runs(events, Bounds(START, NOW, False), NOW) == []


def test_data_intervals_of_manual_runs() -> None:
    day = [parse_moment(text) for text in days(9, 10)]
    assert manual_interval(DAILY, NOW, NOW) == (NOW, NOW)
    assert manual_interval(DAILY_DATA, NOW, NOW) == (day[0], day[1])
    assert manual_interval(DAILY_DATA, day[1], NOW) == (day[0], day[1])
    assert manual_interval(CronSchedule(("@daily",), interval=Delta(micros=HOUR)), NOW, NOW) == (NOW - HOUR, NOW)
    assert manual_interval(DeltaSchedule(Delta(micros=DAY), interval_kind="data"), NOW, NOW) == (NOW - DAY, NOW)
    assert manual_interval(NoSchedule(), NOW, NOW) == (NOW, NOW)
    events = EventsSchedule((START, NOW + DAY), restrict_to_events=True)
    assert manual_interval(events, NOW, NOW) == (START, START)
    assert manual_interval(events, START - DAY, NOW) == (START, START)
    assert manual_interval(EventsSchedule((START,)), NOW, NOW) == (NOW, NOW)
    no_more_years = CronSchedule(("0 0 1 1 * 0 2030",), interval_kind="data")
    assert manual_interval(no_more_years, NOW, NOW) is None


def test_upcoming_times_for_forecasts() -> None:
    assert [iso(moment) for moment in upcoming(DAILY, NOW, 2)] == days(11, 12)
    assert list(upcoming(DeltaSchedule(Delta(micros=HOUR)), NOW, 2)) == [NOW + HOUR, NOW + 2 * HOUR]
    assert list(upcoming(EventsSchedule((START, NOW + 1)), NOW, 5)) == [NOW + 1]
    assert list(upcoming(OnceSchedule(), NOW, 5)) == []
    assert list(upcoming(DAILY, NOW, 0)) == []
    assert len(list(islice(upcoming(DAILY, NOW), 100))) == 100
    both = CronSchedule(("0 6 * * *", "0 6 * * fri", "30 6 * * *"))
    assert len(set(upcoming(both, NOW, 10))) == 10


@pytest.mark.parametrize(
    ("start", "months", "days", "now", "first"),
    [
        ("2023-10-28T01:17:00Z", 1, 0, "2026-09-14T14:17:00Z", "2026-07-28T01:17:00Z"),
        (
            "2024-03-31T00:00:00Z",
            3,
            0,
            "2026-05-30T22:00:00Z",
            "2025-12-30T00:00:00Z",
        ),  # June has 30 days: from then on the 30th
        ("2024-01-31T00:00:00Z", 1, 0, "2024-04-29T00:00:00Z", "2024-03-29T00:00:00Z"),
        ("2020-02-29T00:00:00Z", 12, 0, "2024-03-01T00:00:00Z", "2023-02-28T00:00:00Z"),
        ("2024-05-01T00:00:00Z", 1, 0, "2024-05-20T00:00:00Z", "2024-05-01T00:00:00Z"),  # none is over
        ("2024-05-01T00:00:00Z", 1, 0, "2024-04-20T00:00:00Z", "2024-05-01T00:00:00Z"),
        (None, 2, 0, "2024-09-22T13:00:00Z", "2024-07-22T13:00:00Z"),
        ("2024-01-31T00:00:00Z", 1, 1, "2024-04-29T00:00:00Z", "2024-03-01T00:00:00Z"),
    ],
)
def test_months_without_catch_up_are_counted_from_the_start_date(
    start: str | None, months: int, days: int, now: str, first: str
) -> None:
    """The start of the first interval of a schedule of months or years is that of Airflow 3.3.2."""
    schedule = DeltaSchedule(Delta(micros=days * DAY, parts=(("months", months),)), interval_kind="data")
    bounds = Bounds(None if start is None else parse_moment(start), None, False)
    found = next_run(schedule, None, bounds, parse_moment(now))
    assert found is not None
    assert iso(found.start) == first


def test_with_several_expressions_the_latest_past_logical_date_is_next() -> None:
    """It is not the latest start time: with an interval, the run of this logical date may start in the future."""
    schedule = CronSchedule(("0 * * * *", "15 1 * * *"), interval=Delta(parts=(("months", 1),)))
    found = next_run(schedule, None, Bounds(None, None, False), parse_moment("2024-02-27T17:11:00Z"))
    assert found is not None
    assert (iso(found.start), iso(found.run_after)) == ("2024-01-28T01:15:00Z", "2024-02-28T01:15:00Z")
