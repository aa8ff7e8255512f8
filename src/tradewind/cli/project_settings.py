"""The file `airflow_settings.yaml` of a project of Astronomer's command line: connections, pools and variables of a local Airflow.

Its lists become the objects by name that the import commands read. The template of the file has one empty entry in each list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_ID = {"connections": "conn_id", "pools": "pool_name", "variables": "variable_name"}
_FIELDS = {
    "connections": {
        "conn_type": "conn_type",
        "conn_host": "host",
        "conn_schema": "schema",
        "conn_login": "login",
        "conn_password": "password",
        "conn_port": "port",
        "conn_extra": "extra",
    },
    "pools": {"pool_slot": "slots", "pool_description": "description"},
}
"""Field in the file → field of the import commands."""


def is_project_settings(content: Mapping[str, Any]) -> bool:
    """Whether this is the content of such a file: the only key is `airflow`, and below it are lists."""
    below = content.get("airflow")
    return len(content) == 1 and isinstance(below, Mapping) and any(isinstance(below.get(kind), list) for kind in _ID)


def values_of_project(content: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The values of one kind by name.

    Args:
        what: `connections`, `pools` or `variables`.

    Raises:
        ValueError: an entry is not an object, or has a value but no name.
    """
    found: dict[str, Any] = {}
    for number, entry in enumerate(content["airflow"].get(what) or (), 1):
        if not isinstance(entry, Mapping):
            raise ValueError(f"entry {number} of airflow.{what} is {entry!r}; it must have the key {_ID[what]}")
        name = entry.get(_ID[what])
        if name in (None, ""):
            if any(value not in (None, "", {}) for value in entry.values()):
                raise ValueError(f"entry {number} of airflow.{what} has no {_ID[what]}")
            continue
        found[str(name)] = _value(entry, what)
    return found


def _value(entry: Mapping[str, Any], what: str) -> Any:
    if what == "variables":
        return entry.get("variable_value")
    if entry.get("conn_uri"):
        return entry["conn_uri"]
    given = {key: entry.get(field) for field, key in _FIELDS[what].items()}
    fields = {key: value for key, value in given.items() if value not in (None, "", {})}
    if isinstance(fields.get("extra"), Mapping):
        fields["extra"] = json.dumps(fields["extra"])
    return fields
