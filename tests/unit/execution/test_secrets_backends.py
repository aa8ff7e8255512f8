"""Secrets backends: the order of the places, errors, the cache, and the masks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.execution.world import World
from tradewind.airflow.compat.secrets_backends import BaseSecretsBackend, MetastoreBackend
from tradewind.sdk import secrets_backends
from tradewind.sdk.exceptions import AirflowConfigException, AirflowException
from tradewind.sdk.variables import BaseHook, Connection, Variable
from tradewind.wire.messages import MaskSecrets

Configure = Callable[..., None]
LOCAL = "airflow.secrets.local_filesystem.LocalFilesystemBackend"


class OlderBackend(BaseSecretsBackend):
    """As the provider packages of Airflow 1 and 2 write them, and one that reads a connection itself."""

    asked: list[str]

    def __init__(self, prefix: str = "", **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.prefix = prefix
        type(self).asked = []

    def get_conn_uri(self, conn_id: str) -> str | None:
        self.asked.append(conn_id)
        if conn_id == "broken":
            raise OSError("the vault is sealed")
        return f"http://{self.prefix}{Connection.get('vault').host}/" if conn_id == "indirect" else None

    def get_variable(self, key: str) -> str | None:
        self.asked.append(key)
        return "from the backend" if key == "known" else None


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Iterator[Configure]:
    """Sets the backend and its arguments."""

    def to(path: str, section: str = "SECRETS__BACKEND", **arguments: object) -> None:
        monkeypatch.setenv(f"AIRFLOW__{section}", path)
        monkeypatch.setenv(f"AIRFLOW__{section}_KWARGS", json.dumps(arguments))

    secrets_backends._make.cache_clear()
    yield to
    secrets_backends._make.cache_clear()
    secrets_backends._cache.clear()


def test_the_backend_is_asked_first_then_the_environment_then_the_database(
    world: World, configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "variables.yaml").write_text("both: of the backend\nlist: [1, 2]\n")
    (tmp_path / "connections.json").write_text(
        json.dumps({"db": "postgres://ada:pw@db/x", "web": {"conn_type": "http", "host": "w"}})
    )
    configure(
        LOCAL,
        variables_file_path=str(tmp_path / "variables.yaml"),
        connections_file_path=str(tmp_path / "connections.json"),
    )
    monkeypatch.setenv("AIRFLOW_VAR_BOTH", "of the environment")
    monkeypatch.setenv("AIRFLOW_VAR_ENV", "of the environment")
    world.variables["stored"] = "of the database"
    assert [Variable.get(key) for key in ("both", "env", "stored")] == [
        "of the backend",
        "of the environment",
        "of the database",
    ]
    assert Variable.get("list", deserialize_json=True) == [1, 2]
    found = BaseHook.get_connection("db")
    assert (found.conn_id, found.conn_type, found.password) == ("db", "postgres", "pw")
    assert Connection.get("web").host == "w"
    masked = [question.values for question in world.questions if isinstance(question, MaskSecrets)]
    assert ("pw",) in masked, "the worker masks the password in the log"


def test_a_backend_that_fails_is_skipped(world: World, configure: Configure, caplog: pytest.LogCaptureFixture) -> None:
    configure(f"{__name__}.OlderBackend")
    world.connections["broken"] = "http://stored/"
    assert Connection.get("broken").host == "stored"
    assert "The secrets backend OlderBackend cannot read the connection 'broken'" in caplog.text
    assert "the vault is sealed" in caplog.text


def test_a_backend_may_read_a_connection_itself(world: World, configure: Configure) -> None:
    configure(f"{__name__}.OlderBackend", prefix="to-")
    world.connections["vault"] = "http://vault/"
    assert Connection.get("indirect").host == "to-vault"
    assert OlderBackend.asked == ["indirect"]


def test_the_backend_of_workers_has_priority_and_the_cache_is_used(
    world: World, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("no.such.Backend")
    configure(f"{__name__}.OlderBackend", "WORKERS__SECRETS_BACKEND")
    monkeypatch.setenv("AIRFLOW__SECRETS__USE_CACHE", "true")
    assert [Variable.get("known"), Variable.get("known"), Variable.get("other", None)] == ["from the backend"] * 2 + [None]
    assert OlderBackend.asked == ["known", "other"]


@pytest.mark.parametrize(
    ("path", "arguments", "says"),
    [
        ("no.such.Backend", {}, "the secrets backend 'no.such.Backend' of .secrets. cannot be imported"),
        (
            LOCAL,
            {"file": "x"},
            "the arguments of the secrets backend .*LocalFilesystemBackend of .secrets. are wrong: .*'file'",
        ),
    ],
)
def test_a_wrong_setting_is_an_error(
    world: World, configure: Configure, path: str, arguments: dict[str, str], says: str
) -> None:
    configure(path, **arguments)
    with pytest.raises(AirflowConfigException, match=says):
        Variable.get("x")


def test_wrong_files_of_the_local_backend(tmp_path: Path) -> None:
    from airflow.secrets.local_filesystem import load_connections_dict, load_variables

    with pytest.raises(AirflowException, match="was not found"):
        load_variables(str(tmp_path / "nothing.json"))
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(AirflowException, match="has a list"):
        load_variables(str(tmp_path / "list.json"))
    (tmp_path / "one.env").write_text("# comment\ndb=http://host/\n")
    assert load_connections_dict(str(tmp_path / "one.env"))["db"].host == "host"


def test_the_metastore_backend_reads_what_tasks_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_AWS_CREDENTIALS", "aws://key:secret@")
    monkeypatch.setenv("AIRFLOW_VAR_BUCKET", "ours")
    backend = MetastoreBackend()
    found = backend.get_connection("aws_credentials")
    assert found is not None
    assert (found.login, found.password) == ("key", "secret")
    assert (backend.get_connection("missing"), backend.get_variable("missing")) == (None, None)
    assert backend.get_variable("bucket") == "ours"
