"""Timetables of users: serialization, and valid and invalid results."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tradewind.model.dag_run_type import DagRunType
from tradewind.model.definition import CustomSchedule, DefinitionDefaults, decode_schedule, encode_schedule
from tradewind.model.errors import DefinitionError, ScheduleError, WrongName
from tradewind.model.moments import DAY, to_micros
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.timetables import Bounds, describe, manual_interval, next_run, parse_schedule
from tradewind.timetables.base import DagRunInfo, DataInterval, Timetable
from tradewind.timetables.custom import (
    compute_backfill_runs,
    compute_manual_interval,
    compute_next_run,
    compute_run_id,
    load_timetable,
    to_custom_schedule,
)
from tradewind.timetables.runs import RunTimes

START = datetime(2026, 1, 1, tzinfo=UTC)
AT = to_micros(START)
OPEN = Bounds(None, None, catchup=False)


class Says(Timetable):
    """Returns the result that the test has set."""

    description = "When it says so"
    active_runs_limit = 3
    answer: Any = None
    refuses: str = ""

    def validate(self) -> None:
        if self.refuses:
            raise ValueError(self.refuses)

    def serialize(self) -> dict[str, Any]:
        return {"b": 1, "a": [2]}

    def next_dagrun_info(self, **question: Any) -> Any:
        self.question = question
        return self.answer

    def infer_manual_data_interval(self, **question: Any) -> Any:
        return self.answer


def test_a_timetable_is_stored_by_name_and_arguments() -> None:
    schedule = parse_schedule(Says(), timezone="UTC", defaults="trigger")
    assert schedule == CustomSchedule(__name__, "Says", b'{"a": [2], "b": 1}', "When it says so", active_runs_limit=3)
    assert decode_schedule(encode_schedule(schedule)) == schedule
    assert describe(schedule) == "When it says so"
    assert isinstance(load_timetable(Timetable, b"{}"), Timetable)


def test_the_scheduler_does_not_call_its_code() -> None:
    schedule = to_custom_schedule(Says())
    with pytest.raises(ScheduleError, match="can run only in a child process"):
        next_run(schedule, None, OPEN, AT)
    with pytest.raises(ScheduleError, match="can run only in a child process"):
        manual_interval(schedule, AT, AT)


def test_its_active_runs_limit_is_used() -> None:
    made = to_definition(DAG("d", schedule=Says(), start_date=START), "d.py", DefinitionDefaults())
    assert (made.max_active_runs, made.schedule_summary) == (3, "Says")
    with pytest.raises(DefinitionError, match="allows max_active_runs of at most 3, not 9"):
        to_definition(DAG("d", schedule=Says(), start_date=START, max_active_runs=9), "d.py", DefinitionDefaults())


def test_a_class_that_cannot_be_imported_again_is_an_error() -> None:
    class Inner(Says):
        pass

    with pytest.raises(ScheduleError, match="inside a function"):
        to_custom_schedule(Inner())
    refusing, loose = Says(), Says()
    refusing.refuses = "no such hour"
    with pytest.raises(ScheduleError, match="validate\\(\\) of the timetable Says failed: no such hour"):
        to_custom_schedule(refusing)
    crowded = Says()
    crowded.active_runs_limit = 0
    with pytest.raises(ScheduleError, match="active_runs_limit of the timetable Says is 0"):
        to_custom_schedule(crowded)
    loose.serialize = lambda: {"at": START}  # type: ignore[method-assign]
    with pytest.raises(ScheduleError, match="must return JSON values"):
        to_custom_schedule(loose)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, None),
        (DagRunInfo.exact(START), RunTimes(AT, AT, AT, AT)),
        (DagRunInfo.interval(START, START + timedelta(1)), RunTimes(AT, AT, AT + DAY, AT + DAY)),
        (DagRunInfo(START, None), RunTimes(None, None, None, AT)),
    ],
)
def test_valid_results(answer: Any, expected: RunTimes | None) -> None:
    says = Says()
    says.answer = answer
    assert compute_next_run(says, RunTimes(AT, AT, AT + DAY, AT + DAY), Bounds(AT, None, catchup=True)) == expected
    last, restriction = says.question["last_automated_data_interval"], says.question["restriction"]
    assert (last, restriction) == (DataInterval(START, START + timedelta(1)), (START, None, True))
    assert last.end.add(days=1).timezone_name == "UTC", "pendulum's, as authors expect"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (START, "must return a DagRunInfo or None"),
        (DagRunInfo.exact(datetime(2026, 1, 1)), "has no time zone"),  # noqa: DTZ001
        (DagRunInfo("2026-01-01", None), "run_after is '2026-01-01', a str"),  # type: ignore[arg-type]
        (DagRunInfo.interval(START, START - timedelta(1)), "ends .* before it starts"),
        (DagRunInfo(START, START), "must be a DataInterval"),  # type: ignore[arg-type]
        (DagRunInfo(START, None, partition_key=" "), "partition key .* must be a text"),
    ],
)
def test_invalid_results_are_errors(answer: Any, says: str) -> None:
    timetable = Says()
    timetable.answer = answer
    with pytest.raises(ScheduleError, match=says):
        compute_next_run(timetable, None, OPEN)


def test_data_intervals_of_manual_runs() -> None:
    timetable = Says()
    assert compute_manual_interval(timetable, AT) is None
    timetable.answer = DataInterval(START, START + timedelta(1))
    assert compute_manual_interval(timetable, AT) == (AT, AT + DAY)
    timetable.answer = 5
    with pytest.raises(ScheduleError, match="returned the data interval 5"):
        compute_manual_interval(timetable, AT)


def test_the_error_of_a_missing_method_names_it() -> None:
    with pytest.raises(NotImplementedError, match="has no next_dagrun_info"):
        compute_next_run(Timetable(), None, OPEN)
    with pytest.raises(NotImplementedError, match="has no infer_manual_data_interval"):
        compute_manual_interval(Timetable(), AT)


class Names(Says):
    """Gives ids to runs."""

    def next_dagrun_info(self, **question: Any) -> DagRunInfo | None:
        last, restriction = question["last_automated_data_interval"], question["restriction"]
        start = restriction.earliest if last is None else last.end
        return None if start > restriction.latest else DagRunInfo.interval(start, start.add(days=1))

    def generate_run_id(self, *, run_type: DagRunType, run_after: datetime, data_interval: Any, **extra: Any) -> str:
        start = "none" if data_interval is None else data_interval.start.date()
        return str(self.answer) if self.answer else f"{run_type.value}:{start}:{run_after.date()}:{extra.get('partition_key')}"


def test_a_timetable_may_name_runs() -> None:
    assert parse_schedule(Names(), timezone="UTC", defaults="trigger").names_runs  # type: ignore[union-attr]
    bounds = Bounds(AT, AT + DAY, catchup=True)
    first = compute_next_run(Names(), None, bounds, named=True)
    assert first is not None
    assert first.run_id == "scheduled:2026-01-01:2026-01-02:None"
    unnamed = compute_next_run(Names(), None, bounds)
    assert unnamed is not None
    assert unnamed.run_id is None
    assert compute_run_id(Names(), DagRunType.MANUAL, RunTimes(None, None, None, AT, "k")) == "manual:none:2026-01-01:k"
    assert compute_run_id(Says(), DagRunType.MANUAL, first) is None
    wrong = Names()
    wrong.answer = "a/b"
    with pytest.raises(WrongName, match="the run id 'a/b' may only have"):
        compute_next_run(wrong, None, bounds, named=True)


def test_runs_of_a_backfill() -> None:
    runs = compute_backfill_runs(Names(), AT, AT + 2 * DAY, 10)
    assert [run.logical_date for run in runs] == [AT, AT + DAY, AT + 2 * DAY]
    assert runs[0].run_id == "backfill:2026-01-01:2026-01-02:None"
    with pytest.raises(ScheduleError, match="more than 2 runs"):
        compute_backfill_runs(Names(), AT, AT + 2 * DAY, 2)
    stuck = Says()
    stuck.answer = DagRunInfo.exact(START)
    with pytest.raises(ScheduleError, match="is not after the one of"):
        compute_backfill_runs(stuck, AT, AT + DAY, 10)


class Regions(Says):
    """Has partitions."""

    partitioned = True

    def iter_partition_dagrun_infos(self, *, earliest: datetime, latest: datetime) -> Any:
        for number, day in enumerate((earliest, latest)):
            yield DagRunInfo(run_after=day, data_interval=None, partition_date=day, partition_key=f"p{number}")


def test_partitions_of_a_backfill() -> None:
    runs = compute_backfill_runs(Regions(), AT, AT + DAY, 10)
    assert [(run.logical_date, run.partition_key, run.partition_date) for run in runs] == [
        (None, "p0", AT),
        (None, "p1", AT + DAY),
    ]


def test_a_timetable_may_assign_its_description() -> None:
    from tradewind.timetables.interval import CronDataIntervalTimetable

    class Own(Timetable):
        def __init__(self, region: str) -> None:
            self.description = f"Workdays in {region}"

    class OfCron(CronDataIntervalTimetable):
        def __init__(self, cron: str, timezone: str) -> None:
            super().__init__(cron, timezone)
            self.description = "After a workday"

    assert Own("Rome").description == "Workdays in Rome"
    assert OfCron("0 0 * * *", "UTC").description == "After a workday"
    assert CronDataIntervalTimetable("0 0 * * *", "UTC").description.startswith("Every day at 00:00 (UTC)")
