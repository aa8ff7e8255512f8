"""`airflow.settings`: the values that DAG files read, and the sessions of `session`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.airflow.compat.configuration import AIRFLOW_HOME
from tradewind.airflow.compat.session import ScopedSession
from tradewind.sdk.conf import conf

if TYPE_CHECKING:
    from datetime import tzinfo

__all__ = [  # noqa: F822  the folders and the zone come with `__getattr__`
    "AIRFLOW_HOME",
    "ALLOW_FUTURE_EXEC_DATES",
    "CAN_FORK",
    "CHECK_SLAS",
    "DAGS_FOLDER",
    "EXECUTE_TASKS_NEW_PYTHON_INTERPRETER",
    "HEADER",
    "LAZY_LOAD_PLUGINS",
    "LOGGING_LEVEL",
    "LOG_FORMAT",
    "MIN_SERIALIZED_DAG_UPDATE_INTERVAL",
    "PLUGINS_FOLDER",
    "RBAC",
    "SIMPLE_LOG_FORMAT",
    "SQL_ALCHEMY_CONN",
    "STATE_COLORS",
    "STORE_SERIALIZED_DAGS",
    "TIMEZONE",
    "WEB_COLORS",
    "_ENABLE_AIP_52",
    "Session",
    "engine",
    "get_session",
]

Session = ScopedSession()

engine = None
"""There is no SQLAlchemy engine here."""

SQL_ALCHEMY_CONN = ""
"""Processes of user code have no credentials of the database."""

STATE_COLORS: dict[str, str] = {}

LOGGING_LEVEL = logging.INFO
LOG_FORMAT = "[%(asctime)s] {%(filename)s:%(lineno)d} %(levelname)s - %(message)s"
SIMPLE_LOG_FORMAT = "%(asctime)s %(levelname)s - %(message)s"
HEADER = ""
WEB_COLORS = {"LIGHTBLUE": "#4d9de0", "LIGHTORANGE": "#FF9933"}
MIN_SERIALIZED_DAG_UPDATE_INTERVAL = 30
STORE_SERIALIZED_DAGS = False
"""Airflow 1.10: whether DAGs are read from the database. DAG files pass it to `DagBag`, which reads files here."""
_ENABLE_AIP_52 = True
"""Airflow 2.6: whether setup and teardown tasks are allowed. Its examples read it."""

ALLOW_FUTURE_EXEC_DATES = False
CAN_FORK = True
CHECK_SLAS = False
EXECUTE_TASKS_NEW_PYTHON_INTERPRETER = False
LAZY_LOAD_PLUGINS = True
RBAC = True
"""Airflow 1.10: the web server asks for permissions."""


def get_session() -> ScopedSession:
    """Airflow 2.11 and 3: as `Session`."""
    return Session


def configure_orm(disable_connection_pool: bool = False, pool_class: Any = None) -> None:
    """Do nothing: there is no database of Airflow to connect to. Listeners of packages (openlineage) call it in processes that
    they start.
    """


def configure_vars() -> None:
    """Do nothing: settings are read when they are used. Test helpers call this after they have changed settings."""


def __getattr__(name: str) -> Any:
    """Values that depend on the settings of this process are read at their first use.

    Raises:
        AttributeError: there is no such setting here.
    """
    if name == "DAGS_FOLDER":
        return conf.get("core", "dags_folder", fallback=os.path.join(AIRFLOW_HOME, "dags"))
    if name == "PLUGINS_FOLDER":
        return conf.get("core", "plugins_folder", fallback=str(Path(AIRFLOW_HOME, "plugins")))
    if name == "TIMEZONE":
        return _timezone()
    raise AttributeError(f"module 'airflow.settings' has no attribute {name!r}")


def _timezone() -> tzinfo:
    import pendulum  # lazy import: 80 ms; only where a DAG file asks for the zone

    zone: tzinfo = pendulum.timezone(conf.get("core", "default_timezone", fallback="UTC"))
    return zone
