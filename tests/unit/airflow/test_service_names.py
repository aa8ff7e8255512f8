"""Names of Airflow's own services and constants, as plugins and DAG files of Airflow 1.10 and 2 import them."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any

import pytest

import tradewind.airflow  # noqa: F401  Airflow's names
from tradewind.model.errors import NotYetSupported


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("airflow.executors.executor_constants:LOCAL_EXECUTOR", "LocalExecutor"),
        ("airflow.executors.executor_constants:KUBERNETES_EXECUTOR", "KubernetesExecutor"),
        ("airflow.models.skipmixin:XCOM_SKIPMIXIN_KEY", "skipmixin_key"),
        ("airflow.operators.trigger_dagrun:XCOM_RUN_ID", "trigger_run_id"),
        ("airflow.lineage:PIPELINE_OUTLETS", "pipeline_outlets"),
        ("airflow.models.dag:TAG_MAX_LEN", 100),
        ("airflow.settings:RBAC", True),
        ("airflow.executors.celery_executor:DEFAULT_QUEUE", "default"),
    ],
)
def test_constants_have_airflows_values(name: str, value: Any) -> None:
    module, _, attribute = name.partition(":")
    assert getattr(importlib.import_module(module), attribute) == value


def test_names_of_airflow_1_8_and_1_9() -> None:
    from airflow import LoggingMixin as Same
    from airflow.bin.cli import api_client
    from airflow.utils.log.LoggingMixin import LoggingMixin

    assert Same is LoggingMixin
    assert callable(api_client)


def test_names_that_maintenance_dags_import() -> None:
    from airflow.api.common.experimental.mark_tasks import set_dag_run_state
    from airflow.cli.commands.db_command import all_tables
    from airflow.models import DAGS_FOLDER, Callback, DagWarning, Deadline, DeadlineAlert, HITLDetail, Team
    from airflow.models.dagwarning import DagWarning as Same
    from airflow.settings import DAGS_FOLDER as SAME_FOLDER
    from airflow.utils.db_cleanup import config_dict, run_cleanup
    from airflow.utils.logging import GCSLog, S3Log
    from airflow.utils.session import create_session_async

    assert {"dag_run", "task_instance", "xcom"} < set(all_tables) == set(config_dict)
    assert DagWarning is Same
    assert DAGS_FOLDER == SAME_FOLDER
    assert all(table.timestamp is not None for table in (DagWarning, Callback, Deadline, DeadlineAlert, HITLDetail, Team))
    assert all(map(callable, (set_dag_run_state, run_cleanup, GCSLog, S3Log, create_session_async)))


def test_the_logger_of_a_module_can_be_imported() -> None:
    from airflow.configuration import log

    assert log.name == "airflow.configuration"


@pytest.mark.parametrize("is_imported_before", [True, False])
def test_pendulum_has_the_names_of_its_older_releases(is_imported_before: bool) -> None:
    """`pendulum.Period` and the function `pendulum.tz.timezone` of Airflow 2.0 – 2.7, `pendulum.Pendulum` of Airflow 1.10."""
    first, second = "import pendulum", "import tradewind.airflow"
    order = f"{first}; {second}" if is_imported_before else f"{second}; {first}"
    script = (
        f"{order}\nfrom pendulum import Pendulum, Period\nassert pendulum.create(2020, 1, 2) == pendulum.datetime(2020, 1, 2)"
    )
    script += "\nassert isinstance(pendulum.period(pendulum.create(2020, 1, 2), pendulum.create(2020, 1, 3)), Period)"
    script += "\nfrom pendulum.tz import timezone\nassert timezone('Asia/Tokyo') == pendulum.tz.timezone('Asia/Tokyo')"
    script += "\nassert pendulum.datetime(2020, 1, 2, tz=timezone('Asia/Tokyo')).utcoffset().total_seconds() == 9 * 3600"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_file_of_the_web_server_is_in_the_home_folder() -> None:
    from airflow.configuration import AIRFLOW_HOME, WEBSERVER_CONFIG

    assert f"{AIRFLOW_HOME}/webserver_config.py" == WEBSERVER_CONFIG


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("airflow.www.app:csrf.exempt", None),
        ("airflow.www.auth:has_access", ([("can_read", "DAGs")],)),
        ("airflow.www.auth:has_access_view", ()),
        ("airflow.www.decorators:action_logging", None),
        ("airflow.www_rbac.decorators:has_dag_access", ()),
        ("airflow.api_connexion.security:requires_access_dag", ("GET",)),
        ("airflow.api_connexion.security:requires_access", ([("can_read", "DAGs")],)),
    ],
)
def test_decorators_of_views_leave_functions_as_they_are(name: str, arguments: tuple[Any, ...] | None) -> None:
    """Otherwise the module of the plugin could not be imported, and its operators would be missing."""
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    decorate: Any = found if arguments is None else found(*arguments)  # type: ignore[operator]

    def view() -> str:
        return "shown"

    assert decorate(view) is view


@pytest.mark.parametrize(
    "name",
    [
        "airflow.contrib.auth.backends.password_auth:PasswordUser",
        "airflow.contrib.auth.backends.ldap_auth:LdapUser",
        "airflow.www_rbac.security:AirflowSecurityManager",
        "airflow.www.security:ApplessAirflowSecurityManager",
        "airflow.ti_deps.deps.not_skipped_dep:NotSkippedDep",
        "airflow.logging.remote:RemoteLogIO",
    ],
)
def test_classes_of_services_can_be_subclassed_and_not_used(name: str) -> None:
    module, _, attribute = name.partition(":")
    base = getattr(importlib.import_module(module), attribute)
    assert inspect.isclass(base)
    assert issubclass(type("Ours", (base,), {}), base)
    with pytest.raises(NotYetSupported, match=attribute):
        base()
