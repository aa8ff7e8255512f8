"""Changes of connections, variables and pools by a DAG run in this process: only the run sees them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import tradewind.airflow  # noqa: F401  Airflow's names
from tests.unit.execution.world import World
from tradewind import DAG, task
from tradewind.airflow.compat.pending_changes import IntegrityError
from tradewind.execution.local_database import close_database
from tradewind.sdk import variables
from tradewind.testing import fake_connections, fake_variables
from tradewind.testing.dag_test import run_dag_test

Connection: Any = variables.Connection
Variable: Any = variables.Variable


@pytest.fixture(autouse=True)
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings but the defaults, and no connections of DAG files."""
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(variables, "_of_file", {})
    yield
    close_database()


def deployment() -> World:
    found = World()
    found.connections = {"db": {"conn_type": "postgres", "host": "old"}, "web": {"conn_type": "http", "host": "w"}}
    found.variables = {"bucket": "b"}
    found.tables = {
        "connection": [{"conn_id": "db"}, {"conn_id": "web"}],
        "variable": [{"key": "bucket", "description": None}],
        "pool": [{"pool": "default_pool", "slots": 128, "description": "", "include_deferred": False}],
    }
    return found


def change() -> None:
    from airflow.models import Pool
    from airflow.utils.session import create_session

    with create_session() as session:
        session.query(Connection).filter(Connection.conn_id == "db").one().host = "new"
        session.delete(session.query(Connection).filter_by(conn_id="web").one())
        session.query(Variable).filter_by(key="bucket").delete()
        session.add(Connection("made", "http", host="m"))
        session.add(Pool(pool="wide", slots=4))


def look() -> list[Any]:
    from airflow.models import Pool
    from airflow.utils.session import create_session

    with create_session() as session:
        rows = sorted((one.conn_id, one.host) for one in session.query(Connection))
        return [rows, Variable.get("bucket", None), Pool.get_pool("wide").slots, session.query(Connection).get("web")]


def test_the_tasks_after_it_see_the_changes_and_the_deployment_does_not() -> None:
    outside = deployment()
    with DAG("d", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        task(task_id="change", pool="wide")(change)() >> task(task_id="look")(look)()
    run = run_dag_test(dag, say=lambda line: None, outside=outside)
    assert run.tasks["look"].xcom_pull() == [[("db", "new"), ("made", "m")], None, 4, None]
    assert (set(outside.connections), outside.variables) == ({"db", "web"}, {"bucket": "b"})
    assert outside.connections["db"]["host"] == "old"


def test_a_row_of_the_deployment_is_not_added_again() -> None:
    from airflow.utils.session import create_session

    def add() -> None:
        with create_session() as session:
            session.add(Connection("db", "http"))

    with DAG("d", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        task(task_id="add")(add)()
    run = run_dag_test(dag, say=lambda line: None, outside=deployment())
    assert "the connection 'db' exists already" in str(run.tasks["add"].reason)


def test_fixtures_of_the_test_kit_are_changed() -> None:
    from airflow.utils.session import create_session

    with fake_connections(db="postgres://h/d") as connections, fake_variables(bucket="b") as kept:
        with create_session() as session:
            found = session.query(Connection).filter_by(conn_id="db").one()
            found.host = "other"
        assert Connection.get("db").host == "other"
        assert connections["db"]["schema"] == "d"
        with create_session() as session:
            session.query(Variable).filter_by(key="bucket").one().set_val("c")
        assert (Variable.get("bucket"), kept["bucket"]) == ("c", "c")


def test_a_process_of_tests_changes_the_rows_in_its_memory() -> None:
    """As tests of provider packages change `sftp_default`."""
    from airflow.utils.db import resetdb
    from airflow.utils.session import create_session

    resetdb()
    with create_session() as session:
        found = session.query(Connection).filter(Connection.conn_id == "sftp_default").first()
        found.login, found.extra = "me", ""
        session.commit()
    assert Connection.get("sftp_default").login == "me"


def test_a_session_of_a_test_stores_at_its_flush_or_commit() -> None:
    """As in Airflow: what was not committed is lost, and a row that exists is an error."""
    from airflow.settings import Session
    from airflow.utils.db import resetdb

    resetdb()
    session = Session()
    session.add(Connection("lost", "http"))
    session.rollback()
    added = Connection("kept", "http", port=80)
    session.add(added)
    session.flush()
    assert Connection.get("kept").port == 80, "hooks in the test see it"
    added.host = "later"
    session.commit()
    session.add(Connection("kept", "other"))
    with pytest.raises(IntegrityError, match="connection 'kept' exists already"):
        session.commit()
    assert (Connection.get("kept").conn_type, Connection.get("kept").host) == ("http", "later")
    assert session.query(Connection).filter_by(conn_id="lost").count() == 0
