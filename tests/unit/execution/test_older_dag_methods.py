"""Methods of Airflow 1 and 2's `DAG` that the schedule or the running task answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import World, installed
from tradewind.model.errors import CycleError
from tradewind.sdk.dag import DAG
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.variables import Connection, DatabaseNotReachable
from tradewind.wire.messages import FindRuns

START = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def world() -> Iterator[World]:
    with installed() as found:
        yield found


@pytest.mark.parametrize(
    ("schedule", "moment", "before", "after"),
    [
        ("0 6 * * *", START, START - timedelta(hours=18), START + timedelta(hours=6)),
        ("@daily", START, START - DAY, START + DAY),
        (timedelta(hours=2), START, START - timedelta(hours=2), START + timedelta(hours=2)),
        (None, START, None, None),
        ("@once", START, None, None),
    ],
)
def test_the_times_around_a_date(schedule: Any, moment: datetime, before: datetime | None, after: datetime | None) -> None:
    dag = DAG("d", schedule=schedule, start_date=START)
    assert (dag.previous_schedule(moment), dag.following_schedule(moment)) == (before, after)
    assert dag.following_schedule(moment.replace(tzinfo=None)) == after


def test_the_times_are_those_of_the_time_zone_of_the_dag() -> None:
    import pendulum

    dag = DAG("d", schedule="0 6 * * *", start_date=pendulum.datetime(2024, 1, 1, tz="Asia/Seoul"))
    assert dag.following_schedule(START) == datetime(2024, 1, 1, 21, tzinfo=UTC)


def test_the_times_between_two_dates() -> None:
    dag = DAG("d", schedule="@daily", start_date=START)
    assert dag.get_run_dates(START, START + 2 * DAY) == [START, START + DAY, START + 2 * DAY]
    assert dag.date_range(START, num=2) == [START, START + DAY]
    assert DAG("h", schedule=timedelta(hours=12)).get_run_dates(START, START + DAY) == [START, START + DAY / 2, START + DAY]
    assert DAG("e", schedule=None).get_run_dates(START, START + DAY) == []


def test_a_task_asks_for_the_runs_of_its_dag(world: World) -> None:
    dag = DAG("d", schedule=None)
    assert (dag.get_last_dagrun(), dag.has_dag_runs(), dag.latest_execution_date, dag.get_dagrun(START)) == (
        None,
        False,
        None,
        None,
    )
    date = int(START.timestamp() * 1_000_000)
    world.runs = [{"run_id": "r", "logical_date": date, "run_type": "manual", "state": "running", "conf": {}}]
    last = dag.get_last_dagrun(include_externally_triggered=True)
    assert last is not None
    assert (last.run_id, last.execution_date) == ("r", START)
    assert (dag.get_num_active_runs(), dag.get_active_runs(), dag.latest_execution_date) == (1, [START], START)
    assert FindRuns(0, "d", run_types=(), at_most=1) in world.questions


def test_without_a_task_nobody_can_answer() -> None:
    with pytest.raises(DatabaseNotReachable, match="while no task is running"):
        _ = DAG("d", schedule=None).is_paused


def test_sub_dag_is_partial_subset() -> None:
    with DAG("d", schedule=None) as dag:
        BaseOperator(task_id="a") >> BaseOperator(task_id="b")
        BaseOperator(task_id="c")
    assert dag.sub_dag("b").task_ids == dag.partial_subset("b").task_ids == ["a", "b"]


def test_checks_of_tests_for_airflow_1_and_2(tmp_path: Path) -> None:
    with DAG("d", schedule=None) as dag:
        first, second = BaseOperator(task_id="a"), BaseOperator(task_id="b")
        first >> second
    assert dag.test_cycle() is False
    dag.validate_schedule_and_params()
    (tmp_path / "about.md").write_text("what it does")
    dag.fileloc = str(tmp_path / "dag.py")
    assert (dag.get_doc_md("about.md"), dag.get_doc_md("text"), dag.get_doc_md(None)) == ("what it does", "text", None)
    second >> first
    for check in (dag.test_cycle, dag.validate_schedule_and_params):
        with pytest.raises(CycleError):
            check()


def test_older_methods_of_a_connection() -> None:
    connection = Connection("db", "postgres", host="h", login="me", password="secret", port=1, extra='{"a": "b"}')
    line = connection.log_info()
    assert "Host: h, Port: 1" in line
    assert "secret" not in line
    connection.parse_from_uri("mysql://you@other/s")
    assert (connection.conn_type, connection.host, connection.login, connection.password) == ("mysql", "other", "you", None)
