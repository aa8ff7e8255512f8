"""The timetable classes: the schedule of each, and subclasses that use the built-in methods."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pendulum
import pytest
from dateutil.relativedelta import relativedelta

from tradewind import DAG
from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    DefinitionDefaults,
    Delta,
    DeltaSchedule,
    EventsSchedule,
    NoSchedule,
    OnceSchedule,
)
from tradewind.model.errors import DefinitionError, ScheduleError
from tradewind.model.moments import DAY, HOUR, to_micros
from tradewind.sdk.definition import to_definition
from tradewind.timetables import parse_schedule
from tradewind.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from tradewind.timetables.builtin import BuiltInTimetable
from tradewind.timetables.events import EventsTimetable
from tradewind.timetables.interval import CronDataIntervalTimetable, DeltaDataIntervalTimetable
from tradewind.timetables.simple import ContinuousTimetable, NullTimetable, OnceTimetable
from tradewind.timetables.trigger import CronTriggerTimetable, DeltaTriggerTimetable, MultipleCronTriggerTimetable

PARIS = pendulum.timezone("Europe/Paris")
START = datetime(2026, 3, 1, tzinfo=UTC)

EVERY = [
    (NullTimetable(), NoSchedule(), "None"),
    (OnceTimetable(), OnceSchedule(), "@once"),
    (ContinuousTimetable(), ContinuousSchedule(), "@continuous"),
    (CronDataIntervalTimetable("@daily", PARIS), CronSchedule(("0 0 * * *",), "Europe/Paris", "data"), "0 0 * * *"),
    (DeltaDataIntervalTimetable(timedelta(days=1)), DeltaSchedule(Delta(DAY), "data"), "1 day, 0:00:00"),
    (
        CronTriggerTimetable("0 6 * * *", timezone="UTC", interval=timedelta(hours=6), run_immediately=timedelta(hours=1)),
        CronSchedule(("0 6 * * *",), interval=Delta(6 * HOUR), run_immediately=HOUR),
        "0 6 * * *",
    ),
    (
        CronTriggerTimetable("0 6 1 * *", timezone=timezone(timedelta(hours=2)), interval=relativedelta(months=1)),
        CronSchedule(("0 6 1 * *",), "+02:00", interval=Delta(parts=(("months", 1),))),
        "0 6 1 * *",
    ),
    (
        MultipleCronTriggerTimetable("@hourly", "15 9 * * mon", timezone=ZoneInfo("Asia/Tokyo"), run_immediately=True),
        CronSchedule(("0 * * * *", "15 9 * * mon"), "Asia/Tokyo", run_immediately=True),
        "0 * * * *, 15 9 * * mon",
    ),
    (
        DeltaTriggerTimetable(relativedelta(months=1, day=31), interval=timedelta(days=1)),
        DeltaSchedule(Delta(parts=(("day", 31), ("months", 1))), interval=Delta(DAY)),
        "relativedelta(months=+1, day=31)",
    ),
    (
        EventsTimetable([START + timedelta(days=1), START], restrict_to_events=True, description="Twice"),
        EventsSchedule((to_micros(START), to_micros(START) + DAY), True, "Twice"),
        "Twice",
    ),
]


@pytest.mark.parametrize(("timetable", "schedule", "summary"), EVERY, ids=lambda value: type(value).__name__)
def test_each_class_has_a_schedule(timetable: BuiltInTimetable, schedule: Any, summary: str) -> None:
    assert parse_schedule(timetable, timezone="UTC", defaults="trigger") == schedule
    assert timetable.summary == summary
    assert timetable.description.endswith(".") or timetable.description == "Twice"
    back = type(timetable).deserialize(json.loads(json.dumps(timetable.serialize())))
    assert back == timetable
    assert hash(back) == hash(timetable)


def test_a_dag_shows_summary_and_description_of_its_timetable() -> None:
    dag = DAG("d", schedule=CronTriggerTimetable("@daily", timezone="UTC"), start_date=START)
    definition = to_definition(dag, "d.py", DefinitionDefaults())
    assert (definition.schedule, definition.schedule_summary) == (CronSchedule(("0 0 * * *",)), "0 0 * * *")


def test_events_without_a_zone_are_in_the_zone_of_the_dag() -> None:
    found = parse_schedule(EventsTimetable([datetime(2026, 3, 1)]), timezone="Europe/Paris", defaults="trigger")  # noqa: DTZ001
    assert found == EventsSchedule((to_micros(START) - HOUR,))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: MultipleCronTriggerTimetable(timezone="UTC"), "at least one cron expression"),
        (lambda: EventsTimetable(["2026-01-01"]), "contains '2026-01-01', a str"),  # type: ignore[list-item]
        (lambda: EventsTimetable([START, START - timedelta(1)], presorted=True).as_schedule(), "are not sorted"),
        (lambda: CronTriggerTimetable("@daily", timezone="UTC", run_immediately="yes"), "run_immediately is 'yes'"),  # type: ignore[arg-type]
        (lambda: CronTriggerTimetable("0 6 * * *", timezone="Europe/Pariss").as_schedule(), None),
    ],
)
def test_invalid_arguments_are_errors(make: Any, says: str | None) -> None:
    with pytest.raises(ScheduleError, match=says or "Did you mean"):
        parse_schedule(make(), timezone="UTC", defaults="trigger")


@pytest.mark.parametrize("schedule", ["@continuous", ContinuousTimetable()])
def test_continuous_has_one_run_at_a_time(schedule: Any) -> None:
    assert to_definition(DAG("d", schedule=schedule, start_date=START), "d.py", DefinitionDefaults()).max_active_runs == 1
    with pytest.raises(DefinitionError, match="max_active_runs must be 1, not 3"):
        to_definition(DAG("d", schedule=schedule, start_date=START, max_active_runs=3), "d.py", DefinitionDefaults())


class SkipsSundays(CronDataIntervalTimetable):
    """A subclass that changes the result of a built-in timetable."""

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        found = super().next_dagrun_info(last_automated_data_interval=last_automated_data_interval, restriction=restriction)
        while found is not None and found.run_after.weekday() == 6:
            found = super().next_dagrun_info(last_automated_data_interval=found.data_interval, restriction=restriction)
        return found


def test_a_subclass_can_call_the_built_in_method() -> None:
    timetable = SkipsSundays("0 0 * * *", "UTC")
    restriction = TimeRestriction(pendulum.instance(START), None, catchup=True)
    last, days = None, []
    for _ in range(7):
        found = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
        assert found is not None
        last = found.data_interval
        days.append(found.run_after.day)
    assert days == [2, 3, 4, 5, 6, 7, 9]
    assert isinstance(found, DagRunInfo)
    assert isinstance(found.run_after, pendulum.DateTime)


def test_manual_runs_and_helpers_of_cron_timetables() -> None:
    timetable = CronDataIntervalTimetable("30 2 * * *", "Europe/Paris")
    at = pendulum.datetime(2026, 3, 10, 12)
    interval = timetable.infer_manual_data_interval(run_after=at)
    assert [moment.isoformat() for moment in interval] == ["2026-03-09T01:30:00+00:00", "2026-03-10T01:30:00+00:00"]
    assert timetable._get_next(at) == timetable._align_to_next(at) == pendulum.datetime(2026, 3, 11, 1, 30)
    assert timetable._get_prev(at) == timetable._align_to_prev(at) == pendulum.datetime(2026, 3, 10, 1, 30)


def test_dag_run_info_is_that_of_airflow() -> None:
    exact = DagRunInfo.exact(START)
    assert (exact.run_after, exact.logical_date, exact.data_interval) == (START, START, DataInterval(START, START))
    spread = DagRunInfo.interval(START, START + timedelta(1))
    assert (spread.run_after, spread.logical_date) == (START + timedelta(1), START)
