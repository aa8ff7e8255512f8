"""Variables and connections of the environment: commands show what tasks read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run


def test_a_variable_of_the_environment_is_printed_with_its_place(
    run: Run, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("variables", "get", "region").exit_code == 1
    monkeypatch.setenv("AIRFLOW_VAR_REGION", "north")
    done = run("variables", "get", "region")
    assert (done.stdout, done.exit_code) == ("north\n", 0)
    assert "AIRFLOW_VAR_REGION" in done.stderr


def test_the_environment_is_read_before_the_database_and_set_says_so(
    run: Run, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("variables", "set", "region", "south").stderr == ""
    monkeypatch.setenv("TRADEWIND_VAR_REGION", '{"a": 1}')
    assert run("variables", "get", "region", "--json").stdout == '{"a": 1}\n'
    hidden = run("variables", "set", "region", "west").stderr
    assert "TRADEWIND_VAR_REGION" in hidden
    assert "Tasks do not read this value" in hidden


def test_lists_name_the_values_of_the_environment(run: Run, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("variables", "connections"):
        assert "of the environment" not in run(kind, "list").stderr
    monkeypatch.setenv("AIRFLOW_VAR_REGION", "north")
    monkeypatch.setenv("AIRFLOW_CONN_DWH", "postgres://db/x")
    assert "Variables of the environment: AIRFLOW_VAR_REGION\n" in run("variables", "list").stderr
    assert "Connections of the environment: AIRFLOW_CONN_DWH\n" in run("connections", "list").stderr
    assert json.loads(run("connections", "list", "-o", "json").stdout) == []


def test_a_connection_of_the_environment_is_shown_without_its_password(
    run: Run, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DWH", "postgres://me:canary@db:5432/x")
    done = run("connections", "get", "dwh", "-o", "json")
    (row,) = json.loads(done.stdout)
    assert (row["conn_id"], row["conn_type"], row["host"], row["login"], row["password"]) == (
        "dwh",
        "postgres",
        "db",
        "me",
        "***",
    )
    assert "canary" not in done.output
    assert "AIRFLOW_CONN_DWH" in done.stderr
    (row,) = json.loads(run("connections", "get", "dwh", "--show-values", "-o", "json").stdout)
    assert row["password"] == "canary"


def test_a_connection_of_the_environment_can_be_tested(
    run: Run, known: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "data.db").touch()
    monkeypatch.setenv("AIRFLOW_CONN_LOCAL", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "data.db")}))
    assert "can be read" in run("connections", "test", "local").stdout
