"""`airflow.secrets`: base of the backends that know connections and variables."""

from __future__ import annotations

import os
from typing import Any

from tradewind.sdk.variables import Connection

__all__ = ["DEFAULT_SECRETS_SEARCH_PATH", "BaseSecretsBackend", "EnvironmentVariablesBackend"]

CONN_ENV_PREFIX = "AIRFLOW_CONN_"
VAR_ENV_PREFIX = "AIRFLOW_VAR_"

DEFAULT_SECRETS_SEARCH_PATH = ["airflow.secrets.environment_variables.EnvironmentVariablesBackend"]


class BaseSecretsBackend:
    """Base of secrets backends: they look for the text of a connection, of a variable or of a setting."""

    def __init__(self, **_kwargs: Any) -> None:
        pass

    @staticmethod
    def build_path(path_prefix: str, secret_id: str, sep: str = "/") -> str:
        """`prefix/id`."""
        return f"{path_prefix}{sep}{secret_id}"

    def get_conn_value(self, conn_id: str, *_args: Any, **_kwargs: Any) -> str | None:
        """The text of a connection (a URI or JSON), or None.

        Raises:
            NotImplementedError: a backend must say.
        """
        raise NotImplementedError

    def get_conn_uri(self, conn_id: str) -> str | None:
        """The URI of a connection, or None: what backends for Airflow 1 and 2 define."""
        raise NotImplementedError

    def deserialize_connection(self, conn_id: str, value: str) -> Connection:
        """A connection from its text."""
        return Connection.from_text(value.strip(), conn_id=conn_id)

    def get_connection(self, conn_id: str, *_args: Any, **_kwargs: Any) -> Connection | None:
        """A connection, or None."""
        try:
            value = self.get_conn_value(conn_id)
        except NotImplementedError:
            value = self.get_conn_uri(conn_id)
        return self.deserialize_connection(conn_id, value) if value else None

    def get_connections(self, conn_id: str) -> list[Connection]:
        """The connections of that id: none or one."""
        found = self.get_connection(conn_id)
        return [found] if found else []

    def get_variable(self, key: str, *_args: Any, **_kwargs: Any) -> str | None:
        """The text of a variable, or None.

        Raises:
            NotImplementedError: a backend must say.
        """
        raise NotImplementedError

    def get_config(self, key: str) -> str | None:
        """The text of a setting, or None."""
        return None


class EnvironmentVariablesBackend(BaseSecretsBackend):
    """Connections and variables of the environment: `AIRFLOW_CONN_<ID>` and `AIRFLOW_VAR_<KEY>`."""

    def get_conn_value(self, conn_id: str, *_args: Any, **_kwargs: Any) -> str | None:
        """The text of a connection, or None."""
        return os.environ.get(f"AIRFLOW_CONN_{conn_id.upper()}")

    def get_variable(self, key: str, *_args: Any, **_kwargs: Any) -> str | None:
        """The text of a variable, or None."""
        return os.environ.get(f"AIRFLOW_VAR_{key.upper()}")
