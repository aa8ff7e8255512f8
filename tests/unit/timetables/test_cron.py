"""Times and errors of cron expressions. Local times are naive datetimes, without a time zone."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from tradewind.model.errors import ScheduleError
from tradewind.timetables.cron import compile_cron

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def wall(text: str) -> int:
    return int((datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH).total_seconds())


def shown(second: int | None) -> str:
    assert second is not None
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def following(expression: str, start: str, count: int = 4) -> list[str]:
    cron = compile_cron(expression)
    found: list[str] = []
    moment: int | None = wall(start)
    for _ in range(count):
        assert moment is not None
        moment = cron.at_or_after(moment + 1)
        found.append(shown(moment))
    return found


def preceding(expression: str, start: str, count: int = 4) -> list[str]:
    cron = compile_cron(expression)
    found: list[str] = []
    moment: int | None = wall(start)
    for _ in range(count):
        assert moment is not None
        moment = cron.at_or_before(moment - 1)
        found.append(shown(moment))
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", ["2024-02-27 23:59", "2024-02-28 00:00", "2024-02-28 00:01"]),
        ("*/20 * * * *", ["2024-02-28 00:00", "2024-02-28 00:20", "2024-02-28 00:40"]),
        ("10/20 6 * * *", ["2024-02-28 06:10", "2024-02-28 06:30", "2024-02-28 06:50"]),
        ("0 9-17/4 * * *", ["2024-02-28 09:00", "2024-02-28 13:00", "2024-02-28 17:00"]),
        ("0 22-2/2 * * *", ["2024-02-28 00:00", "2024-02-28 02:00", "2024-02-28 22:00"]),
        ("0 0 29 2 *", ["2024-02-29 00:00", "2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 0 1,30 * *", ["2024-03-01 00:00", "2024-03-30 00:00", "2024-04-01 00:00"]),
        ("0 0 L * *", ["2024-02-29 00:00", "2024-03-31 00:00", "2024-04-30 00:00"]),
        ("0 0 15,L * *", ["2024-02-29 00:00", "2024-03-15 00:00", "2024-03-31 00:00"]),
        ("0 0 15W * *", ["2024-03-15 00:00", "2024-04-15 00:00", "2024-05-15 00:00"]),
        ("0 0 1W 6-9 *", ["2024-06-03 00:00", "2024-07-01 00:00", "2024-08-01 00:00"]),
        ("0 0 30W * *", ["2024-02-29 00:00", "2024-03-29 00:00", "2024-04-30 00:00"]),
        ("0 0 * * mon", ["2024-03-04 00:00", "2024-03-11 00:00", "2024-03-18 00:00"]),
        ("0 0 * * 7", ["2024-03-03 00:00", "2024-03-10 00:00", "2024-03-17 00:00"]),
        ("0 0 * * fri-mon", ["2024-03-01 00:00", "2024-03-02 00:00", "2024-03-03 00:00"]),
        ("0 0 * * 5-7", ["2024-03-01 00:00", "2024-03-02 00:00", "2024-03-03 00:00"]),
        ("0 0 * * FRI#2", ["2024-03-08 00:00", "2024-04-12 00:00", "2024-05-10 00:00"]),
        ("0 0 * * mon#5", ["2024-04-29 00:00", "2024-07-29 00:00", "2024-09-30 00:00"]),
        ("0 0 * * mon-tue#1", ["2024-03-04 00:00", "2024-03-05 00:00", "2024-04-01 00:00"]),
        ("0 0 * * L5", ["2024-03-29 00:00", "2024-04-26 00:00", "2024-05-31 00:00"]),
        ("0 0 13 * 5", ["2024-03-01 00:00", "2024-03-08 00:00", "2024-03-13 00:00"]),
        ("0 0 ? * 3", ["2024-02-28 00:00", "2024-03-06 00:00", "2024-03-13 00:00"]),
        ("0 0 1 apr-jan/3 *", ["2024-04-01 00:00", "2024-07-01 00:00", "2024-10-01 00:00"]),
        ("0 0 * * * 10,40", ["2024-02-28 00:00:10", "2024-02-28 00:00:40", "2024-02-29 00:00:10"]),
        ("0 0 1 1 * 0 2030-2031", ["2030-01-01 00:00", "2031-01-01 00:00"]),
        ("@hourly", ["2024-02-28 00:00", "2024-02-28 01:00", "2024-02-28 02:00"]),
        ("@quarterly", ["2024-04-01 00:00", "2024-07-01 00:00", "2024-10-01 00:00"]),
        ("  @Daily ", ["2024-02-28 00:00", "2024-02-29 00:00", "2024-03-01 00:00"]),
    ],
)
def test_the_next_times_of_an_expression(expression: str, expected: list[str]) -> None:
    assert following(expression, "2024-02-27 23:58", len(expected)) == expected
    assert preceding(expression, expected[-1], len(expected) - 1) == expected[-2::-1]


@pytest.mark.parametrize(
    ("surprising", "plain"),
    [
        ("0 5-5 * * *", "0 * * * *"),  # a range from a value to itself is the whole cycle
        ("59/8 * * * *", "59 * * * *"),  # but a start with a step is not
        ("0-59 0-23 1-31 1-12 0-6", "* * 1-31 * 0-6"),
        ("0 0 * * 0-6", "0 0 * * *"),
        ("0 0 1-31 * 1", "0 0 * * *"),  # either suffices, so every day
        ("0 0 8 * 2#2", "0 0 * * 2#2"),  # a day of the month beside # has no effect
        ("50-10/15 * * * *", "6,50 * * * *"),  # Airflow goes on one later than arithmetic says
    ],
)
def test_surprising_rules_of_airflow_are_kept(surprising: str, plain: str) -> None:
    assert following(surprising, "2024-02-27 23:58", 40) == following(plain, "2024-02-27 23:58", 40)


def test_all_hours_written_out_are_the_same_as_a_star() -> None:
    assert compile_cron("0 */1 * * *").hourly
    assert compile_cron("0 0-23 * * *").hourly
    assert not compile_cron("0 1-23 * * *").hourly


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("0 25 * * *", "the hour field is '25'; it must be 0 to 23"),
        ("60 * * * *", "the minute field is '60'; it must be 0 to 59"),
        ("0 0 0 * *", "the day of the month field is '0'; it must be 1 to 31"),
        ("0 0 * 13 *", "the month field is '13'; it must be 1 to 12 or jan to dec"),
        ("0 0 * * fry", "the day of the week field is 'fry'; it must be 0 to 6 or sun to sat. Did you mean 'fri'?"),
        ("0 0 * * 8", "the day of the week field is '8'"),
        ("0 0 * * * 60", "the second field is '60'"),
        ("0 0 * * * 0 1969", "the year field is '1969'; it must be 1970 to 2099"),
        ("*/0 * * * *", "a step must be at least 1"),
        ("5-9/0 * * * *", "a step must be at least 1"),
        ("1,,2 * * * *", "the minute field is ''"),
        ("1-2-3 * * * *", "the minute field is '1-2-3'"),
        ("-5 * * * *", "the minute field is '-5'"),
        ("? * * * *", "? must stand alone"),
        ("H * * * *", "the minute field is 'h'"),
        ("0 0 * * 1#6", "the number after # must be 1 to 5"),
        ("0 0 * * 1,5#2", "cannot be combined"),
        ("0 0 1 * tue#2", "the day of the month must be *"),
        ("0 0 30 feb *", "never matches"),
        ("0 0 31 4,6,9,11 *", "never matches"),
        ("* * *", "has 3 fields; it needs 5"),
        ("1 2 3 4 5 6 7 8", "has 8 fields"),
        ("daily", "Did you mean '@daily'?"),
        ("@dayly", "is not a schedule preset. Did you mean '@daily'?"),
        ("٣ * * * *", "the minute field is"),
    ],
)
def test_invalid_expressions_are_errors_with_advice(expression: str, says: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        compile_cron(expression)
    assert says in str(refused.value)
    assert expression.strip() in str(refused.value)


def test_a_schedule_of_years_ends() -> None:
    cron = compile_cron("0 0 1 1 * 0 2030")
    assert cron.at_or_after(wall("2030-01-01 00:00:01")) is None
    assert cron.at_or_before(wall("2029-12-31 00:00:00")) is None
    assert shown(compile_cron("0 0 1 1 * 0 2099").at_or_after(wall("2060-01-01 00:00"))) == "2099-01-01 00:00"


@pytest.mark.parametrize("expression", ["* * * * *", "30 6 * * mon-fri", "0 0 29 2 *", "*/7 2-5 L * *", "0 0 * * fri#5"])
def test_distant_times_are_computed_without_stepping(expression: str) -> None:
    """A generous limit: each takes 1 to 30 µs; stepping minute by minute would take a hundred times longer."""
    cron = compile_cron(expression)
    start = wall("2024-03-01 12:00")
    began = time.perf_counter()
    for offset in range(1000):
        assert cron.at_or_after(start + offset * 60) is not None
    assert time.perf_counter() - began < 0.5
