"""Operators that Airflow has dropped: sub-DAGs, SQL operators of one database, conditional triggers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tradewind import DAG, TaskGroup, TriggerRule
from tradewind.model.errors import DefinitionError, NotFound
from tradewind.operators.empty import EmptyOperator
from tradewind.sdk.open_dags import collecting

from airflow.operators.dagrun_operator import TriggerDagRunOperator  # isort: skip
from airflow.operators.mysql_operator import MySqlOperator  # isort: skip
from airflow.operators.postgres_operator import PostgresOperator  # isort: skip
from airflow.operators.subdag_operator import SubDagOperator  # isort: skip

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def inner(parent: str, child: str, names: tuple[str, ...] = ("a", "b")) -> DAG:
    with DAG(f"{parent}.{child}", start_date=datetime(2026, 1, 1, tzinfo=UTC), params={"size": 3}) as made:
        previous: Any = None
        for name in names:
            task = EmptyOperator(task_id=name)
            if previous is not None:
                previous >> task
            previous = task
    return made


def test_a_sub_dag_is_a_task_group_of_the_outer_dag() -> None:
    with collecting() as collection, DAG("outer") as dag:
        start, end = EmptyOperator(task_id="start"), EmptyOperator(task_id="end")
        section = SubDagOperator(task_id="section", subdag=inner("outer", "section"))
        start >> section >> end
    assert dag.task_ids == ["start", "end", "a", "b"]
    assert dag.get_task("a").upstream_task_ids == {"start"}
    assert dag.get_task("b").upstream_task_ids == {"a"}
    assert end.upstream_task_ids == {"b"}
    assert isinstance(dag["section"], TaskGroup)
    assert dag.get_task("a").task_group is section
    assert dag.get_task("a").params["size"] == 3
    dag.validate()
    assert [found.dag_id for found in collection.found({}).dags] == ["outer"]


def test_ids_that_are_taken_get_the_group_before_them() -> None:
    dag = DAG("outer")
    for name in ("first", "second"):
        SubDagOperator(task_id=name, subdag=inner("outer", name), dag=dag)
    assert dag.task_ids == ["a", "b", "second.a", "second.b"]
    assert dag.get_task("second.b").upstream_task_ids == {"second.a"}


def test_a_subclass_may_make_its_dag_itself() -> None:
    """It calls the constructor of the class above SubDagOperator, as subclasses for Airflow 1 and 2 do."""

    class Section(SubDagOperator):
        def __init__(self, *args: Any, names: tuple[str, ...], **kwargs: Any) -> None:
            super(SubDagOperator, self).__init__(*args, **kwargs)
            found: Any = self
            assert found.subdag is None
            self.subdag = inner("outer", names[0])

    with DAG("outer") as dag:
        first = Section(task_id="first", names=("x",), trigger_rule="all_done")
        first >> Section(task_id="second", names=("y",), pool="p", executor=object())
    assert dag.task_ids == ["a", "b", "second.a", "second.b"]
    assert first.subdag is not None
    assert first.subdag.dag_id == "outer.x"
    assert dag.get_task("a").unmap(None) is dag.get_task("a")
    assert dag.get_task("a").trigger_rule == "all_done"
    assert dag.get_task("second.a").upstream_task_ids == {"b"}


def test_the_groups_of_a_sub_dag_stay_groups() -> None:
    with DAG("outer.section") as section:
        with TaskGroup("box"):
            EmptyOperator(task_id="x")
        EmptyOperator(task_id="y") >> section.get_task("box.x")
    with DAG("outer") as dag:
        SubDagOperator(task_id="section", subdag=section, executor=object())
    assert dag.task_ids == ["box.x", "y"]
    assert dag.task_group_dict["box"].parent_group is dag.task_group_dict["section"]
    assert dag.get_task("box.x").upstream_task_ids == {"y"}


def test_the_id_of_a_sub_dag_operator_names_its_group() -> None:
    with DAG("outer") as outer:
        start = EmptyOperator(task_id="start")
        group = SubDagOperator(task_id="inner", subdag=inner("outer", "inner"))
    assert outer.has_task("inner")
    assert outer.get_task("inner") is group
    outer.set_dependency("start", "inner")
    assert start.downstream_task_ids == {"a"}
    with pytest.raises(NotFound, match="has no task 'other'"):
        outer.get_task("other")


def test_its_trigger_rule_is_that_of_its_first_tasks() -> None:
    with DAG("outer") as dag:
        SubDagOperator(task_id="section", subdag=inner("outer", "section"), trigger_rule="all_done")
    assert dag.get_task("a").trigger_rule is TriggerRule.ALL_DONE
    assert dag.get_task("b").trigger_rule is TriggerRule.ALL_SUCCESS


def test_a_sub_dag_must_be_a_dag() -> None:
    with DAG("outer"), pytest.raises(DefinitionError, match="must be a DAG"):
        SubDagOperator(task_id="section", subdag="outer.section")


def test_sql_operators_of_one_database_take_their_own_arguments() -> None:
    with DAG("d"):
        task = PostgresOperator(task_id="p", sql="SELECT 1", postgres_conn_id="warehouse", runtime_parameters={"a": "b"})
        assert (task.conn_id, task.postgres_conn_id, task.hook_params) == ("warehouse", "warehouse", {"options": "-c a=b"})
        assert MySqlOperator(task_id="m", sql="SELECT 1", database="shop").conn_id == "mysql_default"


class Pushed:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.values[key] = value


def test_a_conditional_trigger_asks_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    triggered: list[dict[str, Any]] = []

    class Made:
        done, run_id, logical_date = "created", "r1", None

    def trigger(ti: Any, dag_id: str, **given: Any) -> Made:
        triggered.append(given)
        return Made()

    monkeypatch.setattr("tradewind.operators.trigger_dagrun.trigger_run", trigger)

    def condition(context: Any, order: Any) -> Any:
        order.payload = {"message": context["params"]["message"]}
        return order if context["params"]["condition"] else None

    with DAG("d"):
        task = TriggerDagRunOperator(task_id="t", trigger_dag_id="other", python_callable=condition)
    task.execute({"ti": Pushed(), "params": {"condition": False, "message": "no"}})
    assert triggered == []
    task.execute({"ti": Pushed(), "params": {"condition": True, "message": "yes"}})
    assert triggered[0]["conf"] == {"message": "yes"}


def test_dag_task_makes_a_task_of_that_dag() -> None:
    dag = DAG("d")

    @dag.task
    def one() -> int:
        return 1

    @dag.task.branch(task_id="choose")
    def two() -> str:
        return "one"

    one() >> two()
    assert dag.task_ids == ["one", "choose"]


def test_renamed_arguments_of_the_shell_and_of_other_interpreters() -> None:
    from airflow.operators.bash import BashOperator
    from airflow.operators.python import ExternalPythonOperator

    def function() -> None:
        """Runs elsewhere."""

    dag = DAG("d", schedule=None)
    with pytest.warns(DeprecationWarning, match="skip_exit_code was renamed to skip_on_exit_code"):
        shell = BashOperator(task_id="a", bash_command="exit 9", skip_exit_code=9, dag=dag)
    assert 9 in shell.skip_on_exit_code
    other = ExternalPythonOperator(
        task_id="b", python="/usr/bin/python3", python_callable=function, expect_pendulum=True, dag=dag
    )
    assert other.expect_pendulum
