"""LatestOnlyOperator, BranchDateTimeOperator and BranchDayOfWeekOperator."""

from __future__ import annotations

import datetime as datetime_module
import time as clock
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from tests.unit.execution.world import carry_out
from tradewind import DAG
from tradewind.model.branch import Branch
from tradewind.model.errors import DefinitionError
from tradewind.model.moments import iso
from tradewind.model.states import Outcome, RunType
from tradewind.operators import weekday as by_weekday
from tradewind.operators.datetime import BranchDateTimeOperator
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.latest_only import LatestOnlyOperator
from tradewind.operators.weekday import BranchDayOfWeekOperator
from tradewind.sdk.weekday import WeekDay

MORNING, NEXT_DAY = datetime.fromisoformat("2024-03-05T09:00"), datetime.fromisoformat("2024-03-06")
"""Has no time zone, so it is in the time zone of the DAG."""

GO_ON, SKIP = Branch("follow", ("after",)), Branch("follow", ())


def _latest_only(schedule: Any, **changes: Any) -> Branch | None:
    with DAG("d", schedule=schedule, start_date=datetime(2020, 1, 1, tzinfo=UTC)):
        operator = LatestOnlyOperator(task_id="t")
        operator >> EmptyOperator(task_id="after") >> EmptyOperator(task_id="far")
    result = carry_out(operator, **changes)
    assert result.outcome is Outcome.SUCCESS, result.reason
    return result.branch


def _midnight(days: int) -> str:
    today = int(clock.time()) // 86400 * 86400
    return str(iso((today + days * 86400) * 1_000_000))


@pytest.mark.parametrize("schedule", ["@daily", timedelta(days=1)], ids=repr)
def test_latest_only_continues_until_the_next_run_is_due(schedule: Any) -> None:
    """With the schedule meaning of Airflow 2 the latest run has the logical date of yesterday; with that of Airflow 3, of today."""
    assert _latest_only(schedule, at=_midnight(-1), until=_midnight(0)) == GO_ON
    assert _latest_only(schedule, at=_midnight(-2), until=_midnight(-1)) == SKIP
    assert _latest_only(schedule, at=_midnight(0)) == GO_ON
    assert _latest_only(schedule, at=_midnight(-1)) == SKIP
    assert _latest_only(schedule, at=_midnight(-1), run_type=RunType.BACKFILL) == SKIP


def test_latest_only_continues_in_triggered_and_last_runs() -> None:
    assert _latest_only("@daily", run_type=RunType.MANUAL) == GO_ON
    assert _latest_only("@daily", run_type=RunType.OPERATOR_TRIGGERED) == GO_ON
    assert _latest_only("@daily", at=None, run_type=RunType.ASSET_TRIGGERED) == GO_ON
    assert _latest_only("@once") == GO_ON


# --- times of day ------------------------------------------------------------------------------------------------------


def _by_time(now: str, lower: Any, upper: Any, zone: str = "UTC") -> str:
    import pendulum

    start = pendulum.datetime(2020, 1, 1, tz=zone)
    with DAG("d", schedule=None, start_date=start):
        operator = BranchDateTimeOperator(
            task_id="t",
            target_lower=lower,
            target_upper=upper,
            follow_task_ids_if_true="yes",
            follow_task_ids_if_false="no",
            use_task_logical_date=True,
        )
        operator >> [EmptyOperator(task_id="yes"), EmptyOperator(task_id="no")]
    result = carry_out(operator, at=now)
    assert result.branch is not None, result.reason
    return result.branch.tasks[0]


@pytest.mark.parametrize(
    ("now", "lower", "upper", "answer"),
    [
        ("2024-03-05T10:00:00Z", time(9), time(11), "yes"),
        ("2024-03-05T09:00:00Z", time(9), time(11), "yes"),
        ("2024-03-05T11:00:00Z", time(9), time(11), "yes"),
        ("2024-03-05T11:00:01Z", time(9), time(11), "no"),
        ("2024-03-05T08:59:59Z", time(9), None, "no"),
        ("2024-03-05T23:00:00Z", time(9), None, "yes"),
        ("2024-03-05T23:00:00Z", None, time(9), "no"),
        ("2024-03-05T23:00:00Z", time(22), time(2), "yes"),
        ("2024-03-05T01:00:00Z", time(22), time(2), "no"),
        ("2024-03-05T10:00:00Z", MORNING, NEXT_DAY, "yes"),
        ("2024-03-07T10:00:00Z", MORNING, NEXT_DAY, "no"),
        ("2024-03-05T10:00:00Z", NEXT_DAY, MORNING, "no"),
    ],
)
def test_a_date_between_the_limits_chooses_the_true_branch(now: str, lower: Any, upper: Any, answer: str) -> None:
    assert _by_time(now, lower, upper) == answer


