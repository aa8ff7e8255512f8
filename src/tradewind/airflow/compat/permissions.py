"""`airflow.security.permissions` of Airflow 2: names that DAG files use in `access_control`."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ACTION_CAN_ACCESS_MENU",
    "ACTION_CAN_CREATE",
    "ACTION_CAN_DELETE",
    "ACTION_CAN_EDIT",
    "ACTION_CAN_READ",
    "RESOURCE_DAG",
    "RESOURCE_DAG_PREFIX",
    "RESOURCE_DAG_RUN",
]

ACTION_CAN_CREATE = "can_create"
ACTION_CAN_READ = "can_read"
ACTION_CAN_EDIT = "can_edit"
ACTION_CAN_DELETE = "can_delete"
ACTION_CAN_ACCESS_MENU = "menu_access"
RESOURCE_DAG = "DAGs"
RESOURCE_DAG_PREFIX = "DAG:"
RESOURCE_DAG_RUN = "DAG Runs"

_RESOURCES = {
    "ADMIN_MENU": "Admin",
    "AIRFLOW": "Airflow",
    "ASSET": "Assets",
    "AUDIT_LOG": "Audit Logs",
    "BROWSE_MENU": "Browse",
    "CLUSTER_ACTIVITY": "Cluster Activity",
    "CONFIG": "Configurations",
    "CONNECTION": "Connections",
    "DAG_CODE": "DAG Code",
    "DAG_DEPENDENCIES": "DAG Dependencies",
    "DAG_WARNING": "DAG Warnings",
    "DATASET": "Datasets",
    "DOCS": "Documentation",
    "DOCS_MENU": "Docs",
    "IMPORT_ERROR": "ImportError",
    "JOB": "Jobs",
    "MY_PASSWORD": "My Password",
    "MY_PROFILE": "My Profile",
    "PLUGIN": "Plugins",
    "POOL": "Pools",
    "PROVIDER": "Providers",
    "SLA_MISS": "SLA Misses",
    "TASK_INSTANCE": "Task Instances",
    "TASK_LOG": "Task Logs",
    "TASK_RESCHEDULE": "Task Reschedules",
    "TRIGGER": "Triggers",
    "VARIABLE": "Variables",
    "WEBSITE": "Website",
    "XCOM": "XComs",
}
"""Names of resources in Airflow's permissions."""


def __getattr__(name: str) -> Any:
    """`RESOURCE_VARIABLE` → `Variables`.

    Raises:
        AttributeError: there is no such constant.
    """
    found = _RESOURCES.get(name.removeprefix("RESOURCE_")) if name.startswith("RESOURCE_") else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
