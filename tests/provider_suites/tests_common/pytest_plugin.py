"""The pytest plugin that each suite's conftest names."""

from __future__ import annotations

import datetime
import functools
import importlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
from tests_common.test_utils.runs import DagMaker, RunTask, make_runtime_ti

import tradewind.airflow  # noqa: F401  serves the `airflow` namespace
from tradewind.airflow.compat import lineage
from tradewind.execution import local_database

RUNTIME_DATE = datetime.datetime(2024, 12, 1, 1, tzinfo=datetime.UTC)
"""The logical date of Airflow's fixture `create_runtime_ti`; tests contain ids that are made from it."""
DEFAULT_DATE = datetime.datetime(2016, 1, 1, tzinfo=datetime.UTC)
SENSOR_TIMEOUT_S = 7
"""How long the sensors of Airflow's fixture `create_task_of_operator` wait."""

os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "True")

DB_TESTS_RUN = os.environ.get("PROVIDER_DB_TESTS", "").lower() in ("1", "true", "yes")
"""Whether tests run that Airflow marks with `db_test`. Their rows are in the memory of the process."""

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
"""Marker → the reason why its tests are skipped. Airflow's own test run also skips them by default."""


def pytest_configure(config: pytest.Config) -> None:
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    logging.getLogger().setLevel(logging.INFO)  # Airflow's level, which tests with `caplog` expect


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = next((text for marker, text in _SYSTEMS.items() if item.get_closest_marker(marker)), None)
        if needs_database(item):
            item.user_properties.append(("db_test", "yes"))
            if not DB_TESTS_RUN:
                reason = reason or "needs Airflow's metadata database (db_test)"
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


def needs_database(item: pytest.Item) -> bool:
    """Whether Airflow marks a test with `db_test`, or the test opens a session of the metadata database."""
    if item.get_closest_marker("non_db_test_override"):
        return False
    return item.get_closest_marker("db_test") is not None or "session" in getattr(item, "fixturenames", ())


