"""Credentials for the upload of task logs from a connection of the environment (`logging.remote_log_conn_id`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tradewind.model.errors import ConfigError
from tradewind.storage.connection_options import options_of

KEY = {"type": "service_account", "project_id": "p"}


@pytest.mark.parametrize(
    ("url", "connection", "expected"),
    [
        (
            "s3://b/logs",
            "aws://key:se%2Fcret@/?region_name=eu-1",
            {"key": "key", "secret": "se/cret", "client_kwargs": {"region_name": "eu-1"}},
        ),
        (
            "s3://b/logs",
            {"conn_type": "aws", "login": "k", "password": "s", "extra": {"endpoint_url": "http://minio:9000"}},
            {"key": "k", "secret": "s", "endpoint_url": "http://minio:9000"},
        ),
        ("gs://b", {"conn_type": "google_cloud_platform", "extra": {"keyfile_dict": json.dumps(KEY)}}, {"token": KEY}),
        ("gs://b", {"conn_type": "google_cloud_platform", "extra": {"key_path": "/k.json"}}, {"token": "/k.json"}),
        ("abfs://c/logs", {"conn_type": "wasb", "login": "a", "password": "k"}, {"account_name": "a", "account_key": "k"}),
        (
            "abfs://c/logs",
            {"conn_type": "wasb", "login": "id", "password": "s", "extra": {"tenant_id": "t"}},
            {"account_name": "id", "tenant_id": "t", "client_id": "id", "client_secret": "s"},
        ),
        ("s3://b", "aws://", None),
        ("memory://b", "aws://k:s@", None),
    ],
)
def test_the_arguments_of_a_file_system(url: str, connection: Any, expected: dict[str, Any] | None) -> None:
    text = connection if isinstance(connection, str) else json.dumps(connection)
    found = options_of("logs", url, {"AIRFLOW_CONN_LOGS": text})
    assert (None if found is None else json.loads(found)) == expected


def test_a_connection_that_is_not_in_the_environment() -> None:
    assert options_of("logs", "s3://b", {}) is None


def test_an_invalid_connection_is_an_error_of_the_setting() -> None:
    with pytest.raises(ConfigError, match=r"logging\.remote_log_conn_id: connection 'logs': not a JSON object"):
        options_of("logs", "s3://b", {"AIRFLOW_CONN_LOGS": "{no"})
