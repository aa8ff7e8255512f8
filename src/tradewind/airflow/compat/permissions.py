"""`airflow.security.permissions` of Airflow 2: names that DAG files put into `access_control`."""

from __future__ import annotations

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
