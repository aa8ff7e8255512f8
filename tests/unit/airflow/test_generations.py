"""Files of each generation of Airflow: how the generation is recognized, and what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tradewind.model.definition import CronSchedule, DagDefinition, DefinitionDefaults, DeltaSchedule, NoSchedule
from tradewind.model.errors import DuplicateTaskId, TradewindError
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.sdk.generation import generation_of
from tradewind.sdk.load import load_file
from tradewind.sdk.open_dags import collecting
from tradewind.settings import load as load_settings

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

AUTO = DefinitionDefaults(schedule_meaning="auto")


@pytest.mark.parametrize(
    ("line", "generation"),
    [
        ("from airflow.operators.bash_operator import BashOperator", 1),
        ("from airflow.contrib.hooks.ssh_hook import SSHHook", 1),
        ("from airflow.operators import PythonOperator", 1),
        ("from airflow import DAG\ndag = DAG('d', schedule_interval='@daily')", 2),
        ("from airflow.operators.python import PythonOperator\nDAG(schedule_interval=None)", 2),
        ("from airflow.operators.dummy import DummyOperator", 2),
        ("from airflow.operators.bash_operator import BashOperator\nfrom airflow.decorators import task", 2),
        ("from airflow.utils.dates import days_ago", 2),
        ("from airflow.datasets import Dataset", 2),
        ("from airflow import DAG\ndag = DAG('d', schedule='@daily')", 3),
        ("from airflow.operators.bash import BashOperator", 3),
        ("from airflow.sdk import DAG\nschedule_interval = 5", 3),
        ("from tradewind import DAG\nDAG('d', schedule_interval='@daily')", 3),
    ],
)
def test_names_tell_the_generation(line: str, generation: int) -> None:
    assert generation_of(line) == generation


def load(folder: Path, source: str, defaults: DefinitionDefaults = AUTO) -> DagDefinition:
    (folder / "file.py").write_text(source)
    loaded = load_file(str(folder), "file.py", analyse=False)
    (dag,) = loaded.dags.values()
    return to_definition(dag, "file.py", defaults)


OLD = """
from datetime import datetime
from airflow import DAG
from airflow.operators.dummy_operator import DummyOperator

dag = DAG("d", start_date=datetime(2020, 1, 1), {arguments})
DummyOperator(task_id="a", dag=dag{task})
"""
NEW = """
from datetime import datetime
from airflow.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator

