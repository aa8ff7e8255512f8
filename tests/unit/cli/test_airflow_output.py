"""What commands of Airflow print: the columns, values and sentences of Airflow 3.3.2, which scripts read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.conftest import Run


def test_rows_are_one_line_of_json_with_texts(run: Run, known: Path) -> None:
    done = run("airflow", "dags", "list", "-o", "json")
    assert done.stdout.count("\n") == 1
    first = json.loads(done.stdout)[0]
    assert list(first) == ["dag_id", "fileloc", "owners", "is_paused", "bundle_name", "bundle_version"]
    assert (first["dag_id"], first["is_paused"], first["owners"], first["bundle_version"]) == ("alpha", "True", ["me"], None)
    assert json.loads(run("dags", "list", "-o", "json").stdout)[0]["is_paused"] is True, "our own command keeps its types"


def test_chosen_columns_and_the_other_forms(run: Run, known: Path) -> None:
    chosen = ("airflow", "dags", "list", "--columns", "dag_id,is_paused,bundle_version")
    assert run(*chosen, "-o", "plain").stdout.splitlines()[1].split() == ["alpha", "True"]
    assert run(*chosen).stdout.splitlines()[2].split(" | ") == ["alpha ", "True     ", "None"]
    assert yaml.safe_load(run(*chosen, "-o", "yaml").stdout)[0] == {
        "dag_id": "alpha",
        "is_paused": "True",
        "bundle_version": None,
    }


def test_rows_of_runs_and_tasks(run: Run, known: Path) -> None:
    made = run("airflow", "dags", "trigger", "beta", "-r", "one", "-c", '{"k": 1}', "-l", "2026-01-31T06:00:00", "-o", "json")
    triggered = json.loads(made.stdout)[0]
    assert (triggered["dag_run_id"], triggered["conf"], triggered["state"]) == ("one", {"k": "1"}, "queued")
    assert triggered["logical_date"] == "2026-01-31 06:00:00+00:00"
    found = json.loads(run("airflow", "dags", "list-runs", "beta", "-o", "json").stdout)[0]
    assert list(found) == ["dag_id", "run_id", "state", "run_after", "logical_date", "start_date", "end_date"]
    assert (found["logical_date"], found["start_date"]) == ("2026-01-31T06:00:00+00:00", "")
    assert run("airflow", "dags", "state", "beta", "one").stdout == 'queued, {"k": 1}\n'
    assert run("airflow", "dags", "state", "beta", "none").stdout == "None\n"
    assert run("airflow", "dags", "state", "none", "one").exit_code == 1
    assert json.loads(run("airflow", "tasks", "states-for-dag-run", "beta", "one", "-o", "json").stdout) == [
        {
            "dag_id": "beta",
            "logical_date": "2026-01-31T06:00:00+00:00",
            "task_id": "only",
            "state": "",
            "start_date": "",
            "end_date": "",
            "map_index": "",
        }
    ]


def test_no_rows(run: Run, known: Path) -> None:
    assert run("airflow", "dags", "list-runs", "beta").stdout == "No data found\n"
    assert run("airflow", "dags", "list-runs", "beta", "-o", "json").stdout == "[]\n"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("variables set key value", "Variable key created"),
        ("variables delete key", "Variable key deleted"),
        ("connections add own --conn-uri http://ann:secret@h", "Successfully added `conn_id`=own"),
        ("connections delete own", "Successfully deleted connection with `conn_id`=own"),
        ("pools set small 3 text", "Pool small created"),
        ("pools delete small", "Pool small deleted"),
    ],
)
def test_sentences_that_scripts_look_for(run: Run, known: Path, line: str, sentence: str) -> None:
    if " delete " in line:
        run("variables", "set", "key", "value")
        run("connections", "add", "own", "--conn-uri", "http://h")
        run("pools", "set", "small", "1")
    done = run("airflow", *line.split())
    assert (done.stdout, done.exit_code) == (f"{sentence}\n", 0)


def test_imports(run: Run, known: Path, tmp_path: Path) -> None:
    for name, text in (
        ("variables", '{"a": "1", "b": "2"}'),
        ("connections", '{"c": "http://h"}'),
        ("pools", '{"p": {"slots": 2}}'),
    ):
        (tmp_path / f"{name}.json").write_text(text)

    def imported(name: str) -> str:
        return run("airflow", name, "import", str(tmp_path / f"{name}.json")).stdout

    assert imported("variables") == "2 of 2 variables successfully updated.\n"
    assert imported("connections") == "Imported connection c\n"
    assert imported("connections") == "Could not import connection c: connection already exists.\n"
    assert imported("pools") == "Uploaded 1 pool(s)\n"


def test_a_connection_has_airflows_fields(run: Run, known: Path) -> None:
    run("connections", "add", "own", "--conn-uri", "http://ann:secret@h:80/s?region=eu")
    run("connections", "add", "bare", "--conn-type", "fs")
    (found,) = json.loads(run("airflow", "connections", "get", "own", "-o", "json").stdout)
    assert (found["password"], found["port"], found["extra_dejson"]) == ("secret", "80", {"region": "eu"})
    assert found["get_uri"] == "http://ann:secret@h:80/s?region=eu"
    assert json.loads(run("airflow", "connections", "list", "-o", "json").stdout) == [
        {"conn_id": "bare", "conn_type": "fs"},
        {"conn_id": "own", "conn_type": "http"},
    ]
    (hidden,) = json.loads(run("airflow", "connections", "list", "--conn-id", "own", "-o", "json").stdout)
    assert "secret" not in json.dumps(hidden)


def test_a_variable_that_does_not_exist(run: Run, known: Path) -> None:
    done = run("airflow", "variables", "get", "none")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "Variable none does not exist" in done.stderr


def test_settings_have_the_form_of_airflow_cfg(run: Run, known: Path) -> None:
    lines = run("airflow", "config", "list", "--section", "core").stdout.splitlines()
    assert lines[0] == "[core]"
    assert "executor = LocalExecutor" in lines
    assert lines[-1] == ""
