"""Functions that empty tables: here the rows in the memory of the process (`tradewind.execution.local_database`)."""

from __future__ import annotations

import os
from typing import Any

from tradewind.execution.local_database import database


def clear_db_runs() -> None:
    """Delete the runs, with their task instances and XComs."""
    database().runs.clear()


clear_db_dags = clear_db_runs


def clear_db_xcom() -> None:
    """Delete the XComs of all runs."""
    for run in database().runs.values():
        run.xcoms.clear()


def clear_db_variables() -> None:
    database().variables.clear()


def clear_db_connections(add_default_connections_back: bool = True) -> None:
    from airflow.utils.db import create_default_connections

    database().connections.clear()
    if add_default_connections_back:
        create_default_connections()


def clear_test_connections(add_default_connections_back: bool = True) -> None:
    """Delete the connections of the environment."""
    for name in [name for name in os.environ if name.startswith("AIRFLOW_CONN_")]:
        del os.environ[name]
    if add_default_connections_back:
        clear_db_connections()


def __getattr__(name: str) -> Any:
    """A function that does nothing: other tables have no rows."""
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *args, **kwargs: None