dag = DAG("d", start_date=datetime(2020, 1, 1), {arguments})
EmptyOperator(task_id="a", dag=dag{task})
"""


def test_an_old_file_has_intervals_catchup_and_a_limit_over_all_runs(tmp_path: Path) -> None:
    found = load(tmp_path, OLD.format(arguments="schedule_interval='0 6 * * *', concurrency=4", task=""))
    assert isinstance(found.schedule, CronSchedule)
    assert (found.schedule.interval_kind, found.catchup, found.max_active_tasks_all_runs) == ("data", True, 4)
    assert any("is one for Airflow 1" in warning for warning in found.warnings)


def test_a_new_file_has_ticks_and_no_catchup(tmp_path: Path) -> None:
    found = load(tmp_path, NEW.format(arguments="schedule='0 6 * * *', max_active_tasks=4", task=""))
    assert isinstance(found.schedule, CronSchedule)
    assert (found.schedule.interval_kind, found.catchup, found.max_active_tasks_all_runs) == ("trigger", False, None)
    assert found.warnings == ()


def test_a_dag_without_schedule_runs_daily_in_an_old_file_only(tmp_path: Path) -> None:
    assert isinstance(load(tmp_path, OLD.format(arguments="", task="")).schedule, DeltaSchedule)
    assert load(tmp_path, NEW.format(arguments="", task="")).schedule == NoSchedule()


@pytest.mark.parametrize(("setting", "old", "new"), [("none", True, False), ("false", False, False), ("true", True, True)])
def test_the_setting_decides_about_catchup_for_old_files_too(tmp_path: Path, setting: str, old: bool, new: bool) -> None:
    """Somebody who had turned catch-up off in Airflow must not get years of runs."""
    settings = load_settings({"TRADEWIND_HOME": str(tmp_path), "AIRFLOW__SCHEDULER__CATCHUP_BY_DEFAULT": setting})
    defaults = settings.core.definition_defaults()
    found = load(tmp_path, OLD.format(arguments="schedule_interval='@daily'", task=""), defaults)
    assert found.catchup is old
    assert any("missed runs are created" in warning for warning in found.warnings) is old
    assert load(tmp_path, NEW.format(arguments="schedule='@daily'", task=""), defaults).catchup is new


def test_what_a_folder_says_counts_more_than_the_file(tmp_path: Path) -> None:
    source = OLD.format(arguments="schedule_interval='0 6 * * *'", task="")
    fixed = load(tmp_path, source, msgspec.structs.replace(AUTO, schedule_meaning="airflow3"))
    assert isinstance(fixed.schedule, CronSchedule)
    assert (fixed.schedule.interval_kind, fixed.catchup) == ("trigger", False)
    defaults = msgspec.structs.replace(AUTO, meanings=(("legacy", "airflow3"),))
    assert defaults.of_file("legacy/a.py", 1).schedule_meaning == "airflow3"
    assert defaults.of_file("other/a.py", 1).schedule_meaning == "airflow2"


LENIENT = [
    ("", ", unknown=1"),
    ("", ", schedule_interval='@daily'"),
    ("", ", execution_timeout=300"),
    ("", ", doc_json={'a': 1}"),
    ("", ", queue=5"),
    ("doc_md=5", ""),
    ("dagrun_timeout=60", ""),
    ("params={'day': datetime(2020, 1, 1)}", ""),
]


@pytest.mark.parametrize(("arguments", "task"), LENIENT)
def test_what_airflow_1_took_is_taken_from_its_files_only(tmp_path: Path, arguments: str, task: str) -> None:
    assert load(tmp_path, OLD.format(arguments=arguments, task=task)).tasks[0].task_id == "a"
    with pytest.raises(TradewindError):
        load(tmp_path, NEW.format(arguments=arguments, task=task))


def test_their_values_mean_what_they_meant(tmp_path: Path) -> None:
    source = OLD.format(
        arguments="dagrun_timeout=60, tags='abc', params={'day': datetime(2020, 1, 1)}",
        task=", execution_timeout=300, retries=-1, owner=['a', 'b']",
    )
    found = load(tmp_path, source)
    assert (found.dagrun_timeout, found.tags) == (60_000_000, ("abc",))
    assert found.params[0].default == "2020-01-01 00:00:00"
    task = found.tasks[0]
    assert (task.execution_timeout, task.retries, task.owner) == (300_000_000, 0, "a, b")


@pytest.mark.parametrize("text", ["2020-1-1", "2020/01/01", "Jan 1 2020", "2020-01-01", "20200101"])
def test_dates_are_read_in_the_forms_of_airflow(tmp_path: Path, text: str) -> None:
    source = OLD.replace("datetime(2020, 1, 1)", repr(text)).format(arguments="", task="")
    assert load(tmp_path, source).start_date == 1_577_836_800_000_000


def test_a_dag_takes_tasks_by_an_arrow_and_changes_afterwards(tmp_path: Path) -> None:
    source = OLD.format(arguments="", task="") + (
        "dag >> DummyOperator(task_id='b')\n"
        "dag.tags.append('x')\n"
        "dag.on_failure_callback = print\n"
        "dag.schedule_interval = '@hourly'\n"
        "dag.get_task('a').on_success_callback = print\n"
    )
    found = load(tmp_path, source)
    assert [task.task_id for task in found.tasks] == ["a", "b"]
    assert (found.tags, found.schedule_summary) == (("x",), "@hourly")
    assert found.callbacks == {"on_failure_callback": ("print",)}
    callbacks: Any = found.tasks[0].callbacks
    assert callbacks == {"on_success_callback": ("print",)}


def test_methods_that_need_the_database_refuse_when_called(tmp_path: Path) -> None:
    source = OLD.format(arguments="", task="") + "get = dag.get_active_runs\n"
    load(tmp_path, source)
    with pytest.raises(TradewindError, match=r"dag\.next_dagrun_info\(\).*dag\.test"):
        load(tmp_path, source + "dag.next_dagrun_info(None)\n")


def test_a_task_id_that_is_used_twice_keeps_the_first_task_in_files_for_airflow_1(tmp_path: Path) -> None:
    twice = "\nother = DummyOperator(task_id='b', dag=dag)\nDummyOperator(task_id='a', dag=dag) >> other\n"
    with pytest.warns(UserWarning, match="there is already a task 'a'"):
        found = load(tmp_path, OLD.format(arguments="", task=", owner='one'") + twice)
    assert [(task.task_id, task.owner, task.upstream) for task in found.tasks] == [("a", "one", ()), ("b", "airflow", ("a",))]
    with pytest.raises(DuplicateTaskId):
        load(tmp_path, NEW.format(arguments="", task="") + "EmptyOperator(task_id='a', dag=dag)")


@pytest.mark.parametrize("line", ["task << dag", "task >> dag", "dag >> task", "dag << task"])
def test_an_arrow_to_the_dag_puts_the_task_into_it_in_files_for_airflow_1(tmp_path: Path, line: str) -> None:
    found = load(tmp_path, OLD.format(arguments="", task="") + f"task = DummyOperator(task_id='b')\n{line}\n")
    assert [task.task_id for task in found.tasks] == ["a", "b"]


def test_an_empty_end_date_is_none_in_older_files(tmp_path: Path) -> None:
    assert load(tmp_path, OLD.format(arguments="default_args={'end_date': ''}", task="")).end_date is None
    with pytest.raises(TradewindError):
        load(tmp_path, NEW.format(arguments="default_args={'end_date': ''}", task=""))


def test_a_dag_with_no_active_runs_has_no_schedule(tmp_path: Path) -> None:
    for source in (OLD.format(arguments="schedule_interval='@daily', max_active_runs=0", task=""), NO_RUNS):
        with pytest.warns(UserWarning, match="max_active_runs is 0"):
            assert load(tmp_path, source).schedule == NoSchedule()


NO_RUNS = NEW.format(arguments="schedule='@daily', max_active_runs=0", task="")


@pytest.mark.parametrize("method", ["get_task_instances", "get_dagruns_between"])
def test_a_dag_has_no_task_instances_while_its_file_is_read(method: str) -> None:
    with collecting(2):
        dag = DAG("d", schedule=None)
        with pytest.warns(UserWarning, match=f"{method}.* gives an empty list while the DAG file is read"):
            assert getattr(dag, method)(None, None) == []


@pytest.mark.parametrize("method", ["set_is_paused", "sync_to_db", "clear", "set_dag_runs_state"])
def test_a_dag_changes_nothing_while_its_file_is_read(method: str) -> None:
    with collecting(2):
        dag = DAG("d", schedule=None)
        with pytest.warns(UserWarning, match=rf"dag.{method}\(\) changes nothing while the DAG file is read"):
            getattr(dag, method)(None)


def test_a_dag_has_the_attribute_of_airflow_1_for_its_schedule() -> None:
    with collecting(1):
        assert DAG("d", schedule="@daily")._schedule_interval == "@daily"
