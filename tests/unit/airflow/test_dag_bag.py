"""`DagBag`, and the test kit, for files that import `airflow`."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow.models import DagBag  # isort: skip

GOOD = """
from airflow import DAG
from airflow.operators.python import PythonOperator

with DAG("{dag_id}", schedule=None) as dag:
    PythonOperator(task_id="a", python_callable=lambda ds=None: "x") >> PythonOperator(task_id="b", python_callable=print)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "team").mkdir()
    (tmp_path / "one.py").write_text(GOOD.format(dag_id="one"))
    (tmp_path / "team" / "two.py").write_text(GOOD.format(dag_id="two"))
    (tmp_path / "broken.py").write_text("from airflow import DAG\nDAG('broken', no_such_argument=1)\n")
    (tmp_path / "helper.py").write_text("raise RuntimeError('not read: neither word is in it')\n")
    return tmp_path


def test_a_bag_holds_the_dags_and_the_errors_of_a_folder(folder: Path) -> None:
    bag = DagBag(dag_folder=str(folder), include_examples=False)
    assert sorted(bag.dag_ids) == ["one", "two"]
    assert bag.size() == 2
    assert bag.get_dag("two").task_ids == ["a", "b"]
    assert bag.get_dag("three") is None
    (path,) = bag.import_errors
    assert path == str(folder / "broken.py")
    assert "no_such_argument" in bag.import_errors[path]
    assert "2 DAGs, 1 import errors" in bag.dagbag_report()


def test_a_bag_of_one_file(folder: Path) -> None:
    bag = DagBag(folder / "team" / "two.py")
    assert (bag.dag_ids, bag.import_errors) == (["two"], {})
    assert [dag.dag_id for dag in bag.process_file(str(folder / "one.py"))] == ["one"]


def test_a_file_that_makes_a_bag_of_its_folder_is_read_once(folder: Path) -> None:
    (folder / "broken.py").unlink()
    source = f"from airflow.models import DagBag\nfound = DagBag({str(folder)!r}).dag_ids\nfrom airflow import DAG\n"
    (folder / "all.py").write_text(source + "dag = DAG('all', schedule=None, tags=found)\n")
    bag = DagBag(folder)
    assert bag.import_errors == {}
    assert set(bag.get_dag("all").tags) == {"one", "two"}


def test_a_dag_that_imports_airflow_runs_in_the_test_kit(folder: Path) -> None:
    dag = DagBag(folder / "one.py").get_dag("one")
    run = dag.test()
    assert str(run.state) == "success"


OLD = """
from datetime import datetime
from airflow import DAG
from airflow.operators.bash_operator import BashOperator
from airflow.operators.python_operator import PythonOperator

dag = DAG("old", start_date=datetime(2020, 1, 1), schedule_interval=None)


def push(**kwargs):
    kwargs["ti"].xcom_push(key="pushed", value=[1, 2])


def pull(**kwargs):
    ti = kwargs["ti"]
    assert ti.xcom_pull(key=None, task_ids="push") == [1, 2]
    assert ti.xcom_pull(key=None, task_ids=["push", "give"]) == [[1, 2], "given"]
    assert ti.xcom_pull(key=None, task_ids="nothing") is None


first = PythonOperator(task_id="push", python_callable=push, provide_context=True, dag=dag)
second = PythonOperator(task_id="give", python_callable=lambda: "given", dag=dag)
third = PythonOperator(task_id="pull", python_callable=pull, provide_context=True, dag=dag)
third << [first, second]
BashOperator(task_id="empty", bash_command="test -z '{{ params.no_such_name }}'", dag=dag)
"""


def test_a_file_of_airflow_1_pulls_any_key_and_renders_unknown_names_as_nothing(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(OLD)
    dag = DagBag(tmp_path / "old.py").get_dag("old")
    run = dag.test()
    assert str(run.state) == "success"


def test_a_bag_of_several_files(folder: Path) -> None:
    bag = DagBag([folder / "one.py", str(folder / "team")], include_examples=False)
    assert (sorted(bag.dag_ids), bag.import_errors) == (["one", "two"], {})


READS = """
from airflow import DAG, settings
from airflow.hooks.base import BaseHook
from airflow.models import Connection, Variable

names = [row[0] for row in settings.Session().query(Connection.conn_id).all()]
owner = Variable.get("owner", default_var="nobody")
first = Variable.setdefault("first", {"a": 1}, deserialize_json=True)
again = Variable.get("first", deserialize_json=True)
try:
    Variable.get("missing")
except KeyError:
    names.append("no variable")
try:
    BaseHook.get_connection("missing")
except Exception as error:
    names.append(type(error).__name__)
dag = DAG("reads", schedule=None, tags=[*names, owner, *first, *again])
"""


def test_without_a_database_a_file_finds_no_variables_and_connections(tmp_path: Path) -> None:
    (tmp_path / "reads.py").write_text(READS)
    bag = DagBag(tmp_path)
    assert bag.import_errors == {}
    assert bag.get_dag("reads").tags == {"no variable", "AirflowNotFoundException", "nobody", "a"}


def test_ignore_files_are_honoured(folder: Path) -> None:
    (folder / ".airflowignore").write_text("broken.py\nteam\n")
    bag = DagBag(folder)
    assert (bag.dag_ids, bag.import_errors) == (["one"], {})


def test_a_dag_id_in_two_files_is_an_error_of_the_second(folder: Path) -> None:
    (folder / "broken.py").unlink()
    (folder / "team" / "three.py").write_text(GOOD.format(dag_id="one"))
    bag = DagBag(folder)
    path = str(folder / "team" / "three.py")
    assert list(bag.import_errors) == [path]
    assert f"Ignoring DAG one from {path} - also found in {folder / 'one.py'}" in bag.import_errors[path]


def test_statistics_of_the_files(folder: Path) -> None:
    found = {stat.file: (stat.dag_num, stat.task_num, stat.dags) for stat in DagBag(folder).dagbag_stats}
    assert found == {
        str(folder / "one.py"): (1, 2, "['one']"),
        str(folder / "team" / "two.py"): (1, 2, "['two']"),
    }