def test_times_are_in_the_time_zone_of_the_dag() -> None:
    """Two in the morning in Berlin is the day before in UTC."""
    assert _by_time("2024-07-09T23:30:00Z", time(1), time(2), "Europe/Berlin") == "yes"
    assert _by_time("2024-07-09T01:30:00Z", time(1), time(2), "Europe/Berlin") == "no"


def test_a_run_without_a_logical_date_uses_run_after() -> None:
    with DAG("d", schedule=None):
        operator = BranchDateTimeOperator(
            task_id="t",
            target_lower=time(1),
            target_upper=None,
            follow_task_ids_if_true=None,
            follow_task_ids_if_false=["no"],
            use_task_logical_date=True,
        )
        operator >> EmptyOperator(task_id="no")
    assert carry_out(operator, at=None).branch == Branch("follow", ("no",))


def test_without_use_task_logical_date_the_current_time_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Frozen(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2024, 3, 4, 23, 30, tzinfo=UTC).astimezone(tz)  # a Monday; Tuesday in Berlin

    monkeypatch.setattr(datetime_module, "datetime", Frozen)
    monkeypatch.setattr(by_weekday, "datetime", Frozen)
    with DAG("d", schedule=None):
        operator = BranchDateTimeOperator(
            task_id="t", target_lower=time(23), target_upper=None, follow_task_ids_if_true="a", follow_task_ids_if_false=[]
        )
        operator >> EmptyOperator(task_id="a")
    assert carry_out(operator).branch == Branch("follow", ("a",))
    assert _by_day("monday") == "yes"
    assert _by_day({WeekDay.TUESDAY}, zone="Europe/Berlin") == "yes"


def test_at_least_one_limit_is_needed() -> None:
    with DAG("d", schedule=None), pytest.raises(DefinitionError, match="at least one of them is needed"):
        BranchDateTimeOperator(
            task_id="t", target_lower=None, target_upper=None, follow_task_ids_if_true=[], follow_task_ids_if_false=[]
        )


# --- days of the week --------------------------------------------------------------------------------------------------


def _by_day(days: Any, *, zone: str = "UTC", **kwargs: Any) -> str:
    import pendulum

    with DAG("d", schedule=None, start_date=pendulum.datetime(2020, 1, 1, tz=zone)):
        operator = BranchDayOfWeekOperator(
            task_id="t", week_day=days, follow_task_ids_if_true="yes", follow_task_ids_if_false="no", **kwargs
        )
        operator >> [EmptyOperator(task_id="yes"), EmptyOperator(task_id="no")]
    result = carry_out(operator)  # a Tuesday
    assert result.branch is not None, result.reason
    return result.branch.tasks[0]


@pytest.mark.parametrize("days", ["Tuesday", "TUESDAY", WeekDay.TUESDAY, ("monday", "tuesday"), [WeekDay.TUESDAY]], ids=repr)
def test_week_day_accepts_names_and_members(days: Any) -> None:
    assert _by_day(days, use_task_logical_date=True) == "yes"


def test_another_day_chooses_the_false_branch() -> None:
    assert _by_day({WeekDay.SATURDAY, "Sunday"}, use_task_logical_date=True) == "no"
    with pytest.warns(DeprecationWarning, match="use_task_logical_date"):
        assert _by_day("Monday", use_task_execution_day=True) == "no"


def test_a_misspelt_day_is_an_error() -> None:
    with pytest.raises(DefinitionError, match=r"'Tusday', which is not a day of the week. Did you mean 'Tuesday'"):
        _by_day("Tusday")
    with pytest.raises(DefinitionError, match="week_day is empty"):
        _by_day([])
