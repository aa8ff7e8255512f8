"""Arguments of fsspec's file systems for a connection of Airflow. Pure.

A connection of the type `aws`, `google_cloud_platform` or `wasb` has the fields that Airflow's hooks read. For every scheme, the
object `storage_options` in the extra of the connection is added, in the words of the file system's own package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

AWS, GOOGLE, AZURE = ("s3", "s3a"), ("gs", "gcs"), ("abfs", "abfss", "az", "adl")
PACKAGES = {**dict.fromkeys(AWS, "s3fs"), **dict.fromkeys(GOOGLE, "gcsfs"), **dict.fromkeys(AZURE, "adlfs")}
"""Scheme → the package with its file system."""
_GOOGLE_PREFIX = "extra__google_cloud_platform__"
_AZURE_PREFIX = "extra__wasb__"
_SECRETS = {
    *("secret", "token", "password", "account_key", "sas_token", "connection_string", "client_secret", "private_key"),
    *("aws_secret_access_key", "aws_session_token"),
}


class UnusableConnection(Exception):
    """A connection has a field that cannot be used. The argument is a sentence for people."""


def options_of(scheme: str, connection: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the file system.

    Args:
        connection: host, login, password, and `extra` as an object; empty: credentials come from the environment.

    Raises:
        UnusableConnection: the connection requires a login method that is not supported.
    """
    extra = dict(connection.get("extra") or {})
    given = extra.get("storage_options") or {}
    if not isinstance(given, Mapping):
        raise UnusableConnection("storage_options in the extra of the connection is no object")
    if scheme in AWS:
        found = _aws(connection, extra)
    elif scheme in GOOGLE:
        found = _google(extra)
    elif scheme in AZURE:
        found = _azure(connection, extra)
    else:
        names = {"host": "host", "port": "port", "login": "username", "password": "password"}
        found = {ours: connection.get(name) for name, ours in names.items()}
    return {key: value for key, value in found.items() if value not in (None, "", {})} | dict(given)


def _aws(connection: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    if extra.get("role_arn"):
        raise UnusableConnection(
            "the connection has role_arn, which is not supported here. Give the role to the process of the parser "
            "(AWS_ROLE_ARN, or a profile of ~/.aws/config with profile_name)"
        )
    services = extra.get("service_config")
    of_s3 = services.get("s3") if isinstance(services, Mapping) else None
    endpoint = (of_s3.get("endpoint_url") if isinstance(of_s3, Mapping) else None) or extra.get("endpoint_url")
    region, verify = extra.get("region_name"), extra.get("verify")
    client = {"region_name": region, "verify": verify}
    return {
        "key": connection.get("login") or extra.get("aws_access_key_id"),
        "secret": connection.get("password") or extra.get("aws_secret_access_key"),
        "token": extra.get("aws_session_token"),
        "profile": extra.get("profile_name"),
        "endpoint_url": endpoint or extra.get("host"),
        "config_kwargs": extra.get("config_kwargs"),
        "client_kwargs": {key: value for key, value in client.items() if value not in (None, "")},
    }


def _google(extra: Mapping[str, Any]) -> dict[str, Any]:
    def field(name: str) -> Any:
        return extra.get(name) or extra.get(f"{_GOOGLE_PREFIX}{name}")

    key = field("keyfile_dict")
    if isinstance(key, str):
        try:
            key = json.loads(key)
        except ValueError:
            raise UnusableConnection("keyfile_dict in the extra of the connection is no JSON object") from None
    for name in ("key_secret_name", "credential_config_file", "impersonation_chain"):
        if field(name):
            raise UnusableConnection(f"the connection has {name}, which is not supported here; use key_path or keyfile_dict")
    return {"project": field("project") or field("project_id"), "token": key or field("key_path")}


def _azure(connection: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    def field(name: str) -> Any:
        return extra.get(name) or extra.get(f"{_AZURE_PREFIX}{name}")

    login, password = connection.get("login"), connection.get("password")
    host = str(connection.get("host") or "").removeprefix("https://").partition(".")[0]
    if field("connection_string"):
        return {"connection_string": field("connection_string")}
    if field("tenant_id"):  # a service principal: the login is its id
        return {"account_name": host, "tenant_id": field("tenant_id"), "client_id": login, "client_secret": password}
    if field("sas_token"):
        return {"account_name": host or login, "sas_token": field("sas_token")}
    if field("managed_identity_client_id") or field("workload_identity_tenant_id"):
        return {"account_name": host or login, "anon": False}
    return {"account_name": login or host, "account_key": password}


def secrets_in(options: Mapping[str, Any]) -> list[str]:
    """The secret texts in the arguments of a file system, to remove them from messages."""
    found = []
    for key, value in options.items():
        if isinstance(value, Mapping):
            found += secrets_in(value)
        elif key in _SECRETS and isinstance(value, str) and value:
            found.append(value)
    return found
