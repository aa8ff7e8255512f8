"""Reads variables and connections from files, for `dag.test()`.

Source of the formats: Airflow's LocalFilesystemBackend. `.json` and `.yaml`/`.yml` files contain an object of names and values,
`.env` files contain lines NAME=value. A connection is a URI or an object of its parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tradewind.model.errors import ConfigError
from tradewind.model.rows import ConnectionRow, VariableRow
from tradewind.sdk.variables import Connection


def read_variables(path: str) -> list[VariableRow]:
    """The variables of a file. A value that is not a text is stored as JSON.

    Raises:
        ConfigError: the file cannot be read.
    """
    return [variable_row(name, value) for name, value in _read(path, "variables").items()]


def variable_row(name: str, value: Any) -> VariableRow:
    """A variable; a value that is not a text is stored as JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    return VariableRow(name, text.encode(), None, False)


def read_connections(path: str) -> list[ConnectionRow]:
    """The connections of a file. If an id has a list of connections, the first one counts.

    Raises:
        ConfigError: the file cannot be read.
        AirflowException: a connection of the file is invalid.
    """
    rows = []
    for conn_id, written in _read(path, "connections").items():
        first = written[0] if isinstance(written, list) and written else written
        rows.append(connection_row(conn_id, first))
    return rows


def connection_row(conn_id: str, written: str | Mapping[str, Any] | Connection) -> ConnectionRow:
    """A connection from its URI or its parts. Raises AirflowException if they are invalid."""
    if isinstance(written, str):
        one = Connection.from_text(written, conn_id)
    else:
        one = written if isinstance(written, Connection) else Connection.from_json(written, conn_id)
    password = None if one.password is None else one.password.encode()
    extra = None if one.extra is None else one.extra.encode()
    kind = one.conn_type or ""
    return ConnectionRow(conn_id, kind, one.description, one.host, one.login, one.port, one.schema, password, extra)


def _read(path: str, what: str) -> dict[str, Any]:
    kind = Path(path).suffix.lower()
    try:
        text = Path(path).read_text()
        if kind == ".json":
            found = json.loads(text)
        elif kind in (".yaml", ".yml"):
            import yaml  # lazy import: only for YAML files

            found = yaml.safe_load(text)
        elif kind == ".env":
            found = _env(text)
        else:
            raise ConfigError(f"the file of {what} {path} must end with .json, .yaml or .env")
    except (OSError, ValueError) as error:
        raise ConfigError(f"the file of {what} {path} cannot be read: {error}") from error
    except Exception as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"the file of {what} {path} is no valid YAML: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ConfigError(f"the file of {what} {path} must hold an object of names and values, not {type(found).__name__}")
    return found


def _env(text: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        cleaned = line.strip()
        if not cleaned or cleaned.startswith("#"):
            continue
        name, equals, value = cleaned.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"line {number} is not of the form NAME=value")
        found[name.strip()] = value.strip()
    return found
