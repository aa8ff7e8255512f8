"""Arguments for a file system of fsspec from a connection of Airflow: `remote_log_conn_id` names the connection for task logs.

Only connections of the environment (`AIRFLOW_CONN_ID`, `TRADEWIND_CONN_ID`) are read: the process that uploads has no access to the
connections in the database.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tradewind.model.errors import ConfigError
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import CONNECTION_PREFIXES, Connection


def options_of(conn_id: str, url: str, environ: Mapping[str, str]) -> str | None:
    """Return the arguments as a JSON object; None: the environment has no such connection, or it has no credentials.

    Args:
        url: address of the folder; its scheme decides the names of the arguments.

    Raises:
        ConfigError: the connection cannot be read.
    """
    text = next((environ[name] for prefix in CONNECTION_PREFIXES if (name := prefix + conn_id.upper()) in environ), None)
    make = _BY_SCHEME.get(url.partition("://")[0])
    if text is None or make is None:
        return None
    try:
        connection = Connection.from_text(text, conn_id)
        found = {name: value for name, value in make(connection, connection.extra_dejson).items() if value}
    except AirflowException as error:
        raise ConfigError(f"logging.remote_log_conn_id: {error}") from None
    return json.dumps(found) if found else None


def _s3(connection: Connection, extra: Mapping[str, Any]) -> dict[str, Any]:
    host = connection.host if connection.host and "://" in connection.host else None
    region = extra.get("region_name") or extra.get("region")
    return {
        "key": connection.login or extra.get("aws_access_key_id"),
        "secret": connection.password or extra.get("aws_secret_access_key"),
        "token": extra.get("aws_session_token"),
        "profile": extra.get("profile_name") or extra.get("profile"),
        "endpoint_url": extra.get("endpoint_url") or extra.get("host") or host,
        "client_kwargs": {"region_name": region} if region else None,
    }


def _gcs(connection: Connection, extra: Mapping[str, Any]) -> dict[str, Any]:
    def given(name: str) -> Any:
        return extra.get(name) or extra.get(f"extra__google_cloud_platform__{name}")

    key = given("keyfile_dict")
    return {
        "token": (json.loads(key) if isinstance(key, str) else key) or given("key_path"),
        "project": given("project") or given("project_id"),
    }


def _azure(connection: Connection, extra: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "account_name": connection.login,
        "account_key": connection.password if not extra.get("tenant_id") else None,
        "connection_string": extra.get("connection_string"),
        "sas_token": extra.get("sas_token"),
        "tenant_id": extra.get("tenant_id"),
        "client_id": connection.login if extra.get("tenant_id") else None,
        "client_secret": connection.password if extra.get("tenant_id") else None,
    }


_BY_SCHEME: dict[str, Callable[[Connection, Mapping[str, Any]], dict[str, Any]]] = {
    "s3": _s3,
    "s3a": _s3,
    "gs": _gcs,
    "gcs": _gcs,
    "abfs": _azure,
    "abfss": _azure,
    "az": _azure,
    "wasb": _azure,
}
