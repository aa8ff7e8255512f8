"""`import-airflow` from a real PostgreSQL server, with the rows that a genuine release has made."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import PostgresServer
from tradewind.cli.import_airflow.database import open_database
from tradewind.cli.import_airflow.source import Source
from tradewind.cli.import_airflow.values import conf_of_run, micros, xcom_value

DATABASES = Path(__file__).parents[1] / "unit" / "cli" / "airflow_databases"
KEY = "5h4mXqjeQR3Hq0yGRr6DOBcmJkB3hGZqwWnV8hmTzzI="
TYPES = {"TIMESTAMP": "TIMESTAMPTZ", "DATETIME": "TIMESTAMPTZ", "BLOB": "BYTEA", "BOOLEAN": "BOOLEAN", "JSON": "JSON"}


def load_release(server: PostgresServer, release: str) -> str:
    """Create a database with the tables and rows of a release; its URL."""
    import psycopg

    url = server.create_database()
    source = sqlite3.connect(":memory:")
    source.executescript((DATABASES / f"{release}.sql").read_text(encoding="utf-8"))
    with psycopg.connect(url) as target:
        for (table,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [(row[1], server_type(row[2])) for row in source.execute(f"PRAGMA table_info('{table}')")]
            target.execute(f'CREATE TABLE "{table}" ({", ".join(f"{chr(34)}{one}{chr(34)} {kind}" for one, kind in columns)})')
            marks = ", ".join(["%s"] * len(columns))
            for row in source.execute(f'SELECT * FROM "{table}"'):
                values = [server_value(kind, value) for (_, kind), value in zip(columns, row, strict=True)]
                target.execute(f'INSERT INTO "{table}" VALUES ({marks})', values)
    source.close()
    return url.replace("postgresql:", "postgresql+psycopg2:").replace("@/", "@localhost/")


def server_type(declared: str) -> str:
    word = declared.upper().partition("(")[0]
    return TYPES.get(word, "BIGINT" if word == "INTEGER" else "DOUBLE PRECISION" if word == "FLOAT" else "TEXT")


def server_value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "BOOLEAN":
        return bool(value)
    return f"{value}+00:00" if kind == "TIMESTAMPTZ" else str(value) if kind == "JSON" else value


@pytest.mark.parametrize("release", ["1.10.15", "2.2.5", "2.11.0", "3.3.2"])
def test_each_release_is_read_as_from_sqlite(postgres_server: PostgresServer, release: str) -> None:
    source = Source(open_database(load_release(postgres_server, release)))
    try:
        assert {row["key"] for row in source.variables()} == {"bucket", "settings"}
        assert [row["conn_id"] for row in source.connections()] == ["shop_db"]
        assert {row["pool"] for row in source.pools()} == {"closed", "default_pool", "etl"}
        assert {dag.dag_id for dag in source.dags()} >= {"broken", "daily_etl", "half", "resting"}
        assert {user.name for user in source.users()} == ({"ann", "bob"} if release != "3.3.2" else set())
        ((run,),) = source.runs("half", None, xcoms_of_all=False)
        assert {task["task_id"]: task["state"] for task in run.tasks} == {"make": "success", "use": "scheduled"}
        (xcom,) = run.xcoms
        assert xcom_value(xcom["value"]) == {"rows": 3, "names": ["a", "b"]}
        latest = source.latest_by_schedule("daily_etl")
        assert latest is not None
        assert (micros(latest["logical_date"] or latest["execution_date"]) or 0) >= 1_704_088_800_000_000
        scheduler = source.scheduler()
        assert scheduler is None or scheduler.heartbeat > 0
    finally:
        source.close()


def test_json_assets_and_notes_are_read_as_from_sqlite(postgres_server: PostgresServer, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as file:
        file.executescript((DATABASES / "3.3.2-assets.sql").read_text(encoding="utf-8"))
    sources = [
        Source(open_database(load_release(postgres_server, "3.3.2-assets"))),
        Source(open_database(str(tmp_path / "a.db"))),
    ]
    found = []
    for source in sources:
        runs = [run for dag in source.dags() for part in source.runs(dag.dag_id, None, xcoms_of_all=True) for run in part]
        texts = {run.row["run_id"]: {one["key"]: xcom_value(one["value"]) for one in run.xcoms} for run in runs}
        notes = {run.row["run_id"]: run.row["note"] for run in runs}
        tasks = {(task["id"], task["note"], len(task["tries"])) for run in runs for task in run.tasks}
        events = [event._replace(extra=conf_of_run(event.extra)) for event in source.asset_events(None)]
        found.append((texts, notes, tasks, events))
        source.close()
    assert found[0] == found[1]
    assert found[0][0]["v2"]["text"] == '{"looks": "like json"}'
    assert found[0][3]


def test_import_into_an_installation_on_postgres(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What exists there is compared, as on SQLite: a value of this installation stays, and a second import changes nothing."""
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    monkeypatch.setenv("TRADEWIND__DATABASE__URL", postgres_url)
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "team.py").write_text(
        "from tradewind import DAG\nfrom tradewind.operators.empty import EmptyOperator\n"
        "with DAG('half', schedule=None):\n    EmptyOperator(task_id='make') >> EmptyOperator(task_id='use')\n"
        "from tradewind import Asset\nprices = Asset('prices', 's3://bucket/prices')\n"
        "with DAG('only_prices', schedule=[prices]):\n    EmptyOperator(task_id='use')\n"
    )

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tradewind", *words], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def counts(release: str = "2.11.0", dag_id: str = "half") -> dict[str, tuple[int, int, int]]:
        words = ("--fernet-key", KEY, "--all-runs", "--dag-id", dag_id, "-o", "json")
        rows = json.loads(run("import-airflow", load_release(postgres_server, release), *words))
        return {row["what"]: (row["imported"], row["unchanged"], row["left_out"]) for row in rows}

    run("variables", "set", "bucket", "s3://mine")
    first = counts()
    assert first["variables"] == (1, 0, 1)
    assert first["runs"] == (1, 0, 0)
    assert run("variables", "get", "bucket") == "s3://mine\n"
    second = counts()
    assert (second["variables"], second["connections"], second["runs"]) == ((0, 1, 1), (0, 1, 0), (0, 1, 0))
    third, fourth = counts("3.3.2-assets", "only_prices"), counts("3.3.2-assets", "only_prices")
    assert (third["runs"], third["assets"]) == ((2, 0, 0), (2, 0, 0))
    assert (fourth["runs"], fourth["assets"]) == ((0, 2, 0), (0, 2, 0))
