"""`airflow.utils.db` in tests of DAG files: the functions that create, fill and empty Airflow's metadata database.

In a process that runs tests (pytest, unittest, `core.unit_test_mode`) the rows are in the memory of the process: see
`tradewind.execution.local_database`. In other processes they are refused, except those for connections: Tradewind's services create
their database themselves.
"""

from __future__ import annotations

from typing import Any

from tradewind.airflow.compat.session import session_or_new
from tradewind.execution.local_database import LocalDatabase, in_test_process, open_database
from tradewind.model.errors import NotYetSupported
from tradewind.sdk.default_connections import DEFAULT_CONNECTIONS
from tradewind.sdk.variables import Connection
from tradewind.wire import runtime

__all__ = [
    "add_default_pool_if_not_exists",
    "bootstrap_dagbag",
    "check",
    "check_and_run_migrations",
    "check_migrations",
    "checkdb",
    "create_default_connections",
    "get_default_connections",
    "initdb",
    "merge_conn",
    "resetdb",
    "synchronize_log_template",
    "upgradedb",
]


def _database(name: str) -> LocalDatabase:
    """Raises NotYetSupported: this process runs no tests."""
    if not (runtime.is_local() and in_test_process()):
        raise NotYetSupported(
            f"airflow.utils.db.{name}() is part of Airflow's own services: Tradewind's services create and migrate their database "
            "themselves (`tradewind db migrate`). In tests (pytest, unittest, AIRFLOW__CORE__UNIT_TEST_MODE=True) it works in the "
            "memory of the process"
        )
    return open_database()


def initdb(*_args: Any, load_connections: bool = True, **_options: Any) -> None:
    """Open the database of this process, with default connections.

    Raises:
        NotYetSupported: this process runs no tests.
    """
    _database("initdb")
    if load_connections:
        create_default_connections()


def resetdb(*_args: Any, **_options: Any) -> None:
    """Delete all rows of this process. Raises as `initdb`."""
    _database("resetdb").reset()
    create_default_connections()


def upgradedb(*_args: Any, **_options: Any) -> None:
    """Open the database of this process. Raises as `initdb`."""
    _database("upgradedb")


def check(*_args: Any, **_options: Any) -> None:
    """Do nothing: the database of this process is always there. Raises as `initdb`."""
    _database("check")


checkdb = check_migrations = check_and_run_migrations = check
add_default_pool_if_not_exists = synchronize_log_template = bootstrap_dagbag = check


def create_default_connections(session: Any = None, **_options: Any) -> None:
    """Add those connections of a new database of Airflow (`fs_default`, `http_default` …) that do not exist.

    Args:
        session: adds them at its commit. None: they are added at once.
    """
    with session_or_new(session) as own:
        known = {connection.conn_id for connection in own.query(Connection)}
        own.add_all(connection for connection in get_default_connections() if connection.conn_id not in known)


def get_default_connections() -> list[Connection]:
    """The connections that `create_default_connections` adds."""
    return [Connection(name, **parts) for name, parts in DEFAULT_CONNECTIONS.items()]


def merge_conn(conn: Connection, session: Any = None) -> None:
    """Add a connection, unless there is one with its id. See `create_default_connections` for the session."""
    with session_or_new(session) as own:
        if own.query(Connection).filter_by(conn_id=conn.conn_id).first() is None:
            own.add(conn)
