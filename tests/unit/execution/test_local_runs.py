"""Runs that tests of DAG files create and execute in their own process: `dag.create_dagrun`, `dag.run`, `task.run`, `ti.run`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tradewind import DAG, Variable
from tradewind.airflow.compat.xcom import XCom
from tradewind.execution import local_database
from tradewind.execution.local_database import LocalDatabase
from tradewind.execution.task_instance import DagRun, TaskInstance
from tradewind.model.errors import NotYetSupported
from tradewind.operators.bash import BashOperator
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.python import BranchPythonOperator, PythonOperator, ShortCircuitOperator
from tradewind.sdk.decorators import task
from tradewind.sdk.exceptions import AirflowException, AirflowSkipException
from tradewind.wire import runtime

START = datetime(2024, 3, 5, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def database() -> Iterator[LocalDatabase]:
    yield local_database.database()
    local_database.close_database()
    assert not runtime.is_installed()


def pushing(ti: Any) -> str:
    ti.xcom_push("two", 2)
    return "one"


def daily() -> DAG:
    with DAG("daily", schedule="@daily", start_date=START) as dag:
        first = PythonOperator(task_id="first", python_callable=pushing)
        second = PythonOperator(
            task_id="second", python_callable=lambda ti: [ti.xcom_pull(task_ids="first"), ti.xcom_pull("first", key="two")]
        )
        first >> second
    return dag


def test_a_run_is_created_and_its_tasks_run_one_by_one() -> None:
    dag = daily()
    run = dag.create_dagrun(
        state="running", execution_date=START, data_interval=(START, START + DAY), start_date=START + DAY, run_type="manual"
    )
    assert (run.run_id, run.logical_date, run.data_interval_end) == ("manual__2024-03-05T00:00:00+00:00", START, START + DAY)
    ti = run.get_task_instance("first")
    ti.task = dag.get_task("first")
    assert (ti.state, ti.get_template_context()["ds"], ti.dag_run) == (None, "2024-03-05", run)
    ti.run(ignore_ti_state=True)
    assert (ti.state, ti.xcom_pull(task_ids="first"), ti.xcom_pull(key="two")) == ("success", "one", 2)
    second = TaskInstance(task=dag.get_task("second"), execution_date=START)
    assert second.run_id == run.run_id, "the run of this date"
    assert second.are_dependencies_met()
    second.run()
    assert second.xcom_pull(task_ids="second") == ["one", 2]
    assert {one.task_id: one.state for one in run.get_task_instances()} == {"first": "success", "second": "success"}
    assert XCom.get_one(execution_date=START, key="two", task_id="first", dag_id="daily") == 2
    assert XCom.get_one(run_id=run.run_id, key="three", task_id="first", dag_id="daily") is None
    run.update_state()
    assert DagRun.find(dag_id="daily", state="success")[0].run_id == run.run_id
    assert [one.dag_id for one in DagRun.find()] == ["daily"], "of all DAGs"


@pytest.mark.parametrize(("kind", "end"), [("manual", START), ("scheduled", START + DAY)])
def test_without_an_interval_a_run_has_that_of_the_schedule(kind: str, end: datetime) -> None:
    run = daily().create_dagrun(logical_date=START, run_type=kind, state="running", conf={"n": 1})
    assert (run.data_interval_end, run.run_after, run.conf, run.run_type) == (end, end, {"n": 1}, kind)


def test_a_run_is_replaced_by_one_with_the_same_id(database: LocalDatabase) -> None:
    dag = daily()
    dag.create_dagrun(run_id="r", state="queued")
    assert dag.create_dagrun(run_id="r", state="running").state == "running"
    assert [run.facts["state"] for run in database.of_dag("daily")] == ["running"]


def test_the_oldest_runs_are_dropped(database: LocalDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_database, "RUNS_MAX", 2)
    dag = daily()
    for name in ("a", "b", "c"):
        dag.create_dagrun(run_id=name)
    assert [run_id for _, run_id in database.runs] == ["b", "c"]


def failing() -> None:
    raise ValueError("no")


def skipping() -> None:
    raise AirflowSkipException


def test_states_and_callbacks_follow_from_the_result() -> None:
    called: list[str] = []
    with DAG("d", schedule=None, start_date=START) as dag:
        PythonOperator(task_id="skips", python_callable=skipping, on_skipped_callback=lambda context: called.append("skipped"))
        PythonOperator(
            task_id="fails", python_callable=failing, on_failure_callback=lambda c: called.append(str(c["exception"]))
        )
        PythonOperator(task_id="again", python_callable=failing, retries=1)
    run = dag.create_dagrun(run_id="r", logical_date=START, state="running")
    run.get_task_instance("skips").run()
    for name in ("fails", "again"):
        with pytest.raises(ValueError, match="no"):
            run.get_task_instance(name).run()
    assert {one.task_id: one.state for one in run.get_task_instances()} == {
        "skips": "skipped",
        "fails": "failed",
        "again": "up_for_retry",
    }
    assert called == ["skipped", "no"]
    assert [one.task_id for one in run.get_task_instances(state="failed")] == ["fails"]
    run.get_task_instance("fails").set_state("success")
    assert TaskInstance(dag.get_task("fails"), run_id="r").current_state() == "success"


def test_a_branch_skips_the_tasks_that_it_did_not_choose() -> None:
    with DAG("d", schedule=None, start_date=START) as dag:
        branch = BranchPythonOperator(task_id="branch", python_callable=lambda: "left")
        stop = ShortCircuitOperator(task_id="stop", python_callable=lambda: False)
        branch >> [EmptyOperator(task_id="left"), EmptyOperator(task_id="right")]
        stop >> EmptyOperator(task_id="near") >> EmptyOperator(task_id="far")
    run = dag.create_dagrun(run_id="r", logical_date=START)
    run.get_task_instance("branch").run()
    run.get_task_instance("stop").run()
    states = {one.task_id: one.state for one in run.get_task_instances()}
    assert states == {
        "branch": "success",
        "left": None,
        "right": "skipped",
        "stop": "success",
        "near": "skipped",
        "far": "skipped",
    }


def test_an_operator_runs_alone_for_each_date() -> None:
    dates: list[str] = []
    with DAG("d", schedule="@daily", start_date=START) as dag:
        one = PythonOperator(task_id="one", python_callable=dates.append, op_args=["{{ ds }}"])
        PythonOperator(task_id="two", python_callable=failing)
        templated = BashOperator(task_id="bash", bash_command="test {{ ds }} = 2024-03-05")
    one.run(start_date=START, end_date=START + 2 * DAY, ignore_ti_state=True)
    assert dates == ["2024-03-05", "2024-03-06", "2024-03-07"]
    templated.run(START, START)
    assert templated.bash_command == "test {{ ds }} = 2024-03-05", "the task itself keeps its template"
    with pytest.raises(ValueError, match="no"):
        dag.get_task("two").run(start_date=START, end_date=START)
    assert [ti.state for ti in dag.get_task_instances(START, START)] == ["success", "failed", "success"]
    assert one.clear(start_date=START, end_date=START) == 1
    assert dag.get_task_instances(START, START)[0].state is None
    assert dag.clear() == 4


def test_a_later_dag_of_the_same_id_uses_the_run_of_the_former() -> None:
    for name in ("a", "b"):
        with DAG("d", schedule="@daily", start_date=START) as dag:
            one = EmptyOperator(task_id=name)
        one.run(START, START)
        assert [ti.task_id for ti in dag.get_task_instances(START, START)] == [name]
    assert len(DagRun.find(dag_id="d")) == 1


def test_a_dag_runs_for_each_date() -> None:
    dag = daily()
    dag.clear()
    dag.run(start_date=START, end_date=START + DAY, executor=None, local=True)
    found = DagRun.find(dag_id="daily")
    assert [(run.logical_date, run.state) for run in found] == [(START, "success"), (START + DAY, "success")]
    ti = TaskInstance(dag.get_task("second"), execution_date=START + DAY)
    assert (ti.current_state(), ti.xcom_pull(task_ids="second")) == ("success", ["one", 2])


def test_a_failed_run_of_a_dag_is_an_error_and_is_kept() -> None:
    with DAG("d", schedule=None, start_date=START) as dag:
        PythonOperator(task_id="fails", python_callable=failing)
    with pytest.raises(AirflowException, match=r"runs of DAG 'd' have failed: manual__.*: fails"):
        dag.run(start_date=START, end_date=START)
    assert [run.state for run in DagRun.find(dag_id="d")] == ["failed"]
    dag.run(start_date=START, end_date=START, mark_success=True)


def test_too_many_dates_are_refused() -> None:
    dag = DAG("d", schedule="@hourly", start_date=datetime(2000, 1, 1, tzinfo=UTC))
    with pytest.raises(AirflowException, match="more than 1000 dates; give an end_date"):
        dag.run()
    with pytest.raises(AirflowException, match="has no start_date"):
        DAG("e", schedule=None).run()


def test_a_variable_that_a_test_sets_is_seen_by_the_test_kit() -> None:
    Variable.set("bucket", "ours")
    with DAG("d", schedule=None) as dag:

        @task
        def read() -> str:
            return str(Variable.get("bucket"))

        read()
    assert Variable.get("bucket") == "ours"
    tested = dag.test()
    assert tested.get_task_instance("read").xcom_pull() == "ours"
    assert [run.state for run in DagRun.find(dag_id="d")] == ["success"], "the runs of dag.test() are kept, too"
    assert (Variable.keys(), Variable.keys("c"), Variable.delete("bucket")) == (["bucket"], [], 1)


class Elsewhere:
    """A runtime as a scheduler installs it."""

    def ask(self, question: Any) -> Any:
        raise AssertionError(question)

    def read_spill(self, name: str) -> bytes:
        raise AssertionError(name)


def test_in_a_process_of_a_scheduler_it_is_refused() -> None:
    dag = daily()
    with runtime.installed(Elsewhere()):
        for call in (
            lambda: dag.create_dagrun(state="running"),
            dag.run,
            dag.clear,
            lambda: dag.get_task("first").run(START, START),
        ):
            with pytest.raises(NotYetSupported, match=r"needs Airflow's database"):
                call()


def test_a_dry_run_renders_a_copy() -> None:
    with DAG("d", schedule=None, start_date=START):
        bash = BashOperator(task_id="bash", bash_command="echo {{ ds }}")
    ti = TaskInstance(bash, START)
    ti.dry_run()
    assert (ti.task.bash_command, bash.bash_command) == ("echo 2024-03-05", "echo {{ ds }}")


def test_set_state_sets_the_dates_of_a_run() -> None:
    run = daily().create_dagrun(logical_date=START, run_type="manual", state="queued")
    assert (run.start_date, run.end_date) == (None, None)
    run.set_state("running")
    began = run.start_date
    assert began is not None
    run.set_state("success")
    ended = run.end_date
    assert (run.start_date, ended >= began) == (began, True)
    run.set_state("failed")
    assert run.end_date == ended
    run.set_state("running")
    assert (run.start_date >= ended, run.end_date) == (True, None)
    run.set_state("queued")
    assert (run.start_date, run.queued_at >= ended) == (None, True)


def test_a_task_instance_whose_task_was_deleted_has_none() -> None:
    run = daily().create_dagrun(logical_date=START, run_type="manual", state="queued")
    ti = run.get_task_instances()[0]
    del ti.task
    assert ti.task is None


def test_a_task_that_was_skipped_by_another_one_stays_skipped() -> None:
    with DAG("short", schedule=None, start_date=START) as dag:
        stop = ShortCircuitOperator(task_id="stop", python_callable=lambda: False)
        stop >> PythonOperator(task_id="later", python_callable=failing)
    run = dag.create_dagrun(logical_date=START, run_type="manual")
    run.get_task_instance("stop").run()
    run.get_task_instance("later").run()
    assert run.get_task_instance("later").state == "skipped"
    with pytest.raises(ValueError, match="no"):
        run.get_task_instance("later").run(ignore_ti_state=True)


def test_a_run_has_no_asset_events_outside_of_a_task() -> None:
    assert daily().create_dagrun(logical_date=START, run_type="manual").consumed_asset_events == []


def test_templates_of_a_mapped_instance() -> None:
    with DAG("mapped", schedule=None, start_date=START) as dag:
        BashOperator.partial(task_id="echo").expand(bash_command=["echo {{ ds }}", "echo {{ run_id }}"])
    run = dag.create_dagrun(logical_date=START, run_type="manual", run_id="r1")
    found = [run.get_task_instance("echo", map_index=index).render_templates() for index in (0, 1)]
    assert [task.bash_command for task in found] == ["echo 2024-03-05", "echo r1"]


def test_variables_are_set_and_deleted_with_a_session() -> None:
    local_database.open_database()
    Variable.set("region", "eu", session=object())
    assert Variable.get("region") == "eu"
    assert Variable.delete("region", session=object()) == 1
    assert Variable.get("region", default=None) is None
