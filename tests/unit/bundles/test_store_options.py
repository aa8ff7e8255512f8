"""Connections of Airflow as arguments of fsspec's file systems."""

from __future__ import annotations

from typing import Any

import pytest

from tradewind.bundles.store_options import UnusableConnection, options_of, secrets_in

KEYS = {"key": "AKIA", "secret": "s3cret"}


@pytest.mark.parametrize(
    ("scheme", "connection", "options"),
    [
        ("s3", {}, {}),
        ("s3", {"login": "AKIA", "password": "s3cret", "extra": {}}, KEYS),
        (
            "s3",
            {"extra": {"aws_access_key_id": "AKIA", "aws_secret_access_key": "s3cret", "aws_session_token": "t"}},
            KEYS | {"token": "t"},
        ),
        (
            "s3",
            {"extra": {"endpoint_url": "http://minio:9000", "region_name": "eu-west-1", "verify": False}},
            {"endpoint_url": "http://minio:9000", "client_kwargs": {"region_name": "eu-west-1", "verify": False}},
        ),
        (
            "s3a",
            {"extra": {"service_config": {"s3": {"endpoint_url": "http://a"}}, "endpoint_url": "http://b"}},
            {"endpoint_url": "http://a"},
        ),
        ("s3", {"extra": {"storage_options": {"anon": True}}}, {"anon": True}),
        ("gs", {"extra": {"key_path": "/k.json", "project": "p"}}, {"token": "/k.json", "project": "p"}),
        ("gcs", {"extra": {"extra__google_cloud_platform__keyfile_dict": '{"a": "b"}'}}, {"token": {"a": "b"}}),
        ("abfs", {"login": "name", "password": "k"}, {"account_name": "name", "account_key": "k"}),
        ("az", {"login": "name", "extra": {"sas_token": "?s"}}, {"account_name": "name", "sas_token": "?s"}),
        ("abfss", {"extra": {"connection_string": "c"}}, {"connection_string": "c"}),
        (
            "abfs",
            {"host": "https://name.blob.core.windows.net/", "login": "id", "password": "k", "extra": {"tenant_id": "t"}},
            {"account_name": "name", "tenant_id": "t", "client_id": "id", "client_secret": "k"},
        ),
        (
            "sftp",
            {"host": "h", "port": 22, "login": "me", "password": "p"},
            {"host": "h", "port": 22, "username": "me", "password": "p"},
        ),
    ],
)
def test_fields_of_a_connection(scheme: str, connection: dict[str, Any], options: dict[str, Any]) -> None:
    assert options_of(scheme, connection) == options


@pytest.mark.parametrize(
    ("scheme", "extra", "words"),
    [
        ("s3", {"role_arn": "arn:x"}, "role_arn, which is not supported"),
        ("gs", {"impersonation_chain": "x"}, "impersonation_chain, which is not supported"),
        ("gs", {"keyfile_dict": "{"}, "no JSON object"),
        ("s3", {"storage_options": [1]}, "no object"),
    ],
)
def test_what_cannot_be_used_is_named(scheme: str, extra: dict[str, Any], words: str) -> None:
    with pytest.raises(UnusableConnection, match=words):
        options_of(scheme, {"extra": extra})


def test_secrets_are_found() -> None:
    options = {"key": "AKIA", "secret": "one", "token": {"private_key": "two"}, "client_kwargs": {"region_name": "x"}}
    assert secrets_in(options) == ["one", "two"]
