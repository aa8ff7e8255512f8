"""The pytest plugin that each suite's conftest names."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
from tests_common.test_utils.runs import DagMaker, RunTask, make_runtime_ti

import tradewind.airflow  # noqa: F401  serves the `airflow` namespace

DEFAULT_DATE = datetime.datetime(2016, 1, 1, tzinfo=datetime.UTC)

os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "True")

_MARKERS = (
    "db_test: needs Airflow's metadata database",
    "non_db_test_override: needs no database although its module does",
    "need_serialized_dag: ignored",
    "execution_timeout(seconds): ignored",
    "platform(name): ignored",
    "backend(*names): ignored",
    "integration(name): needs another system",
    "quarantined: ignored",
    "flaky: ignored",
    "system: needs another system",
    "long_running: ignored",
    "virtualenv_operator: ignored",
    "external_python_operator: ignored",
    "mock_plugin_manager: ignored",
    "want_activate_assets: ignored",
    "disable_redact: secrets are not masked",
    "enable_redact: secrets are masked",
)


def pytest_configure(config: pytest.Config) -> None:
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("db_test") and not item.get_closest_marker("non_db_test_override"):
            item.add_marker(pytest.mark.skip(reason="needs Airflow's metadata database (db_test)"))


@pytest.fixture
def create_connection_without_db(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Make a connection known through the environment."""

    def create(connection: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{connection.conn_id.upper()}", connection.as_json())

    return create


@pytest.fixture
def sdk_connection_not_found() -> Iterator[None]:
    """No connection exists."""
    from airflow.exceptions import AirflowNotFoundException

    with mock.patch("airflow.models.Connection.get", side_effect=AirflowNotFoundException("not found")):
        yield


@pytest.fixture
def mock_supervisor_comms() -> Iterator[mock.Mock]:
    """Airflow's line to its supervisor; nothing here uses it."""
    return mock.Mock()


@pytest.fixture
def session() -> None:
    """Sessions exist only in db_tests."""
    pytest.skip("needs Airflow's metadata database (session)")


@pytest.fixture
def dag_maker() -> DagMaker:
    return DagMaker()


@pytest.fixture
def create_runtime_ti() -> Callable[..., Any]:
    return make_runtime_ti


@pytest.fixture
def run_task() -> RunTask:
    return RunTask()


@pytest.fixture
def create_task_instance_of_operator(dag_maker: DagMaker) -> Callable[..., Any]:
    def create(operator_class: Any, *, dag_id: str, logical_date: Any = None, **kwargs: Any) -> Any:
        with dag_maker(dag_id) as dag:
            task = operator_class(**{"task_id": "op", **kwargs})
        assert dag is not None
        return make_runtime_ti(task, logical_date=logical_date or DEFAULT_DATE)

    return create


@pytest.fixture
def create_task_instance(create_task_instance_of_operator: Any) -> Callable[..., Any]:
    from airflow.operators.empty import EmptyOperator

    def create(dag_id: str = "dag", task_id: str = "op1", **kwargs: Any) -> Any:
        for name in ("run_id", "run_type", "session", "state", "data_interval", "logical_date", "try_number", "pool"):
            kwargs.pop(name, None)
        return create_task_instance_of_operator(EmptyOperator, dag_id=dag_id, task_id=task_id, **kwargs)

    return create


@pytest.fixture
def create_dag() -> Callable[..., Any]:
    """A DAG without a run."""

    def create(dag_id: str = "dag", **kwargs: Any) -> Any:
        maker = DagMaker()
        with maker(dag_id, **kwargs) as dag:
            pass
        return dag

    return create


create_dag_without_db = create_dag


@pytest.fixture
def mock_task_instance() -> Callable[..., Any]:
    def create(task_id: str = "task", **facts: Any) -> mock.Mock:
        return mock.Mock(task_id=task_id, **facts)

    return create


@pytest.fixture
def cap_structlog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("DEBUG")
    return caplog


@pytest.fixture
def testing_dag_bundle() -> None:
    """Bundles exist only in db_tests."""


@pytest.fixture
def get_test_dag() -> None:
    pytest.skip("needs Airflow's example DAGs")


@pytest.fixture
def mock_xcom_backend() -> Iterator[mock.Mock]:
    with mock.patch("airflow.models.xcom.XCom") as backend:
        yield backend


@pytest.fixture
def clean_dags_and_dagruns() -> None:
    """Nothing to clean."""
