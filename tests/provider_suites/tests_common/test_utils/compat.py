"""Names whose module differs between releases."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest


def connection_to_dict(connection: Any, *, prune_empty: bool = False, validate: bool = True) -> dict[str, Any]:
    """The fields of a connection."""
    names = ("conn_id", "conn_type", "description", "host", "login", "password", "schema", "port")
    found = {name: getattr(connection, name) for name in names}
    found["extra"] = connection.extra_dejson
    if prune_empty:
        found = {name: value for name, value in found.items() if value not in (None, "", {})}
    if validate:
        json.dumps(found)
    return found


def connection_as_json(connection: Any) -> str:
    """The fields of a connection that are set, without its id."""
    found = connection_to_dict(connection, prune_empty=True, validate=False)
    found.pop("conn_id", None)
    return json.dumps(found)


def deserialize_operator(serialized_operator: dict[str, Any]) -> Any:
    from airflow.serialization.serialized_objects import BaseSerialization

    return BaseSerialization.deserialize(serialized_operator)


@contextlib.contextmanager
def ignore_provider_compatibility_error(minimum_version: str, module_name: str) -> Iterator[None]:
    """Skip a file whose provider package needs a later Airflow."""
    try:
        yield
    except RuntimeError as error:
        if f"needs Apache Airflow {minimum_version}" not in str(error):
            raise
        pytest.skip(f"{module_name} needs Airflow {minimum_version}", allow_module_level=True)


def __getattr__(name: str) -> Any:
    import importlib

    if name == "timezone":
        return importlib.import_module("airflow.sdk.timezone")
    for module in (
        "airflow.sdk",
        "airflow.models",
        "airflow.serialization.serialized_objects",
        "airflow.utils.types",
        "airflow.models.xcom",
        "airflow.models.errors",
        "airflow.models.asset",
        "airflow.providers.standard.operators.bash",
        "airflow.providers.standard.operators.empty",
        "airflow.providers.standard.operators.python",
        "airflow.providers.standard.sensors.bash",
        "airflow.providers.standard.sensors.date_time",
        "airflow.providers.standard.utils.python_virtualenv",
        "airflow.providers.common.sql.operators.generic_transfer",
    ):
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise AttributeError(name)
