"""Variables and connections: from the environment, else from the runtime; errors."""

from __future__ import annotations

import pytest

from tests.unit.execution.world import World
from tradewind.model.errors import TradewindError
from tradewind.sdk.exceptions import AirflowException, AirflowNotFoundException
from tradewind.sdk.variables import BaseHook, Connection, Variable
from tradewind.wire.runtime import NoRuntime


def test_a_variable_is_read_from_the_runtime(world: World) -> None:
    world.variables["bucket"] = "b1"
    assert Variable.get("bucket") == "b1"


@pytest.mark.parametrize("prefix", ["TRADEWIND_VAR_", "AIRFLOW_VAR_"])
def test_the_environment_is_read_first(world: World, monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    world.variables["bucket"] = "stored"
    monkeypatch.setenv(f"{prefix}BUCKET", "from env")
    assert Variable.get("bucket") == "from env"
    assert world.questions == []


def test_a_missing_variable_is_a_key_error_with_advice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_BUCKET", "x")
    with pytest.raises(KeyError) as caught:
        Variable.get("buckte")
    assert str(caught.value).startswith("Variable buckte does not exist. Did you mean 'bucket'?")
    assert isinstance(caught.value, AirflowException | TradewindError)


@pytest.mark.parametrize("fallback", [None, "", {"a": 1}])
def test_a_default_may_be_any_value(world: World, fallback: object) -> None:
    assert Variable.get("nope", fallback) is fallback
    assert Variable.get("nope", default_var=fallback) is fallback


def test_json(world: World) -> None:
    Variable.set("j", {"a": [1]}, serialize_json=True)
    assert Variable.get("j", deserialize_json=True) == {"a": [1]}
    world.variables["bad"] = "{"
    with pytest.raises(AirflowException, match="the value of variable 'bad' is not JSON"):
        Variable.get("bad", deserialize_json=True)


def test_set_update_setdefault_delete(world: World) -> None:
    with pytest.raises(KeyError):
        Variable.update("n", 1)
    assert Variable.setdefault("n", 5) == 5
    Variable.update("n", 6)
    assert world.variables == {"n": "6"}
    assert Variable.delete("n") == 1
    assert Variable.delete("n") == 0


def test_the_error_of_a_failed_request_gives_the_reason(world: World) -> None:
    world.broken = "the scheduler is away"
    with pytest.raises(AirflowException, match="cannot read variable 'x': the scheduler is away"):
        Variable.get("x")


def test_without_a_runtime_variables_do_not_exist() -> None:
    with pytest.raises(NoRuntime, match="while no task is running"):
        Variable.get("x")


URIS = [
    "postgres://me:p%40ss%2Fw@h.example:5432/s1?sslmode=require",
    "my-type://",
    "http://https://api.example/v1",
    "s3://?__extra__=%7B%22n%22%3A+2%7D".replace("://?", ":///?"),
    "mysql://@:3306/db",
    "ftp://user@h",
]


@pytest.mark.parametrize("uri", URIS)
def test_a_uri_is_read_and_written_back(uri: str) -> None:
    assert Connection.from_uri(uri).get_uri() == uri


def test_a_uri_of_a_connection_without_a_type_begins_with_slashes() -> None:
    assert Connection(host="h", login="me", port=1).get_uri() == "//me@h:1"
    assert Connection(host="https://h", login="me").get_uri() == "//https://me@h"


@pytest.mark.parametrize("uri", ["//me:secret@h:1/db?a=b", "//https://me@h", "//h"])
def test_a_uri_without_a_type_is_read_and_written_back(uri: str) -> None:
    found = Connection.from_uri(uri)
    assert (found.conn_type, found.get_uri()) == (None, uri)


def test_the_parts_of_a_uri() -> None:
    conn = Connection.from_uri(URIS[0], "db1")
    assert (conn.conn_id, conn.conn_type, conn.host, conn.port) == ("db1", "postgres", "h.example", 5432)
    assert (conn.login, conn.password, conn.schema) == ("me", "p@ss/w", "s1")
    assert conn.extra_dejson == {"sslmode": "require"}
    assert Connection.from_uri("postgresql://h").conn_type == "postgres"
    assert Connection.from_uri("google-cloud-platform://").conn_type == "google_cloud_platform"
    assert Connection.from_uri("S3x://Bucket.Name/x").host == "Bucket.Name"


def test_json_is_read_and_written_back() -> None:
    conn = Connection.from_json('{"type": "http", "user": "u", "port": "80", "extra": {"a": 1}}', "c")
    assert (conn.conn_type, conn.login, conn.port, conn.extra_dejson) == ("http", "u", 80, {"a": 1})
    assert Connection.from_json(conn.as_json(), "c").to_dict() == conn.to_dict()
    # Airflow's secrets backends answer with JSON; hooks know the type `postgres`
    assert Connection.from_json('{"conn_type": "postgresql", "host": "h"}').conn_type == "postgres"
    assert Connection.from_json('{"conn_type": "google-cloud-platform"}').conn_type == "google_cloud_platform"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"hots": "x"}', "unknown key 'hots'. Did you mean 'host'?"),
        ("[1]", "not a JSON object"),
        ('{"port": "x"}', "port 'x' is not a number"),
        ("", "not a JSON object"),
    ],
)
def test_invalid_json_is_an_error(text: str, sentence: str) -> None:
    with pytest.raises(AirflowException) as caught:
        Connection.from_json(text, "c")
    assert sentence in str(caught.value)


def test_invalid_uris_are_errors() -> None:
    with pytest.raises(AirflowException, match="has no type"):
        Connection.from_uri("just-text")
    with pytest.raises(AirflowException, match="invalid port"):
        Connection.from_uri("http://h:port")
    with pytest.raises(AirflowException, match="not both"):
        Connection("c", uri="http://h", host="h")


def test_extra_must_be_an_object() -> None:
    with pytest.raises(AirflowException, match="extra is not JSON"):
        _ = Connection("c", extra="{").extra_dejson
    with pytest.raises(AirflowException, match="it must be an object"):
        _ = Connection("c", extra="[1]").extra_dejson
    assert Connection("c", extra='{"a": "{\\"b\\": 1}"}').get_extra_dejson(nested=True) == {"a": {"b": 1}}


def test_connections_are_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.connections["warehouse"] = {"conn_type": "postgres", "host": "stored", "extra": None}
    assert BaseHook.get_connection("warehouse").host == "stored"
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgres://env/x")
    assert BaseHook.get_connection("warehouse").host == "env"
    monkeypatch.setenv("TRADEWIND_CONN_WAREHOUSE", '{"conn_type": "postgres", "host": "ours"}')
    assert BaseHook.get_connection("warehouse").host == "ours"
    with pytest.raises(AirflowNotFoundException, match=r"connection 'warehosue'\. Did you mean 'warehouse'\?"):
        Connection.get("warehosue")
    assert "pw" not in repr(Connection("c", password="pw"))


def test_without_a_runtime_a_connection_is_missing_for_hooks_of_provider_packages() -> None:
    """They catch Airflow's exception for this and use their defaults."""
    with pytest.raises(AirflowNotFoundException, match="while no task is running") as caught:
        Connection.get("spark_default")
    assert isinstance(caught.value, NoRuntime)
