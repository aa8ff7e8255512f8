"""Creates hooks of databases without a database."""

from __future__ import annotations

from typing import Any
from unittest import mock

_CURSOR = ["description", "rowcount", "execute", "fetchall", "fetchone", "close"]


def mock_db_hook(hook_class: Any, hook_params: dict[str, Any] | None = None, conn_params: dict[str, Any] | None = None) -> Any:
    """A hook whose connection and cursor are mocks; it counts how often its connection was read."""
    from airflow.models import Connection

    facts = {"login": "login", "password": "password", "host": "host", "schema": "schema", "port": 1234, **(conn_params or {})}
    connection = Connection(**facts)
    database = mock.MagicMock()
    database.cursor.return_value = mock.MagicMock(rowcount=0, spec=_CURSOR)

    class Hook(hook_class):  # type: ignore[misc]  # the class under test
        conn_name_attr = "test_conn_id"
        connection_invocations = 0

        @classmethod
        def get_connection(cls, conn_id: str) -> Any:
            del conn_id
            cls.connection_invocations += 1
            return connection

        def get_conn(self) -> Any:
            return database

    return Hook(**(hook_params or {}))
