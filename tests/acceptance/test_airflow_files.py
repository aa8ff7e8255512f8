"""DAG files that import `airflow`, of three generations, run unchanged."""

from __future__ import annotations

from tests.acceptance.harness import Standalone

OF_1_10 = """
from datetime import timedelta

from airflow import DAG
from airflow.operators.bash_operator import BashOperator
from airflow.operators.dummy_operator import DummyOperator
from airflow.operators.python_operator import BranchPythonOperator, PythonOperator
from airflow.utils.dates import days_ago

default_args = {
    "owner": "airflow",
    "depends_on_past": False,
    "start_date": days_ago(2),
    "retries": 1,
    "retry_delay": timedelta(minutes=5),
}

dag = DAG("of_1_10", default_args=default_args, schedule_interval=None, catchup=False)


def choose(**context):
    assert context["execution_date"] == context["dag_run"].execution_date
    return "right"


start = DummyOperator(task_id="start", dag=dag)
branch = BranchPythonOperator(task_id="branch", python_callable=choose, provide_context=True, dag=dag)
left = BashOperator(task_id="left", bash_command="exit 1", dag=dag)
right = BashOperator(
    task_id="right", bash_command="echo {{ ds }} {{ params.word }}", params={"word": "hello"}, xcom_push=True, dag=dag
)
end = PythonOperator(task_id="end", python_callable=lambda: None, trigger_rule="none_failed_or_skipped", dag=dag)
start >> branch >> [left, right] >> end
"""

OF_2 = """
import pendulum
from airflow.decorators import dag, task
from airflow.models import Variable
from airflow.models.baseoperator import chain
from airflow.operators.empty import EmptyOperator
from airflow.utils.task_group import TaskGroup


@dag(schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False, tags=["two"])
def of_2():
    @task
    def numbers():
        return [1, 2, int(Variable.get("third", default_var=3))]

    @task
    def double(number):
        return 2 * number

    @task
    def total(found):
        print("total", sum(found))

    with TaskGroup("around"):
        before = EmptyOperator(task_id="before")
    chain(before, total(double.expand(number=numbers())))


of_2()
"""

OF_3 = """
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Param, get_current_context, task

with DAG("of_3", schedule=None, params={"who": Param("you", type="string")}):

    @task
    def greet():
        context = get_current_context()
        print("hello", context["params"]["who"], context["ti"].task_id)

    greet() >> BashOperator(task_id="say", bash_command="echo {{ params.who }}")
"""


def test_dag_files_of_three_generations_run_unchanged(fresh: Standalone) -> None:
    for name, text in (("one.py", OF_1_10), ("two.py", OF_2), ("three.py", OF_3)):
        fresh.write_dag(name, text)
    fresh.start()
    expected = {
        "of_1_10": {"start": "success", "branch": "success", "left": "skipped", "right": "success", "end": "success"},
        "of_2": {"around.before": "success", "numbers": "success", "double": "success", "total": "success"},
        "of_3": {"greet": "success", "say": "success"},
    }
    for dag_id, states in expected.items():
        fresh.wait_dag(dag_id)
        fresh.cli("dags", "unpause", dag_id)
        done = fresh.run("dags", "trigger", dag_id, "-r", "r", "--wait", "--timeout", "60")
        assert done.returncode == 0, done.stdout + done.stderr
        found = {one["task_id"]: one["state"] for one in fresh.json("tasks", "states-for-dag-run", dag_id, "r")}
        assert found == states
    assert "hello" in fresh.cli("tasks", "logs", "of_1_10", "right", "r")
    assert "total 12" in fresh.cli("tasks", "logs", "of_2", "total", "r")
