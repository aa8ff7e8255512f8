"""What `tradewind doctor` reads from a file, and what it says about it."""

from __future__ import annotations

from pathlib import Path

from tradewind.doctor.examine import with_place_of_module
from tradewind.doctor.file_report import CANNOT, LOADS, NOTES, LoadResult, report_on
from tradewind.doctor.old_names import present_place, provider_of
from tradewind.doctor.requirements_report import report_on_requirements
from tradewind.doctor.source_facts import read_source
from tradewind.doctor.summary import json_rows, summary, table_rows
from tradewind.model.definition import CronSchedule, DagDefinition
from tradewind.parser.config import ParserConfig
from tradewind.provider_packages.requirements import parse

SOURCE = """
from airflow import DAG
from airflow.contrib.operators.bigquery_operator import BigQueryOperator
from airflow.hooks.base_hook import BaseHook
from airflow.models import Variable, Connection
from airflow.providers.standard.operators.bash import BashOperator

args = {"s3_conn_id": "lake", "retries": 2}
dag = DAG("d", default_args=args, schedule_interval="@daily")
BigQueryOperator(task_id="q", gcp_conn_id="google", sql="{{ conn.shop.host }} {{ var.value.bucket }} {{ var.json.get('rows') }}")
BaseHook.get_connection("ftp")
Connection.get("named")
Connection(conn_id="made", conn_type="http")
Variable.get("key", default_var=1)
BashOperator(task_id="b", bash_command="{{ conn.get('mail').host }}")
"""


def test_connections_and_variables_are_found_in_the_text() -> None:
    facts = read_source(SOURCE)
    assert {name for name, _ in facts.connections} == {"lake", "google", "shop", "ftp", "named", "mail"}
    assert dict(facts.variables) == {"bucket": 10, "rows": 10, "key": 14}


def test_a_file_that_is_not_python_has_an_error_and_no_facts() -> None:
    facts = read_source("def broken(:\n")
    assert (facts.imports, facts.error is not None) == ((), True)
    assert report_on("a.py", facts, 3, LoadResult(), ()).verdict == CANNOT


def test_providers_are_known_by_the_import() -> None:
    assert provider_of("airflow.contrib.operators.bigquery_operator", "BigQueryOperator") == "google"
    assert provider_of("airflow.providers.apache.hive.hooks.hive", "HiveServer2Hook") == "apache-hive"
    assert provider_of("airflow.providers.standard.operators.bash", "BashOperator") is None
    assert provider_of("airflow.models", "Variable") is None
    assert provider_of("airflow.providers", "google") is None


def test_providers_are_known_by_task_decorators() -> None:
    source = """
@task.docker(image="python:3.12")
def a(): ...

@dag.task.kubernetes
async def b(): ...

@task.bash
@other.pyspark
def c(): ...
"""
    assert report_on("a.py", read_source(source), 3, LoadResult(), ("docker",)).providers == ("docker", "cncf-kubernetes")
    assert report_on("a.py", read_source(source), 3, LoadResult(), ("docker",)).missing_providers == ("cncf-kubernetes",)


def test_names_that_airflow_3_has_are_not_old() -> None:
    assert present_place("airflow.models", "Variable") is None
    assert present_place("airflow.operators.bash", "BashOperator") is None
    assert present_place("airflow.nothing", "Nothing") is None


def test_the_report_joins_the_text_and_the_loaded_file() -> None:
    schedule = CronSchedule(expressions=("0 0 * * *",), timezone="UTC", interval_kind="data")
    dag = DagDefinition("d", schedule=schedule, schedule_summary="@daily", catchup=True, warnings=("retries: too many",))
    loaded = LoadResult((dag,), connections=("default",), lookups=("variable import", "connection top"))
    found = report_on("a.py", read_source(SOURCE), 1, loaded, installed=())
    assert (found.verdict, found.dags, found.providers, found.missing_providers) == (NOTES, ("d",), ("google",), ("google",))
    assert {"default", "top", "ftp"} <= set(found.connections)
    assert {"import", "key"} <= set(found.variables)
    notes = {(note.kind, note.line) for note in found.notes}
    assert {("old name", 3), ("old name", 4), ("argument", 9), ("meaning", None), ("warning", None)} == notes
    assert report_on("a.py", read_source(SOURCE), 1, loaded, installed=("google",)).missing_providers == ()


def test_a_file_without_remarks_loads() -> None:
    assert report_on("a.py", read_source("from airflow.sdk import DAG"), 3, LoadResult(), ()).verdict == LOADS


def test_the_summary_fits_on_a_screen() -> None:
    facts = read_source(SOURCE)
    broken = LoadResult(problem="ModuleNotFoundError: No module named 'x'" * 20, line=7)
    reports = [report_on(f"{n}.py", facts, 1, broken if n % 2 else LoadResult(), ()) for n in range(1000)]
    lines = list(summary(reports, (), {"ftp"}, "dags"))
    assert len(lines) < 40
    assert lines[0] == "1,000 DAG files: 0 load, 500 load with notes, 500 cannot load"
    text = "\n".join(lines)
    assert "tradewind providers install google" in text
    assert "ftp (not defined)" in text
    assert "… and 492 more" in text
    assert "--fix changes" in text
    assert len(table_rows(reports)) == len(json_rows(reports)) == 1000


def test_each_requirement_gets_a_verdict() -> None:
    lines = [
        *("apache-airflow[postgres]==2.9.3", "apache-airflow-providers-http", "pandas>2", "apache-airflow-ctl"),
        "apache-airflow-backport-providers-google",
    ]
    found = report_on_requirements([one for line in lines if (one := parse(line)) is not None])
    assert [one.verdict for one in found] == ["replaced", "installs", "installs", "no effect", "installs"]
    assert "postgres" in found[0].text


def test_a_missing_module_beside_the_dag_folder(tmp_path: Path) -> None:
    for name in ("dags", "src/team", "weaviate"):
        (tmp_path / name).mkdir(parents=True)
    config = ParserConfig(folder=str(tmp_path / "dags"))
    own = LoadResult(problem="ModuleNotFoundError: No module named 'team'. If …")
    assert with_place_of_module(own, config).problem == (
        f"ModuleNotFoundError: No module named 'team'. It is in {tmp_path}/src: "
        f"Add PYTHONPATH={tmp_path}/src to the environment of Tradewind"
    )
    package = LoadResult(problem="ModuleNotFoundError: No module named 'weaviate'. Install it …: pip install weaviate-client")
    assert with_place_of_module(package, config) == package
