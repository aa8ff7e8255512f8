"""What DAG files for Airflow 1 and 2 ask about other DAGs, and do to them: `DagRun.find`, `trigger_dag`, XComs of sub-DAGs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import tradewind.airflow  # noqa: F401  Airflow's names
from tests.unit.execution.world import World, carry_out, installed, pushed, workload
from tradewind.execution.run_task import TaskResult
from tradewind.execution.task_instance import TaskInstance
from tradewind.model.errors import NotYetSupported
from tradewind.sdk.dag import DAG
from tradewind.wire.messages import FindRuns, TriggerRun, XComPull

DAY1, DAY2 = datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 3, 2, tzinfo=UTC)


def micros(date: datetime) -> int:
    return int(date.timestamp() * 1_000_000)


def row(run_id: str, date: datetime, run_type: str = "scheduled", state: str = "success") -> dict[str, Any]:
    return {"run_id": run_id, "logical_date": micros(date), "run_type": run_type, "state": state, "conf": {"n": 1}}


@pytest.fixture
def world() -> Iterator[World]:
    with installed() as found:
        yield found


def in_a_task(function: Any) -> TaskResult:
    from airflow.operators.python import PythonOperator

    with DAG("d", schedule=None):
        task = PythonOperator(task_id="t", python_callable=function)
    return carry_out(task)


def test_the_latest_run_of_another_dag(world: World) -> None:
    """As many public DAG files find the date for an `ExternalTaskSensor`."""
    from airflow.models import DagRun

    world.runs = [row("r1", DAY1), row("r2", DAY2)]
    runs = DagRun.find(dag_id="other")
    runs.sort(key=lambda run: run.execution_date, reverse=True)
    assert (runs[0].run_id, runs[0].dag_id, runs[0].conf) == ("r2", "other", {"n": 1})
    (asked,) = world.questions
    assert asked == FindRuns(0, "other")


def test_the_filters_of_airflow_2_and_3(world: World) -> None:
    from airflow.models import DagRun
    from airflow.utils.state import DagRunState

    world.runs = [row("r1", DAY1), row("r2", DAY2, "manual", "failed")]
    assert [run.run_id for run in DagRun.find(dag_id=["a", "b"], state=DagRunState.FAILED)] == ["r2", "r2"]
    assert [run.run_id for run in DagRun.find("a", execution_date=DAY1)] == ["r1"]
    assert [run.run_id for run in DagRun.find("a", external_trigger=True, execution_start_date=DAY1)] == ["r2"]
    assert [run.run_id for run in DagRun.find("a", external_trigger=False, no_backfills=True)] == ["r1"]
    assert world.questions[-2] == FindRuns(
        0, "a", run_types=("manual", "operator_triggered", "asset_materialization"), start=micros(DAY1)
    )
    world.runs = None
    assert DagRun.find("nothing") == []
    world.tables = {"dag": [{"dag_id": "a"}, {"dag_id": "b"}]}
    DagRun.find(state="failed")
    asked_last = world.questions[-2:]
    assert [question.dag_id for question in asked_last if isinstance(question, FindRuns)] == ["a", "b"], "of all DAGs"


def test_an_xcom_of_the_run_of_another_date(world: World) -> None:
    from airflow.models import XCom

    world.runs = [row("r1", DAY1)]

    def function() -> list[Any]:
        found = XCom.get_one(DAY1, key="k", task_id="t", dag_id="other")
        world.runs = []
        return [found, XCom.get_one(execution_date=DAY2, key="k", task_id="t", dag_id="other")]

    result = in_a_task(function)
    assert pushed(result)["return_value"] == [None, None], result.reason
    pulls = [question for question in world.questions if isinstance(question, XComPull)]
    assert [(one.dag_id, one.run_id, one.task_ids, one.key) for one in pulls] == [("other", "r1", ("t",), "k")]


def test_the_last_run(world: World) -> None:
    from airflow.models.dag import get_last_dagrun

    assert get_last_dagrun("a", None) is None
    world.runs = [row("r2", DAY2)]
    assert get_last_dagrun("a", None, include_externally_triggered=True).execution_date == DAY2
    assert [question.run_types for question in world.questions if isinstance(question, FindRuns)] == [
        ("scheduled", "backfill", "asset_triggered"),
        (),
    ]


def test_a_task_triggers_a_dag(world: World) -> None:
    from airflow.api.client.local_client import Client
    from airflow.api.common.experimental.trigger_dag import trigger_dag

    world.runs = [row("made", DAY1, "manual")]

    def function() -> list[Any]:
        first = Client(None, None).trigger_dag("other", run_id="made", conf='{"a": 1}')
        second = trigger_dag("other", execution_date=datetime(2024, 3, 1, 0, 0, 0, 5, tzinfo=UTC))
        return [first.run_id, str(second.execution_date)]

    result = in_a_task(function)
    assert pushed(result)["return_value"][0] == "made", result.reason
    first, second = (question for question in world.questions if isinstance(question, TriggerRun))
    assert (first.dag_id, first.run_id, first.conf) == ("other", "made", {"a": 1})
    assert second.logical_date == micros(DAY1), "without microseconds"
    world.triggers = {"done": "exists", "run_id": "made", "logical_date": None}
    assert "the run 'made' of DAG 'other' exists already" in (in_a_task(function).reason or "")
    with pytest.raises(NotYetSupported, match="can only trigger DAGs and change pools"):
        Client().delete_dag("p")


def test_the_xcoms_of_a_sub_dag_are_those_of_the_group(world: World) -> None:
    from airflow.operators.empty import EmptyOperator
    from airflow.operators.subdag import SubDagOperator

    with DAG("parent", schedule=None) as dag:
        with DAG("parent.child", schedule=None) as child:
            EmptyOperator(task_id="inner")
        with pytest.warns(DeprecationWarning, match="SubDagOperator becomes a TaskGroup"):
            SubDagOperator(task_id="child", subdag=child)
        task = EmptyOperator(task_id="t")
    assert "inner" in dag.task_ids
    ti = TaskInstance(task, workload("t", dag_id="parent"))
    world.xcoms["inner", "return_value", -1] = "value"
    assert ti.xcom_pull(dag_id="parent.child", task_ids="inner") == "value"
    ti.xcom_pull(dag_id="other", task_ids="inner")
    pulls = [question for question in world.questions if isinstance(question, XComPull)]
    assert [pull.dag_id for pull in pulls] == ["parent", "other"]


def test_names_that_provider_packages_of_2025_import() -> None:
    from airflow.sdk import Asset
    from airflow.sdk.definitions.timetables.assets import AssetTriggeredTimetable
    from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType

    assert ErrorType("CONNECTION_NOT_FOUND") is ErrorType.CONNECTION_NOT_FOUND
    assert AirflowRuntimeError("no answer").error is None
    assert AssetTriggeredTimetable([Asset("orders")]).summary == "Asset"
