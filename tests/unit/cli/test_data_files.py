"""Export and import of pools, variables and connections."""

from __future__ import annotations

import json
import socket
import stat
import threading
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tradewind.sdk.default_connections import DEFAULT_CONNECTIONS


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_pools_are_exported_and_imported(run: Run, known: Path, tmp_path: Path, ending: str) -> None:
    run("pools", "set", "p", "3", "for tests", "--include-deferred")
    target = tmp_path / f"pools.{ending}"
    assert "Exported 2 pools" in run("pools", "export", str(target)).stdout
    run("pools", "delete", "p", "-y")
    assert run("pools", "import", str(target)).stdout == "Imported 2 pools: default_pool, p.\n"
    (row,) = json.loads(run("pools", "get", "p", "-o", "json").stdout)
    assert (row["slots"], row["description"], row["include_deferred"]) == (3, "for tests", True)


@pytest.mark.parametrize("content", ['{"a": 1}', '{"a": {"slots": "5"}}', '{"a": {"slots": 5, "solts": 1}}', "[]", "{"])
def test_a_wrong_file_of_pools_changes_nothing(run: Run, known: Path, tmp_path: Path, content: str) -> None:
    target = tmp_path / "pools.json"
    target.write_text(content)
    done = run("pools", "import", str(target))
    assert done.exit_code == 1
    assert str(target) in done.stderr
    assert len(json.loads(run("pools", "list", "-o", "json").stdout)) == 1


PROJECT = """
airflow:
  connections:
    - conn_id: warehouse
      conn_type: postgres
      conn_host: db.example
      conn_schema: sales
      conn_login: u
      conn_password: p
      conn_port: 5432
      conn_extra:
        sslmode: require
    - conn_id: web
      conn_uri: https://h.example
    - conn_id:
      conn_type:
      conn_extra:
  pools:
    - pool_name: narrow
      pool_slot: 5
      pool_description: five
  variables:
    - variable_name: bucket
      variable_value: b
"""


def test_settings_of_a_project_of_astronomer_are_imported(run: Run, known: Path, tmp_path: Path) -> None:
    """One file has connections, pools and variables; each command takes its own."""
    target = tmp_path / "airflow_settings.yaml"
    target.write_text(PROJECT)
    assert run("pools", "import", str(target)).stdout == "Imported 1 pool: narrow.\n"
    assert run("variables", "import", str(target)).exit_code == 0
    assert run("variables", "get", "bucket").stdout == "b\n"
    assert run("connections", "import", str(target)).exit_code == 0
    (row,) = json.loads(run("connections", "get", "warehouse", "-o", "json").stdout)
    assert (row["conn_type"], row["host"], row["schema"], row["port"]) == ("postgres", "db.example", "sales", 5432)
    (row,) = json.loads(run("connections", "get", "web", "-o", "json").stdout)
    assert (row["conn_type"], row["host"]) == ("https", "h.example")


def test_an_entry_without_a_name_in_the_settings_of_a_project(run: Run, known: Path, tmp_path: Path) -> None:
    target = tmp_path / "airflow_settings.yaml"
    target.write_text("airflow:\n  variables:\n    - variable_value: b\n")
    done = run("variables", "import", str(target))
    assert done.exit_code == 1
    assert "entry 1 of airflow.variables has no variable_name" in done.stderr


def test_variables_in_every_format(run: Run, known: Path, tmp_path: Path) -> None:
    run("variables", "set", "plain", "x=1")
    run("variables", "set", "shape", '{"a": [1]}')
    for ending in ("json", "yaml", "env"):
        target = tmp_path / f"variables.{ending}"
        assert run("variables", "export", str(target)).exit_code == 0
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        run("variables", "delete", "plain")
        run("variables", "delete", "shape")
        assert run("variables", "import", str(target)).exit_code == 0
        assert run("variables", "get", "plain").stdout == "x=1\n", ending
        assert json.loads(run("variables", "get", "shape").stdout) == {"a": [1]}, ending


@pytest.mark.parametrize(
    ("ending", "words"), [("json", ()), ("yaml", ()), ("env", ()), ("json", ("--serialization-format", "uri"))]
)
def test_connections_are_exported_and_imported(
    run: Run, known: Path, tmp_path: Path, ending: str, words: tuple[str, ...]
) -> None:
    run("connections", "add", "a", "--conn-uri", "postgres://me:canary@db:5432/x?ssl=yes")
    target = tmp_path / f"connections.{ending}"
    assert run("connections", "export", str(target), *words).exit_code == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    run("connections", "delete", "a")
    assert run("connections", "import", str(target)).stdout == "Connection a is stored.\n"
    (row,) = json.loads(run("connections", "get", "a", "--show-values", "-o", "json").stdout)
    assert (row["conn_type"], row["host"], row["login"], row["password"], row["port"]) == (
        "postgres",
        "db",
        "me",
        "canary",
        5432,
    )
    assert json.loads(row["extra"]) == {"ssl": "yes"}
    assert "was not changed" in run("connections", "import", str(target)).stdout
    assert run("connections", "import", str(target), "--overwrite").stdout == "Connection a is replaced.\n"


def test_a_wrong_file_of_connections_changes_nothing(run: Run, known: Path, tmp_path: Path) -> None:
    target = tmp_path / "connections.json"
    target.write_text('{"good": "http://h", "bad": {"conn_type": "http", "port": "many"}}')
    done = run("connections", "import", str(target))
    assert (done.exit_code, "'bad'" in done.stderr) == (1, True)
    assert json.loads(run("connections", "list", "-o", "json").stdout) == []


def test_a_connection_is_tested_by_reaching_its_host(run: Run, known: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        run("connections", "add", "near", "--conn-uri", f"redis://127.0.0.1:{port}")
        done = run("connections", "test", "near")
        assert (done.exit_code, "can be reached" in done.stdout) == (0, True)
    done = run("connections", "test", "near")
    assert (done.exit_code, "cannot be reached" in done.stderr) == (1, True)
    run("connections", "add", "file", "--conn-type", "sqlite", "--conn-host", str(tmp_path / "none.db"))
    assert run("connections", "test", "file").exit_code == 1
    run("connections", "add", "odd", "--conn-type", "odd", "--conn-host", "h")
    assert "no port" in run("connections", "test", "odd").stderr
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        run("connections", "add", "web", "--conn-uri", f"http://127.0.0.1:{web.server_port}")
        assert "can be reached" in (asked := run("connections", "test", "web")).stdout or "responds" in asked.stdout
        web.shutdown()
    assert run("connections", "test", "web").exit_code == 1
    assert "'near'" in run("connections", "test", "nera").stderr


def test_the_connections_of_a_new_airflow_are_added(run: Run, known: Path) -> None:
    run("connections", "add", "http_default", "--conn-uri", "https://ours.example")
    run("airflow", "connections", "create-default-connections")
    found = {row["conn_id"]: row for row in json.loads(run("connections", "list", "-o", "json").stdout)}
    assert len(found) == len(DEFAULT_CONNECTIONS)
    assert found["postgres_default"]["conn_type"] == "postgres"
    fields = json.loads(run("connections", "get", "http_default", "-o", "json").stdout)
    assert "ours.example" in json.dumps(fields), "a connection that exists stays"
    again = run("connections", "create-default-connections")
    assert f"0 default connections are stored; {len(DEFAULT_CONNECTIONS)} existed" in again.stdout
