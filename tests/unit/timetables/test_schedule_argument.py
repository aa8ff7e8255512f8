"""Valid and invalid values of `schedule=`, and the descriptions of schedules for people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from dateutil.relativedelta import FR, relativedelta

from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    Delta,
    DeltaSchedule,
    EventsSchedule,
    NoSchedule,
    OnceSchedule,
)
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import DAY, HOUR, iso, parse_moment
from tradewind.timetables import Bounds, describe, parse_schedule, validate
from tradewind.timetables.steps import delta_of, nominal_length, shift


@pytest.mark.spec("S248")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, NoSchedule()),
        ("@once", OnceSchedule()),
        ("@continuous", ContinuousSchedule()),
        ("@daily", CronSchedule(("0 0 * * *",), "Europe/Paris")),
        ("@Quarterly", CronSchedule(("0 0 1 */3 *",), "Europe/Paris")),
        (" 0 6 * * MON ", CronSchedule(("0 6 * * MON",), "Europe/Paris")),
        (timedelta(hours=6), DeltaSchedule(Delta(micros=6 * HOUR))),
        (relativedelta(days=2, hours=1), DeltaSchedule(Delta(micros=2 * DAY + HOUR))),
        (relativedelta(months=14, days=1), DeltaSchedule(Delta(micros=DAY, parts=(("months", 2), ("years", 1))))),
        (relativedelta(months=1, day=31), DeltaSchedule(Delta(parts=(("day", 31), ("months", 1))))),
        (EventsSchedule((1, 2)), EventsSchedule((1, 2))),
    ],
)
def test_values_that_airflow_accepts(value: Any, expected: Any) -> None:
    assert parse_schedule(value, timezone="Europe/Paris", defaults="trigger") == expected


def test_meaning_of_schedules_in_airflow_2() -> None:
    assert parse_schedule("@daily", timezone="UTC", defaults="data") == CronSchedule(("0 0 * * *",), interval_kind="data")
    assert parse_schedule(timedelta(1), timezone="UTC", defaults="data") == DeltaSchedule(Delta(DAY), interval_kind="data")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (5, "schedule=5 is a int; it must be None, a preset such as '@daily'"),
        ("", "use schedule=None for a DAG that runs only when it is triggered"),
        ("0 25 * * *", "the hour field is '25'"),
        (timedelta(0), "must go forward"),
        (timedelta(days=-1), "-1 day does not"),
        (relativedelta(days=1, weekday=FR), "use a cron expression such as '0 0 * * fri'"),
        (relativedelta(months=1, days=-30), "must go forward"),
        (relativedelta(hour=3), "must go forward"),
        (CronSchedule(("@daily",), "Europe/Pris"), "Did you mean 'Europe/Paris'?"),
        (CronSchedule(()), "at least one expression"),
        (CronSchedule(("@daily",), interval=Delta(micros=-1)), "must not be negative"),
        (CronSchedule(("@daily",), interval_kind="date"), "it must be 'trigger' or 'data'"),
        (EventsSchedule((2, 1)), "must be sorted"),
    ],
)
def test_invalid_values_are_errors_with_advice(value: Any, says: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_schedule(value, timezone="Europe/Paris", defaults="trigger")
    assert says in str(refused.value)


def test_catch_up_needs_a_start_date() -> None:
    with pytest.raises(ScheduleError, match="catchup=True needs a start_date"):
        validate(CronSchedule(("@daily",)), Bounds(None, None, True))
    validate(CronSchedule(("@daily",)), Bounds(0, None, True))
    validate(NoSchedule(), Bounds(None, None, True))


@pytest.mark.parametrize(
    "value",
    [
        relativedelta(months=1),
        relativedelta(years=1, months=3, days=2, hours=5),
        relativedelta(months=1, day=31),
        relativedelta(months=2, day=1, hour=0, minute=30),
        relativedelta(years=1, leapdays=1),
        relativedelta(weeks=3, minutes=7),
        relativedelta(months=-1, days=40),
    ],
    ids=str,
)
def test_steps_are_those_of_dateutil(value: relativedelta) -> None:
    from tradewind.model.moments import from_micros, to_micros
    from tradewind.timetables import delta_from

    delta = delta_from(value)
    for text in ("2024-01-31T12:00:00Z", "2023-02-28T00:00:00Z", "2024-02-29T23:59:59.5Z", "2023-12-31T06:00:00Z"):
        moment = parse_moment(text)
        assert shift(moment, delta) == to_micros(from_micros(moment) + value), text
        assert shift(moment, delta, -1) == to_micros(from_micros(moment) - value), text


def test_steps_beyond_the_calendar_are_errors() -> None:
    with pytest.raises(ScheduleError, match="leads outside of the years"):
        shift(0, delta_of(years=9000))
    with pytest.raises(ScheduleError, match="relativedelta"):
        delta_of(fortnights=1)
    assert iso(shift(0, delta_of(months=1, days=1))) == "1970-02-02T00:00:00Z"
    assert nominal_length(delta_of(years=1, months=1, days=1)) == 396 * DAY


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "Only when it is triggered."),
        ("@once", "Once, at its start date."),
        ("@continuous", "Again as soon as the previous run has ended."),
        ("* * * * *", "Every minute (UTC)."),
        ("*/15 * * * *", "Every 15 minutes (UTC)."),
        ("*/7 9 * * *", "At minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of hour 9 (UTC)."),
        ("@hourly", "Every hour (UTC)."),
        ("20 * * * *", "Every hour at minute 20 (UTC)."),
        ("30 6 * * mon-fri", "At 06:30, on Monday to Friday (UTC)."),
        ("0 9-17 * * *", "On the hour in hours 9 to 17 (UTC)."),
        ("* 9 * * *", "Every minute of hour 9 (UTC)."),
        ("0 0 1,15 jan,jul *", "At 00:00, on days 1 and 15 of the month, in January and July (UTC)."),
        ("0 0 L * *", "At 00:00, on the last day of the month (UTC)."),
        ("0 0 13 * fri", "At 00:00, on day 13 of the month or on Friday (UTC)."),
        ("0 0 * * fri#2,L1", "At 00:00, on the last Monday and second Friday of the month (UTC)."),
        ("0 0 8 * tue#2", "At 00:00, on the second Tuesday of the month (UTC)."),
        ("0 0 15W * *", "At 00:00, on the working day nearest to day 15 of the month (UTC)."),
        ("0 6 * * * 30", "Every day at 06:00, at second 30 (UTC)."),
        ("* * * * * *", "Every second: every minute (UTC)."),
        ("0 0 1 1 * 0 2030", "At 00:00, on day 1 of the month, in January, in 2030 (UTC)."),
        (timedelta(days=1), "Every day."),
        (timedelta(hours=36), "Every day and 12 hours."),
        (timedelta(seconds=90), "Every minute and 30 seconds."),
        (relativedelta(months=3), "Every 3 months."),
        (CronSchedule(("@daily", "0 18 * * sat")), "Every day at 00:00; and at 18:00, on Saturday (UTC)."),
        (CronSchedule(("@daily",), interval_kind="data"), "Every day at 00:00 (UTC), for the time since the previous one."),
        (CronSchedule(("@daily",), interval=Delta(HOUR)), "Every day at 00:00 (UTC), for the preceding 1 hour."),
        (EventsSchedule(()), "Never: its list of dates is empty."),
        (EventsSchedule((0,)), "Once, at 1970-01-01T00:00:00Z."),
        (EventsSchedule((0, DAY)), "At 2 listed dates, from 1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z."),
        (EventsSchedule((0,), description="Cup finals"), "Cup finals"),
    ],
)
def test_schedules_have_a_description(value: Any, sentence: str) -> None:
    assert describe(parse_schedule(value, timezone="UTC", defaults="trigger")) == sentence
