"""The pytest plugin that each suite's conftest names."""

from __future__ import annotations

import datetime
import functools
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
from tests_common.test_utils.runs import DagMaker, RunTask, make_runtime_ti

import tradewind.airflow  # noqa: F401  serves the `airflow` namespace

RUNTIME_DATE = datetime.datetime(2024, 12, 1, 1, tzinfo=datetime.UTC)
"""The logical date of Airflow's fixture `create_runtime_ti`; tests know ids that are made from it."""
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


_SYSTEMS = {
    "backend": "needs a metadata database of one kind (backend)",
    "integration": "needs another system (integration)",
    "system": "needs another system (system)",
    "quarantined": "is quarantined by Airflow itself",
}
"""Marker → why its tests are not run, as Airflow's own test run does without options."""


def pytest_configure(config: pytest.Config) -> None:
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = next((text for marker, text in _SYSTEMS.items() if item.get_closest_marker(marker)), None)
        if item.get_closest_marker("db_test") and not item.get_closest_marker("non_db_test_override"):
            reason = "needs Airflow's metadata database (db_test)"
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


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
    return functools.partial(make_runtime_ti, logical_date=RUNTIME_DATE)


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


clean_dags_dagruns_and_dagbundles = clean_dags_and_dagruns


@pytest.fixture
def cleanup_providers_manager() -> Iterator[None]:
    """Read the descriptions of provider packages again, before and after the test."""
    from tradewind.provider_packages import offers

    offers.forget()
    yield
    offers.forget()


@pytest.fixture
def hook_lineage_collector() -> Iterator[Any]:
    """A collector of assets of this test's own."""
    from airflow.lineage import hook

    collector = hook.HookLineageCollector()
    with (
        mock.patch("airflow.lineage.hook.get_hook_lineage_collector", return_value=collector),
        mock.patch("airflow.providers.common.compat.lineage.hook.get_hook_lineage_collector", return_value=collector),
    ):
        yield collector


@pytest.fixture
def create_log_template(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the name of log files."""

    def create(filename_template: str, elasticsearch_id: str = "") -> None:
        del elasticsearch_id
        monkeypatch.setenv("AIRFLOW__LOGGING__LOG_FILENAME_TEMPLATE", filename_template)

    return create


@pytest.fixture
def reset_logging_config() -> Iterator[None]:
    """Restore the levels and handlers of the loggers of Airflow's tasks."""
    loggers = [logging.getLogger(name) for name in ("", "airflow", "airflow.task")]
    before = [(logger, logger.level, list(logger.handlers), logger.propagate) for logger in loggers]
    yield
    for logger, level, handlers, propagate in before:
        logger.setLevel(level)
        logger.handlers[:], logger.propagate = handlers, propagate


@pytest.fixture
def create_task_of_operator(dag_maker: DagMaker) -> Callable[..., Any]:
    """A task of an operator, without a run."""

    def create(operator_class: Any, *, dag_id: str, session: Any = None, **kwargs: Any) -> Any:
        del session
        with dag_maker(dag_id):
            return operator_class(**kwargs)

    return create


@pytest.fixture
def secret_key() -> str:
    return "secret"
