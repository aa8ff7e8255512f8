"""Names of Airflow 1 and 2 with which tests of provider packages create, change and execute runs in their own process."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from airflow.models import DAG, XCom
from airflow.models.baseoperator import BaseOperator, BaseOperatorLink
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.operators.python import PythonOperator
from airflow.providers_manager import ProvidersManager
from airflow.utils.types import DagRunType

from tradewind.execution import local_database

DATE = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def dag() -> Iterator[Any]:
    local_database.close_database()
    yield DAG("older", start_date=DATE, schedule="@daily")
    local_database.close_database()


def test_the_raw_task_runs(dag: Any) -> None:
    task = PythonOperator(task_id="a", python_callable=lambda: 5, dag=dag)
    run = dag.create_dagrun(run_id="r", state="running", execution_date=DATE)
    ti = run.task_instances[0]
    ti.task = task
    ti._run_raw_task()
    ti.refresh_from_db()
    assert (ti.state, ti.xcom_pull(task_ids="a")) == ("success", 5)
    ti.clear_xcom_data()
    assert ti.xcom_pull(task_ids="a") is None
    assert ti.get_dagrun(session=None) is run


def test_a_failure_calls_the_callback_and_sets_the_state(dag: Any) -> None:
    seen = mock.Mock()
    PythonOperator(task_id="a", python_callable=print, on_failure_callback=seen, dag=dag)
    ti = dag.create_dagrun(run_id="r", state="running", execution_date=DATE).get_task_instance("a")
    ti.handle_failure("broken")
    assert (ti.state, seen.call_count) == ("failed", 1)
    assert not ti.is_eligible_to_retry()


def test_a_retry_follows_if_the_task_has_retries(dag: Any) -> None:
    PythonOperator(task_id="a", python_callable=print, retries=1, dag=dag)
    ti = dag.create_dagrun(run_id="r", state="running", execution_date=DATE).get_task_instance("a")
    assert ti.is_eligible_to_retry()
    ti.handle_failure("broken")
    assert ti.state == "up_for_retry"
    ti.handle_failure("broken", force_fail=True)
    assert ti.state == "failed"


def test_columns_can_be_set(dag: Any) -> None:
    PythonOperator(task_id="a", python_callable=print, dag=dag)
    ti = dag.create_dagrun(run_id="r", state="running", execution_date=DATE).get_task_instance("a")
    ti.hostname, ti.queued_dttm, ti.unixname, ti._try_number, ti.job_id = "host", DATE, "root", 3, 7
    assert (ti.hostname, ti.queued_dttm, ti.unixname, ti.try_number, ti.next_try_number) == ("host", DATE, "root", 3, 4)
    assert ti.command_as_list(raw=True) == ["airflow", "tasks", "run", "older", "a", "r", "--raw"]


def test_names_of_a_dag_can_be_replaced_in_its_class(dag: Any) -> None:
    with mock.patch("airflow.models.dag.DAG.create_dagrun", return_value="replaced"):
        assert dag.create_dagrun() == "replaced"
    with mock.patch("airflow.models.DAG.clear"), mock.patch.object(TaskInstance, "handle_failure"):
        dag.clear()
    assert dag.normalize_schedule(datetime(2020, 1, 1, 5, tzinfo=UTC)) == datetime(2020, 1, 2, tzinfo=UTC)
    assert dag.is_fixed_time_schedule()
    assert not dag.concurrency_reached
    with mock.patch("airflow.providers_manager.ProvidersManager.initialize_providers_hooks") as called:
        ProvidersManager().initialize_providers_hooks()
    called.assert_called_once_with()


class NewLink(BaseOperatorLink):
    name = "new"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return str(XCom.get_value(ti_key=ti_key, key="address"))


class OldLink(BaseOperatorLink):
    name = "old"

    def get_link(self, operator: Any, dttm: Any) -> str:
        return str(XCom.get_one(dttm, "address", operator.task_id, operator.dag_id))


class Linked(BaseOperator):
    operator_extra_links = (NewLink(), OldLink())

    def execute(self, context: Any) -> None:
        context["ti"].xcom_push("address", "http://there")


def test_extra_links_read_what_a_test_has_pushed(dag: Any) -> None:
    task = Linked(task_id="a", dag=dag)
    dag.create_dagrun(run_id="r", state="running", execution_date=DATE)
    ti = TaskInstance(task, DATE)
    ti.run()
    assert [task.get_extra_links(ti, name) for name in ("new", "old", "other")] == ["http://there", "http://there", None]
    assert task.get_extra_links(DATE, "new") == "http://there"
    assert task.extra_links == ["new", "old"]
    XCom.set(key="address", value="http://set", task_id="a", dag_id="older", run_id="r")
    assert task.operator_extra_link_dict["new"].get_link(task, ti_key=ti.key) == "http://set"
    XCom.set("address", "http://by-date", DATE, "a", "older")
    assert task.get_extra_links(DATE, "old") == "http://by-date"


def test_the_priority_weight_of_a_task_with_its_downstream_tasks(dag: Any) -> None:
    first, second = (PythonOperator(task_id=name, python_callable=print, priority_weight=3, dag=dag) for name in "ab")
    first >> second
    assert (first.priority_weight_total, second.priority_weight_total) == (6, 3)


def test_the_table_of_xcoms_has_the_methods_of_xcom(dag: Any) -> None:
    PythonOperator(task_id="a", python_callable=print, dag=dag)
    dag.create_dagrun(run_id="r", state="running", execution_date=DATE)
    XComModel.set(key="k", value=[1], task_id="a", dag_id="older", run_id="r")
    assert XCom.get_one(run_id="r", key="k", dag_id="older", task_id="a") == [1]


def test_a_run_is_made_with_the_type_as_a_member_or_a_text() -> None:
    made = [DagRun(dag_id="d", run_id="r", run_type=given) for given in (DagRunType.MANUAL, "manual")]
    assert {run.run_type for run in made} == {DagRunType.MANUAL}
