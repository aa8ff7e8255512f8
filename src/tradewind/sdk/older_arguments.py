"""Arguments of operators of provider packages that have been renamed: `bigquery_conn_id` is `gcp_conn_id` today.

Files for Airflow 1 and 2 use the older names with the provider packages of today. Such an argument gets its present name, with a
warning, if the operator does not accept the older name and accepts the present one.

Source: the deprecation warnings of the backport packages and of the provider packages of 2021 and 2022.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tradewind.sdk import open_dags
from tradewind.sdk.older_names import IN_DEFAULT_ARGS

_SQL = ("conn_id",)

RENAMED_ARGUMENTS: dict[str, tuple[str, ...]] = {
    **IN_DEFAULT_ARGS,
    **{
        f"{system}_conn_id": _SQL
        for system in (
            *("exasol", "jdbc", "mssql", "mysql", "oracle", "postgres", "presto", "redshift", "snowflake", "sqlite", "trino"),
            "vertica",
        )
    },
    "body": ("build",),
    "filter": ("request_filter",),
    "job_id": ("job_group_id",),
    "location": ("region",),
    "name": ("cluster_name",),
    "skip_exit_code": ("skip_on_exit_code",),
    "bql": ("sql",),
    "hql": ("sql",),
    "bucket": ("bucket_name", "gcs_bucket"),
    "channel": ("channels",),
    "object": ("object_name",),
    "source_objects": ("source_object",),
    "topic_project": ("project_id",),
    "subscription_project": ("project_id",),
    "http_conn_id": ("slack_webhook_conn_id",),
    "destination_bucket": ("bucket_name",),
    "destination_object": ("object_name",),
    "overrides": ("container_overrides",),
    "await_result": ("wait_for_completion",),
    "wasb_conn_id": ("azure_fileshare_conn_id",),
    "aws_conn_id": ("source_aws_conn_id",),
    "max_tries": ("max_polling_attempts",),
    "timeout": ("conn_timeout",),
    **{
        f"dataproc_{language}_{kind}": (f"dataproc_{kind}",)
        for language in ("hadoop", "hive", "pig", "pyspark", "spark")
        for kind in ("jars", "properties")
    },
}
"""Older name → present names; the first one that the operator accepts is used."""


WITHOUT_EFFECT = frozenset(("delegate_to", "hook_params", "sync"))
"""Arguments that packages have dropped without another name: they get a warning where an operator does not accept them."""

OLDER_DEFAULTS: dict[str, dict[str, Any]] = {
    "airflow.providers.google.cloud.operators.dataproc": {"region": "global"},
    "airflow.providers.google.cloud.sensors.dataproc": {"region": "global"},
}
"""Module → argument that its operators require today → the default that it had in older releases of the package."""

OLDER_VALUES: dict[str, dict[bool, str]] = {"auto_remove": {True: "success", False: "never"}}
"""Argument → older value → present value. `auto_remove` of the operators of docker was a bool until 2023."""


def replace_values(operator: str, init: Callable[..., None], given: dict[str, Any]) -> None:
    """Replace older values of arguments by the present ones, where the default of the argument has the present type.

    Args:
        operator: name of the operator, for the warning.
        init: the `__init__` that takes the arguments.
        given: the arguments; changed.
    """
    for name in OLDER_VALUES.keys() & given.keys():
        value = given[name]
        parameter = inspect.signature(init).parameters.get(name)
        if isinstance(value, bool) and parameter is not None and isinstance(parameter.default, str):
            newer = given[name] = OLDER_VALUES[name][value]
            open_dags.warn_author(f"{operator}: {name}={value} is an older value; use {name}={newer!r}", DeprecationWarning)


def rename(operator: str, accepted: Collection[str], given: dict[str, Any]) -> None:
    """Give older arguments their present names.

    Args:
        operator: name of the operator, for the warning.
        accepted: names of the arguments that the operator accepts.
        given: the arguments; changed.
    """
    for older in [name for name in given if name in RENAMED_ARGUMENTS and name not in accepted]:
        newer = next((name for name in RENAMED_ARGUMENTS[older] if name in accepted), None)
        if newer is None:
            continue
        value = given.pop(older)
        given.setdefault(newer, value)
        open_dags.warn_author(
            f"{operator}: {older} was renamed to {newer} in the provider package; use {newer}", DeprecationWarning
        )
    for older in [name for name in given if name in WITHOUT_EFFECT and name not in accepted]:
        del given[older]
        open_dags.warn_author(f"{operator}: the provider package has no {older} any more; it has no effect")


def add_older_defaults(operator: str, module: str, missing: Collection[str], given: dict[str, Any]) -> None:
    """Give required arguments the default that they had in older releases of the provider package.

    Args:
        operator: name of the operator, for the warning.
        module: module of the class that requires the arguments.
        missing: the required arguments that were not given.
        given: the arguments; changed.
    """
    for name, default in OLDER_DEFAULTS.get(module, {}).items():
        if name in missing:
            given[name] = default
            open_dags.warn_author(
                f"{operator}: the provider package requires {name} today; it is {default!r}, as in older releases",
                DeprecationWarning,
            )


def with_present_names(defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Default arguments under their older and their present names."""
    found = dict(defaults)
    for older, newer in IN_DEFAULT_ARGS.items():
        if older in defaults:
            for name in newer:
                found.setdefault(name, defaults[older])
    return found
