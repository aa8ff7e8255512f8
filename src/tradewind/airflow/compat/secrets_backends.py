"""`airflow.secrets`: base class of the backends that provide connections and variables."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import yaml

from tradewind.sdk.exceptions import AirflowException, AirflowNotFoundException
from tradewind.sdk.variables import Connection, DatabaseNotReachable, Variable

__all__ = [
    "DEFAULT_SECRETS_SEARCH_PATH",
    "BaseSecretsBackend",
    "EnvironmentVariablesBackend",
    "LocalFilesystemBackend",
    "MetastoreBackend",
    "load_connections_dict",
    "load_variables",
]

CONN_ENV_PREFIX = "AIRFLOW_CONN_"
VAR_ENV_PREFIX = "AIRFLOW_VAR_"

DEFAULT_SECRETS_SEARCH_PATH = ["airflow.secrets.environment_variables.EnvironmentVariablesBackend"]


class BaseSecretsBackend:
    """Base of secrets backends: they return the text of a connection, a variable or a setting."""

    def __init__(self, **_kwargs: Any) -> None:
        pass

    @staticmethod
    def build_path(path_prefix: str, secret_id: str, sep: str = "/") -> str:
        """`prefix/id`."""
        return f"{path_prefix}{sep}{secret_id}"

    def get_conn_value(self, conn_id: str, *_args: Any, **_kwargs: Any) -> str | None:
        """The text of a connection (a URI or JSON), or None.

        Raises:
            NotImplementedError: the backend does not define it.
        """
        raise NotImplementedError

    def get_conn_uri(self, conn_id: str) -> str | None:
        """The URI of a connection, or None. Backends for Airflow 1 and 2 define this method."""
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
        """The connections with this id: none or one."""
        found = self.get_connection(conn_id)
        return [found] if found else []

    def get_variable(self, key: str, *_args: Any, **_kwargs: Any) -> str | None:
        """The text of a variable, or None.

        Raises:
            NotImplementedError: the backend does not define it.
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


class LocalFilesystemBackend(BaseSecretsBackend):
    """Connections and variables of two files: JSON, YAML, or lines `NAME=VALUE` (`.env`).

    Args:
        variables_file_path, connections_file_path: paths of the files; None: there is no such file.
    """

    def __init__(self, variables_file_path: str | None = None, connections_file_path: str | None = None) -> None:
        super().__init__()
        self.variables_file = variables_file_path
        self.connections_file = connections_file_path

    def get_connection(self, conn_id: str, *_args: Any, **_kwargs: Any) -> Connection | None:
        """A connection, or None."""
        return load_connections_dict(self.connections_file).get(conn_id) if self.connections_file else None

    def get_variable(self, key: str, *_args: Any, **_kwargs: Any) -> str | None:
        """The text of a variable, or None."""
        return load_variables(self.variables_file).get(key) if self.variables_file else None


class MetastoreBackend(BaseSecretsBackend):
    """The connections and variables of this installation, in the order in which tasks look for them."""

    def get_connection(self, conn_id: str, *_args: Any, **_kwargs: Any) -> Connection | None:
        """A connection, or None."""
        try:
            return Connection.get(conn_id)
        except DatabaseNotReachable:
            raise
        except AirflowNotFoundException:
            return None

    def get_variable(self, key: str, *_args: Any, **_kwargs: Any) -> str | None:
        """The text of a variable, or None."""
        return cast("str | None", Variable.get(key, None))


def load_variables(file_path: str) -> dict[str, str]:
    """The variables of a file. Values that are not strings are converted to JSON.

    Raises:
        AirflowException: the file cannot be read, or is not a mapping.
    """
    values = _read(file_path)
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}


def load_connections_dict(file_path: str) -> dict[str, Connection]:
    """The connections of a file: each is a URI, the text of a JSON object, or a mapping of its parts.

    Raises:
        AirflowException: the file cannot be read, or a connection in it is wrong.
    """
    found = {}
    for conn_id, value in _read(file_path).items():
        if isinstance(value, list) and len(value) == 1:  # Airflow 1.10 wrote lists
            value = value[0]
        if isinstance(value, str):
            found[conn_id] = Connection.from_text(value, conn_id)
        elif isinstance(value, dict):
            parts = dict(value)
            if "extra_dejson" in parts:
                parts["extra"] = json.dumps(parts.pop("extra_dejson"))
            found[conn_id] = Connection.from_json(parts, conn_id)
        else:
            raise AirflowException(
                f"the connection {conn_id!r} in {file_path} is a {type(value).__name__}, not a URI or a mapping"
            )
    return found


def _read(file_path: str) -> dict[str, Any]:
    """The values of a file by name; a file without values has none."""
    try:
        text = Path(file_path).read_text(encoding="utf-8")
    except OSError as error:
        raise AirflowException(
            f"File {file_path} was not found. Check the arguments of the secrets backend. ({error})"
        ) from error
    suffix = Path(file_path).suffix.lower()
    try:
        if suffix == ".json":
            values = json.loads(text)
        elif suffix in (".yaml", ".yml"):
            values = yaml.safe_load(text) or {}
        elif suffix == ".env":
            lines = [line.strip() for line in text.splitlines()]
            values = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        else:
            raise AirflowException(f"{file_path}: the extension is {suffix!r}; it must be .json, .yaml, .yml or .env")
    except ValueError as error:
        raise AirflowException(f"{file_path} cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise AirflowException(f"{file_path} has a {type(values).__name__}; it must have an object of names and values")
    return values
