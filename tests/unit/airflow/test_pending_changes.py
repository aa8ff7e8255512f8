"""`session.add(Connection(…)); session.commit()`: changes of connections, variables and pools by the code of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy
import sqlalchemy.exc

import tradewind.airflow  # noqa: F401  Airflow's names
from tests.unit.execution.world import World, installed
from tradewind.airflow.compat.pending_changes import IntegrityError
from tradewind.model.errors import NotYetSupported
from tradewind.sdk import secret_registry, variables
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.open_dags import collecting
from tradewind.wire.messages import ChangeRows, RowChange

Connection: Any = variables.Connection
Variable: Any = variables.Variable

POSTGRES = {"conn_type": "postgres", "host": "db.example", "login": "etl", "password": "hunter22", "port": 5432}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(variables, "_of_file", {})
    with installed() as found:
        found.connections = {"warehouse": dict(POSTGRES), "web": {"conn_type": "http", "host": "web.example"}}
        found.variables = {"bucket": "b"}
        found.tables = {
            "connection": [{"conn_id": "warehouse"}, {"conn_id": "web"}],
            "variable": [{"key": "bucket", "description": None}],
            "pool": [{"pool": "default_pool", "slots": 128, "description": "", "include_deferred": False}],
        }
        yield found


@pytest.fixture
def session(world: World) -> Any:
    from airflow import settings

    found = settings.Session()
    found.close()
    return found


def changes(world: World) -> list[RowChange]:
    return [change for one in world.questions if isinstance(one, ChangeRows) for change in one.changes]


def test_a_connection_pool_and_variable_are_made_as_by_an_init_dag(world: World, session: Any) -> None:
    """Attributes of empty objects are set one by one, as DAG files for Airflow 1 do."""
    from airflow import models

    new_conn = models.Connection()
    new_conn.conn_id, new_conn.conn_type, new_conn.host, new_conn.port = "dwh", "postgres", "dwh.example", "5439"
    new_conn.set_password("terces1")
    session.add(new_conn)
    new_var = models.Variable()
    new_var.key = "sql_path"
    new_var.set_val("/sql")
    session.add(new_var)
    new_pool = models.Pool()
    new_pool.pool, new_pool.slots, new_pool.description = "dwh", 10, "few connections"
    session.add(new_pool)
    assert changes(world) == [], "nothing is stored before the commit"
    session.commit()
    assert len([one for one in world.questions if isinstance(one, ChangeRows)]) == 1, "one request, in one transaction"
    stored = {"conn_type": "postgres", "host": "dwh.example", "password": "terces1", "port": 5439}
    assert world.connections["dwh"] == stored
    assert world.variables["sql_path"] == "/sql"
    assert models.Pool.get_pool("dwh").slots == 10
    assert "terces1" not in secret_registry.mask().text("the password is terces1"), "it is masked in the log"
    session.commit()
    assert len(changes(world)) == 3, "nothing is left to store"


def test_a_connection_is_added_unless_it_exists(world: World, session: Any) -> None:
    """The test by the text of the row is common: Airflow shows a connection by its id."""
    for conn_id in ("warehouse", "weather"):
        known = session.query(Connection).filter(Connection.conn_id == conn_id).first()
        if str(known) != conn_id:
            session.add(Connection(conn_id, "http"))
            session.commit()
    assert [(one.key, one.verb) for one in changes(world)] == [("weather", "add")]


def test_a_connection_that_exists_is_an_error_of_sqlalchemy(world: World, session: Any) -> None:
    session.add(Variable("fresh", "1"))
    session.add(Connection("web", "http"))
    with pytest.raises(sqlalchemy.exc.IntegrityError, match="connection 'web' exists already; nothing was changed") as caught:
        session.commit()
    assert isinstance(caught.value, IntegrityError)
    assert "fresh" not in world.variables, "all or nothing"
    session.commit()
    assert "fresh" not in world.variables, "the error has dropped the changes"


def test_only_changed_columns_of_a_queried_connection_are_sent(world: World, session: Any) -> None:
    found = session.query(Connection).filter_by(conn_id="warehouse").one()
    found.host = "new.example"
    found.extra = {"sslmode": "require"}
    session.commit()
    assert changes(world) == [
        RowChange("connection", "warehouse", "change", {"host": "new.example", "extra": '{"sslmode": "require"}'})
    ]
    found.login = "second"
    session.add(found)
    session.commit()
    assert changes(world)[1:] == [RowChange("connection", "warehouse", "change", {"login": "second"})]


def test_one_row_is_one_object_in_a_session(session: Any) -> None:
    one = session.query(Connection).filter_by(conn_id="web").one()
    one.host = "changed"
    assert session.query(Connection).filter_by(conn_id="web").one() is one
    session.rollback()
    assert one.host == "web.example"
    session.add(Connection("added", "http"))
    assert session.query(Connection).filter_by(conn_id="added").count() == 1, "a query sees what the session adds"
    session.delete(session.query(Connection).filter_by(conn_id="added").one())
    assert session.query(Connection).count() == 2


def test_a_query_reads_again_what_the_session_has_not_changed(world: World, session: Any) -> None:
    """A task that polls a connection or a DAG sees what others have changed."""
    web, warehouse = (session.query(Connection).filter_by(conn_id=name).one() for name in ("web", "warehouse"))
    warehouse.login = "mine"
    world.connections["web"]["host"] = world.connections["warehouse"]["host"] = "elsewhere"
    assert session.query(Connection).filter_by(conn_id="web").one() is web
    assert session.query(Connection).filter_by(conn_id="warehouse").one() is warehouse
    assert (web.host, warehouse.host, warehouse.login) == ("elsewhere", "db.example", "mine")
    session.commit()
    assert changes(world) == [RowChange("connection", "warehouse", "change", {"login": "mine"})]


def test_the_environment_is_not_part_of_the_table(world: World, session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEB", "http://other.example")
    monkeypatch.setenv("AIRFLOW_VAR_BUCKET", "other")
    assert session.query(Connection).filter_by(conn_id="web").one().host == "web.example"
    assert session.query(Variable).get("bucket").val == "b"
    assert Connection.get("web").host == "other.example"


def test_rows_are_deleted(world: World, session: Any) -> None:
    from airflow.models import Pool

    assert session.query(Connection).filter(Connection.conn_id.in_(["web", "none"])).delete() == 1
    session.delete(session.query(Variable).get("bucket"))
    Pool.create_or_update_pool("wide", 4, session=session)
    session.commit()
    assert (set(world.connections), world.variables) == ({"warehouse"}, {})
    assert Pool.delete_pool("wide").slots == 4
    assert [pool.pool for pool in Pool.get_pools()] == ["default_pool"]
    with pytest.raises(AirflowException, match="'default_pool' cannot be deleted"):
        Pool.delete_pool("default_pool")
    with pytest.raises(AirflowException, match="there is no pool 'wide'; there are default_pool"):
        Pool.delete_pool("wide")


def test_many_rows_are_changed_by_an_update(world: World, session: Any) -> None:
    assert session.query(Connection).filter(Connection.host.contains("example")).update({"login": "all"}) == 2
    session.execute(sqlalchemy.update(Connection).where(Connection.conn_id == "web").values(host="x"))
    session.execute(sqlalchemy.delete(Variable).where(Variable.key == "bucket"))
    session.commit()
    assert {one.key: (one.verb, one.values) for one in changes(world)} == {
        "warehouse": ("change", {"login": "all"}),
        "web": ("change", {"login": "all", "host": "x"}),
        "bucket": ("delete", {}),
    }
    with pytest.raises(NotYetSupported, match="computed from columns"):
        session.query(Connection).update({"host": Connection.login})


def test_blocks_and_decorated_functions_commit(world: World) -> None:
    from airflow.utils.db import merge_conn
    from airflow.utils.session import create_session, provide_session

    @provide_session
    def create_conn(conn_id: str, session: Any = None) -> None:
        session.add(Connection(conn_id, "http"))

    create_conn("by_function")
    with create_session() as session:
        session.merge(Connection("web", "https", host="merged.example"))
    with pytest.raises(ZeroDivisionError), create_session() as session:  # noqa: PT012
        session.add(Connection("lost", "http"))
        1 / 0  # noqa: B018
    merge_conn(Connection("web", "ftp"))
    merge_conn(Connection("merged", "ftp"))
    assert set(world.connections) == {"warehouse", "web", "by_function", "merged"}
    assert world.connections["web"] == {"conn_type": "https", "host": "merged.example"}


def test_changes_without_a_commit_are_lost(world: World, session: Any) -> None:
    session.add(Connection("lost", "http"))
    session.flush()
    session.close()
    session.commit()
    assert changes(world) == []


def test_a_row_that_was_deleted_meanwhile_is_an_error(world: World, session: Any) -> None:
    found = session.query(Connection).filter_by(conn_id="web").one()
    del world.connections["web"]
    found.host = "x"
    with pytest.raises(AirflowException, match="connection 'web' was deleted since it was read"):
        session.commit()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Connection(None, "http"), r"a connection is added without a name \(conn_id\)"),
        (Connection("c", "http", port="many"), "connection 'c': port is 'many'; it must be a number"),
    ],
)
def test_values_that_cannot_be_stored(session: Any, wrong: Any, message: str) -> None:
    session.add(wrong)
    with pytest.raises(AirflowException, match=message):
        session.commit()


def test_a_connection_of_the_top_level_is_used_by_the_tasks_of_the_file(world: World, session: Any) -> None:
    with (
        collecting(),
        pytest.warns(UserWarning, match="'of_file' is added at the top level .* The tasks of this file can use it"),
    ):
        session.add(Connection("of_file", "http", host="file.example"))
    with collecting():
        session.commit()
    assert changes(world) == []
    assert Connection.get("of_file").host == "file.example"
    world.connections["of_file"] = {"conn_type": "http", "host": "corrected.example"}
    assert Connection.get("of_file").host == "corrected.example", "a stored connection has priority"


def test_dags_are_paused(world: World, session: Any) -> None:
    from airflow import DAG
    from airflow.models import DagModel

    row = {"is_paused": False, "is_active": True, "fileloc": "f.py"}
    world.tables["dag"] = [{"dag_id": name, **row} for name in ("one", "two", "three", "four")]
    for dag_model in session.query(DagModel).filter(DagModel.dag_id.in_(["one"])):
        dag_model.is_paused = True
    session.commit()
    DagModel.get_dagmodel("two").set_is_paused(is_paused=True)
    assert session.query(DagModel).filter(DagModel.dag_id == "three").update({DagModel.is_paused: True}) == 1
    session.commit()
    DAG("four", schedule=None).set_is_paused(True)
    assert [(one.table, one.key, one.verb, one.values) for one in changes(world)] == [
        ("dag", name, "change", {"is_paused": True}) for name in ("one", "two", "three", "four")
    ]
    assert DagModel.get_dagmodel("four").get_is_paused()
    with pytest.raises(AirflowException, match="there is no DAG 'five'"):
        DAG("five", schedule=None).set_is_paused(True)
    with pytest.raises(NotYetSupported, match="Use `tradewind dags delete`; only is_paused can be changed"):
        session.delete(session.query(DagModel).first())


def test_the_connections_of_a_new_database_are_added_where_they_are_missing(world: World, session: Any) -> None:
    from airflow.settings import get_session
    from airflow.utils.db import create_default_connections, get_default_connections

    world.connections["http_default"] = {"conn_type": "http", "host": "ours"}
    world.tables["connection"].append({"conn_id": "http_default"})
    assert get_session()() is session
    create_default_connections(session=session)
    session.commit()
    assert {one.conn_id for one in get_default_connections()} <= set(world.connections)
    assert world.connections["http_default"]["host"] == "ours"
    del world.connections["ftp_default"]
    with pytest.raises(
        AirflowException, match=r"connection 'ftp_default'\..* `tradewind connections create-default-connections`"
    ):
        Connection.get("ftp_default")


def test_the_older_functions_for_pools(world: World) -> None:
    from airflow.api.client.local_client import Client
    from airflow.api.common.experimental.pool import create_pool, delete_pool, get_pool, get_pools
    from airflow.exceptions import PoolNotFound

    assert create_pool("wide", 4, "for all").slots == 4
    assert create_pool("wide", "5", "for all").pool == "wide"
    assert get_pool("wide").slots == 5
    assert [pool.pool for pool in get_pools()] == ["default_pool", "wide"]
    delete_pool("wide")
    with pytest.raises(PoolNotFound, match="there is no pool 'wide'"):
        get_pool("wide")
    assert Client(None, None).create_pool("thin", 1, "one") == ("thin", 1, "one")
    assert Client(None, None).get_pools()[1] == ("thin", 1, "one")
