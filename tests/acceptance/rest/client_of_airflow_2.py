"""Calls every operation of Airflow 2's own Python client (`apache-airflow-client` 2.10) on a running installation.

python client_of_airflow_2.py ADDRESS PASSWORD SHOP_RUN HELD_RUN   (with a Python that has this package; the suite has version 3)

Prints one line of JSON for each operation: name, `answered`, `moved` (404 with the path of `/api/v2`) or the error.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any

import airflow_client.client as client
import airflow_client.client.api as api_package
from airflow_client.client.model.task_state import TaskState
from airflow_client.client.model.update_task_state import UpdateTaskState

ADDRESS, PASSWORD, SHOP, HELD = sys.argv[1:]
CONFIGURATION = client.Configuration(host=f"{ADDRESS}/api/v1", username="admin", password=PASSWORD)

IN_SHOP = {"dag_id": "shop", "dag_run_id": SHOP, "task_id": "load"}
MAPPED = {"dag_id": "shop", "dag_run_id": SHOP, "task_id": "double", "map_index": 0}
AFTER = {"dag_id": "held", "dag_run_id": HELD, "task_id": "after"}


Calls = Iterator[tuple[str, dict[str, Any]]]


def calls() -> Calls:
    """Operation → its arguments, in an order in which each operation finds the objects that it needs. Bodies are given as plain
    values.
    """
    yield from dags_and_runs()
    yield from task_instances()
    yield from the_installation()
    yield from what_has_moved()
    yield "DAGApi.delete_dag", {"dag_id": "old_shop"}


def dags_and_runs() -> Calls:
    yield "MonitoringApi.get_health", {}
    yield "MonitoringApi.get_version", {}
    yield "ConfigApi.get_config", {}
    yield "ConfigApi.get_value", {"section": "core", "option": "parallelism"}
    yield "DAGApi.get_dags", {"limit": 5, "tags": ["money"], "only_active": True, "order_by": "-dag_id"}
    yield "DAGApi.get_dag", {"dag_id": "shop", "fields": ["dag_id", "is_paused"]}
    yield "DAGApi.get_dag_details", {"dag_id": "shop"}
    yield "DAGApi.get_tasks", {"dag_id": "shop"}
    yield "DAGApi.get_task", {"dag_id": "shop", "task_id": "load"}
    yield "DAGApi.patch_dag", {"dag_id": "nightly", "dag": {"is_paused": True}, "update_mask": ["is_paused"]}
    yield "DAGApi.patch_dags", {"dag_id_pattern": "night", "dag": {"is_paused": True}}
    yield "DAGRunApi.post_dag_run", {"dag_id": "shop", "dag_run": {"dag_run_id": "two", "conf": {"a": 1}}}
    yield "DAGRunApi.get_dag_runs", {"dag_id": "shop", "state": ["success"], "order_by": "-execution_date"}
    yield "DAGRunApi.get_dag_run", {"dag_id": "shop", "dag_run_id": SHOP}
    yield (
        "DAGRunApi.get_dag_runs_batch",
        {"list_dag_runs_form": {"dag_ids": ["shop"], "page_limit": 5, "order_by": "-start_date"}},
    )
    yield "DAGRunApi.set_dag_run_note", {"dag_id": "shop", "dag_run_id": SHOP, "set_dag_run_note": {"note": "seen"}}


def task_instances() -> Calls:
    yield "TaskInstanceApi.get_task_instances", {"dag_id": "shop", "dag_run_id": SHOP, "state": ["success"]}
    yield (
        "TaskInstanceApi.get_task_instances_batch",
        {"list_task_instance_form": {"dag_ids": ["shop"], "state": [TaskState("success")]}},
    )
    yield "TaskInstanceApi.get_task_instance", IN_SHOP
    yield "TaskInstanceApi.get_task_instance_tries", IN_SHOP
    yield "TaskInstanceApi.get_task_instance_try_details", {**IN_SHOP, "task_try_number": 1}
    yield "TaskInstanceApi.get_task_instance_dependencies", IN_SHOP
    yield "TaskInstanceApi.get_extra_links", IN_SHOP
    yield "TaskInstanceApi.get_log", {**IN_SHOP, "task_try_number": 1}
    yield "TaskInstanceApi.set_task_instance_note", {**IN_SHOP, "set_task_instance_note": {"note": "seen"}}
    yield "TaskInstanceApi.get_mapped_task_instances", {name: MAPPED[name] for name in ("dag_id", "dag_run_id", "task_id")}
    yield "TaskInstanceApi.get_mapped_task_instance", MAPPED
    yield "TaskInstanceApi.get_mapped_task_instance_tries", MAPPED
    yield "TaskInstanceApi.get_mapped_task_instance_try_details", {**MAPPED, "task_try_number": 1}
    yield "TaskInstanceApi.get_mapped_task_instance_dependencies", MAPPED
    yield "TaskInstanceApi.set_mapped_task_instance_note", {**MAPPED, "set_task_instance_note": {"note": "seen"}}
    failed = {"dry_run": False, "new_state": UpdateTaskState("failed")}
    yield "TaskInstanceApi.patch_mapped_task_instance", {**MAPPED, "update_task_instance": failed}
    yield (
        "TaskInstanceApi.patch_task_instance",
        {**AFTER, "update_task_instance": {"dry_run": True, "new_state": UpdateTaskState("failed")}},
    )
    yield "XComApi.get_xcom_entries", IN_SHOP
    yield "XComApi.get_xcom_entry", {**IN_SHOP, "xcom_key": "return_value"}
    cleared = {"dry_run": True, "task_ids": ["load"], "dag_run_id": SHOP, "only_failed": False, "include_subdags": True}
    yield "DAGApi.post_clear_task_instances", {"dag_id": "shop", "clear_task_instances": cleared}
    yield "DAGRunApi.clear_dag_run", {"dag_id": "shop", "dag_run_id": SHOP, "clear_dag_run": {"dry_run": True}}
    yield "DAGRunApi.update_dag_run_state", {"dag_id": "shop", "dag_run_id": "two", "update_dag_run_state": {"state": "failed"}}
    yield "DAGRunApi.delete_dag_run", {"dag_id": "shop", "dag_run_id": "two"}


def the_installation() -> Calls:
    yield "DAGApi.reparse_dag_file", {"file_token": token()}
    yield "DagStatsApi.get_dag_stats", {"dag_ids": "shop,held"}
    yield "DagWarningApi.get_dag_warnings", {}
    yield "EventLogApi.get_event_logs", {"limit": 3, "order_by": "-when"}
    yield "EventLogApi.get_event_log", {"event_log_id": 1}
    yield "ImportErrorApi.get_import_errors", {}
    yield "ImportErrorApi.get_import_error", {"import_error_id": import_error()}
    yield "PluginApi.get_plugins", {}
    yield "ProviderApi.get_providers", {}
    yield "VariableApi.post_variables", {"variable": {"key": "color", "value": "red"}}
    yield "VariableApi.get_variables", {"order_by": "key"}
    yield "VariableApi.get_variable", {"variable_key": "color"}
    yield "VariableApi.patch_variable", {"variable_key": "color", "variable": {"key": "color", "value": "blue"}}
    yield "VariableApi.delete_variable", {"variable_key": "color"}
    connection = {"connection_id": "db", "conn_type": "sqlite", "password": "s3cret"}
    yield "ConnectionApi.post_connection", {"connection": connection}
    yield "ConnectionApi.get_connections", {}
    yield "ConnectionApi.get_connection", {"connection_id": "db"}
    yield "ConnectionApi.patch_connection", {"connection_id": "db", "connection": {**connection, "host": "/tmp/x.db"}}
    yield "ConnectionApi.test_connection", {"connection": {"connection_id": "there", "conn_type": "fs"}}
    yield "ConnectionApi.delete_connection", {"connection_id": "db"}
    yield "PoolApi.post_pool", {"pool": {"name": "small", "slots": 2}}
    yield "PoolApi.get_pools", {"order_by": "-name"}
    yield "PoolApi.get_pool", {"pool_name": "small"}
    yield "PoolApi.patch_pool", {"pool_name": "small", "pool": {"name": "small", "slots": 3}, "update_mask": ["slots"]}
    yield "PoolApi.delete_pool", {"pool_name": "small"}


def what_has_moved() -> Calls:
    """The operations that have another path in /api/v2."""
    states = {
        "dry_run": True,
        "task_id": "load",
        "execution_date": "2024-01-01T00:00:00Z",
        "new_state": UpdateTaskState("success"),
    }
    yield "DAGApi.post_set_task_instances_state", {"dag_id": "shop", "update_task_instances_state": states}
    yield "DAGApi.get_dag_source", {"file_token": token()}
    yield "DAGRunApi.get_upstream_dataset_events", {"dag_id": "shop", "dag_run_id": SHOP}
    yield "DatasetApi.get_datasets", {}
    yield "DatasetApi.get_dataset", {"uri": "file:///orders"}
    yield "DatasetApi.get_dataset_events", {}
    yield "DatasetApi.create_dataset_event", {"create_dataset_event": {"dataset_uri": "file:///orders"}}
    yield "DatasetApi.get_dataset_queued_events", {"uri": "file:///orders"}
    yield "DatasetApi.delete_dataset_queued_events", {"uri": "file:///orders"}
    yield "DatasetApi.get_dag_dataset_queued_events", {"dag_id": "report"}
    yield "DatasetApi.get_dag_dataset_queued_event", {"dag_id": "report", "uri": "file:///orders"}
    yield "DatasetApi.delete_dag_dataset_queued_events", {"dag_id": "report"}
    yield "DatasetApi.delete_dag_dataset_queued_event", {"dag_id": "report", "uri": "file:///orders"}
    yield "DatasetApi.get_upstream_dataset_events", {"dag_id": "shop", "dag_run_id": SHOP}
    yield "PermissionApi.get_permissions", {}
    yield "RoleApi.get_roles", {}
    yield "RoleApi.get_role", {"role_name": "Viewer"}
    yield "RoleApi.post_role", {"role": {"name": "x", "actions": []}}
    yield "RoleApi.patch_role", {"role_name": "Viewer", "role": {"name": "x", "actions": []}}
    yield "RoleApi.delete_role", {"role_name": "x"}
    yield "UserApi.get_users", {}
    yield "UserApi.get_user", {"username": "admin"}
    yield "UserApi.post_user", {"user": {"username": "x", "email": "x", "first_name": "x", "last_name": "x", "password": "x"}}
    yield "UserApi.patch_user", {"username": "x", "user": {"email": "y"}}
    yield "UserApi.delete_user", {"username": "x"}


def token() -> str:
    """The token of the file of the DAG `shop`, as the client finds it."""
    with client.ApiClient(CONFIGURATION) as connection:
        return str(found("DAGApi")(connection).get_dag("shop").file_token)


def import_error() -> int:
    with client.ApiClient(CONFIGURATION) as connection:
        return int(found("ImportErrorApi")(connection).get_import_errors().import_errors[0].import_error_id)


def apis() -> dict[str, Any]:
    """The classes of the client."""
    classes = {}
    for module in pkgutil.iter_modules(api_package.__path__):
        loaded = importlib.import_module(f"{api_package.__name__}.{module.name}")
        for name, kind in inspect.getmembers(loaded, inspect.isclass):
            if name.endswith("Api") and kind.__module__ == loaded.__name__:
                classes[name] = kind
    return classes


def found(name: str) -> Any:
    return apis()[name]


def operations() -> set[str]:
    """`Class.method` of every operation of the client."""
    return {f"{name}.{method}" for name, kind in apis().items() for method in vars(kind) if not method.startswith("_")}


def outcome(name: str, values: dict[str, Any]) -> str:
    """Call an operation; its bodies become the client's own types."""
    kind, _, method = name.partition(".")
    with client.ApiClient(CONFIGURATION) as connection:
        one = found(kind)(connection)
        types = getattr(one, f"{method}_endpoint").openapi_types
        arguments = {}
        for key, value in values.items():
            model: Any = types[key][0]
            is_model = isinstance(value, dict) and inspect.isclass(model)
            arguments[key] = model._from_openapi_data(**value) if is_model else value
        try:
            getattr(one, method)(**arguments)
        except client.ApiException as error:
            detail = json.loads(error.body)["detail"] if error.body else ""
            if error.status == 404 and ("/api/v2/" in detail or "tradewind users" in detail):
                return "moved"
            return f"{error.status}: {detail}"
        except (client.ApiTypeError, client.ApiValueError, client.ApiAttributeError) as error:
            return f"the client does not understand the answer: {error}"
    return "answered"


def main() -> None:
    called = set()
    for name, values in calls():
        called.add(name)
        print(json.dumps([name, outcome(name, values)]), flush=True)
    for name in sorted(operations() ^ called):
        print(json.dumps([name, "is not called"]), flush=True)


if __name__ == "__main__":
    main()