@pytest.fixture
def create_connection_without_db(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Define a connection in the environment."""

    def create(connection: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{connection.conn_id.upper()}", connection.as_json())

    return create


@pytest.fixture
def mock_supervisor_comms(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """A stand-in for Airflow's supervisor, which answers requests of tasks."""
    comms = importlib.import_module("airflow.sdk.execution_time.comms")
    made: mock.Mock = mock.create_autospec(comms.CommsDecoder)
    task_runner = importlib.import_module("airflow.sdk.execution_time.task_runner")
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", made, raising=False)
    return made


@pytest.fixture
def sdk_connection_not_found(mock_supervisor_comms: mock.Mock) -> mock.Mock:
    """Answer every request for a connection with `not found`."""
    comms = importlib.import_module("airflow.sdk.execution_time.comms")
    answer = comms.ErrorResponse(error=importlib.import_module("airflow.sdk.exceptions").ErrorType.CONNECTION_NOT_FOUND)
    mock_supervisor_comms.send.return_value = mock_supervisor_comms.asend.return_value = answer
    return mock_supervisor_comms


@pytest.fixture
def listener_manager() -> Iterator[Callable[[Any], None]]:
    """Registers listeners until the end of the test."""
    manager = importlib.import_module("airflow.listeners.listener").get_listener_manager()
    manager.clear()
    yield manager.add_listener
    manager.clear()


@pytest.fixture
def create_db_api_hook(request: pytest.FixtureRequest) -> mock.MagicMock:
    """A hook of a database whose table has the columns that the test's parameter names."""
    from airflow.providers.common.sql.hooks.sql import DbApiHook
    from sqlalchemy.engine import Inspector

    columns, primary_keys, reserved_words, escapes = request.param
    inspector = mock.MagicMock(spec=Inspector)
    inspector.get_columns.side_effect = lambda table_name, schema: columns
    hook = mock.MagicMock(placeholder="?", inspector=inspector, spec=DbApiHook)
    hook.run.side_effect = lambda *_args: primary_keys
    hook.reserved_words, hook.escape_word_format, hook.escape_column_names = reserved_words, "[{}]", escapes or False
    return hook


@pytest.fixture(scope="module", autouse=True)
def own_rows() -> Iterator[None]:
    """Each module begins without rows of other modules, and with Airflow's default connections if it may use a database."""
    local_database.close_database()
    if DB_TESTS_RUN:
        importlib.import_module("airflow.utils.db").initdb()
    yield
    local_database.close_database()


@pytest.fixture
def session() -> Iterator[Any]:
    """A session of the rows in the memory of the process."""
    if not DB_TESTS_RUN:
        pytest.skip("needs Airflow's metadata database (session)")
    with importlib.import_module("airflow.utils.session").create_session() as opened:
        yield opened


@pytest.fixture
def dag_maker(request: pytest.FixtureRequest) -> DagMaker:
    return DagMaker(getattr(request.module, "DEFAULT_DATE", DEFAULT_DATE))


@pytest.fixture
def create_runtime_ti() -> Callable[..., Any]:
    return functools.partial(make_runtime_ti, logical_date=RUNTIME_DATE)


@pytest.fixture
def run_task() -> RunTask:
    return RunTask()


@pytest.fixture
def create_task_instance_of_operator(dag_maker: DagMaker) -> Callable[..., Any]:
    """A task instance of an operator, in a run of its own."""

    def create(
        operator_class: Any,
        *,
        dag_id: str,
        template_searchpath: Any = None,
        session: Any = None,
        **kwargs: Any,
    ) -> Any:
        run = {"logical_date": kwargs.pop("logical_date")} if "logical_date" in kwargs else {}
        with dag_maker(dag_id, template_searchpath=template_searchpath, session=session):
            task = operator_class(**{"task_id": "op", **kwargs})
        return dag_maker.create_ti(task.task_id, dag_run_kwargs=run)

    return create


_OF_RUN = ("logical_date", "run_after", "run_id", "run_type", "data_interval", "conf")
_OF_INSTANCE = ("state", "external_executor_id", "hostname", "pid", "last_heartbeat_at", "try_number")
_OF_DAG = ("schedule", "default_args", "start_date", "params", "catchup", "session", "dagrun_state")


@pytest.fixture
def create_task_instance(dag_maker: DagMaker) -> Callable[..., Any]:
    """A task instance of an empty operator, in a run of its own."""
    from airflow.providers.standard.operators.empty import EmptyOperator

    def create(dag_id: str = "dag", task_id: str = "op1", map_index: int = -1, **kwargs: Any) -> Any:
        run, own, dag = (
            {name: kwargs.pop(name) for name in names if name in kwargs} for names in (_OF_RUN, _OF_INSTANCE, _OF_DAG)
        )
        run["state"] = dag.pop("dagrun_state", None) or "running"
        run.setdefault("logical_date", datetime.datetime.now(datetime.UTC))
        with dag_maker(dag_id, **dag):
            EmptyOperator(task_id=task_id, **kwargs)
        ti = dag_maker.create_ti(task_id, dag_run_kwargs=run, map_index=map_index)
        for name, value in own.items():
            setattr(ti, name, value)
        return ti

    return create


@pytest.fixture
def create_dummy_dag(dag_maker: DagMaker) -> Callable[..., Any]:
    """A DAG with one empty operator, and a run of it."""
    from airflow.providers.standard.operators.empty import EmptyOperator

    def create(dag_id: str = "dag", task_id: str = "op1", with_dagrun_type: Any = "scheduled", **kwargs: Any) -> Any:
        of_dag = {name: kwargs.pop(name) for name in _OF_DAG if name in kwargs}
        with dag_maker(dag_id, **of_dag) as dag:
            task = EmptyOperator(task_id=task_id, **kwargs)
        if with_dagrun_type is not None:
            dag_maker.create_dagrun(run_type=with_dagrun_type)
        return dag, task

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
    """Do nothing: there is nothing to delete."""


clean_dags_dagruns_and_dagbundles = clean_dags_and_dagruns


@pytest.fixture
def clean_executor_loader() -> None:
    """Do nothing: the registry of executors reads the settings at each call."""


@pytest.fixture
def cleanup_providers_manager() -> Iterator[None]:
    """Read the descriptions of provider packages again, before and after the test."""
    from tradewind.provider_packages import offers

    offers.forget()
    yield
    offers.forget()


@pytest.fixture
def hook_lineage_collector() -> Iterator[Any]:
    """A collector of assets for this test only, under every name with which a module has imported the function."""
    found = lineage.get_hook_lineage_collector
    found.cache_clear()
    with mock.patch.object(lineage, "plugin_sources", return_value=("a plugin",)):
        yield found()
    found.cache_clear()


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
    """A sensor, without a run. Tests that wait for its end give no timeout."""

    def create(operator_class: Any, *, dag_id: str, session: Any = None, **kwargs: Any) -> Any:
        del session
        with dag_maker(dag_id):
            return operator_class(**{"timeout": SENSOR_TIMEOUT_S, **kwargs})

    return create


@pytest.fixture
def secret_key() -> str:
    return "secret"
