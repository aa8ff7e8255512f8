"""Airflow's own Python client (`apache-airflow-client` 3) calls every operation that it has, and understands every answer.

The operations are read from the installed package: one without a call here fails the test. The calls go in the order of `CALLS` and
build on each other. The client checks each answer strictly: a missing field, a wrong type or an unknown word of an enum raises.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rest.installation import Installation, installation

client = pytest.importorskip("airflow_client.client", reason="needs the package apache-airflow-client (extra test)")
from airflow_client.client import api as api_package  # noqa: E402
from airflow_client.client import models  # noqa: E402
from airflow_client.client.exceptions import ApiException  # noqa: E402

Call = Callable[["Walk"], Any]


class Walk:
    """The installation, a client that is logged in, and what earlier calls have found out."""

    def __init__(self, found: Installation) -> None:
        self.found = found
        self.standalone = found.standalone
        self.shop, self.held = found.shop_run, found.held_run
        body = {"username": "admin", "password": self.standalone.password}
        token = json.loads(self.standalone.request("POST", "/auth/token", body))["access_token"]
        self.client = client.ApiClient(client.Configuration(host=self.standalone.address, access_token=token))
        self.kept: dict[str, Any] = {}

    def api(self, name: str) -> Any:
        """An instance of an API class of the client, by its name without `Api`."""
        return getattr(client, f"{name}Api")(self.client)

    def asset(self, name: str = "orders") -> int:
        found = self.api("Asset").get_assets(name_pattern=name)
        assert found.total_entries == 1
        return int(found.assets[0].id)

    def file_token(self) -> str:
        return str(self.api("DAG").get_dag("shop").file_token)

    @property
    def states(self) -> Any:
        return self.api("AssetStateStore")

    @property
    def with_event(self) -> Any:
        """The API of assets, when an event waits for the DAG `report`."""
        self.api("Asset").create_asset_event(body("CreateAssetEventsBody", asset_id=self.asset(), extra={}))
        return self.api("Asset")

    def keep(self, name: str, value: Any) -> Any:
        self.kept[name] = value
        return value


def body(model: str, **fields: Any) -> Any:
    """A body, as the client reads it from a dictionary."""
    return getattr(models, model).from_dict(fields)


def bulk(model: str, key: str, first: Any, second: Any, other: Any) -> Any:
    """Create the first two, change the second one, delete the first one and one that does not exist."""
    return body(
        model,
        actions=[
            {"action": "create", "entities": [first, second]},
            {"action": "update", "entities": [other]},
            {"action": "delete", "entities": [first[key], "missing"], "action_on_non_existence": "skip"},
        ],
    )


def _bulk_done(answer: Any, first: str, second: str) -> None:
    assert answer.create.success == [first, second]
    assert answer.update.success == [second]
    assert answer.delete.success == [first]
    for action in (answer.create, answer.update, answer.delete):
        assert not action.errors


def _wait(api: str) -> Call:
    def call(walk: Walk) -> None:
        api_of = walk.api(api)
        last = api_of.wait_dag_run_until_finished("shop", walk.shop, interval=0.1, result=["load"])
        assert last == {"state": "success", "results": {"load": {"sum": 12}}}
        stream = api_of.wait_dag_run_until_finished_without_preload_content(
            "shop", walk.shop, interval=0.1, _headers={"Accept": "application/x-ndjson"}
        )
        lines = [json.loads(line) for line in stream.read().splitlines()]
        assert lines[-1]["state"] == "success"

    return call


def _logs(walk: Walk) -> None:
    found = walk.api("TaskInstance").get_log("shop", walk.shop, "extract", 1, map_index=-1)
    assert found.content.actual_instance


def _extra_links(api: str) -> Call:
    return lambda walk: walk.api(api).get_extra_links("shop", walk.shop, "extract")


def _connection_test(walk: Walk) -> None:
    queued = walk.api("Connection").enqueue_connection_test(
        body("ConnectionTestRequestBody", connection_id="here", conn_type="fs")
    )
    walk.keep("connection_test", queued.token)
    assert queued.connection_id == "here"


def _cursor(walk: Walk) -> None:
    api = walk.api("TaskInstance")
    first = api.get_task_instances("~", "~", cursor="", limit=3, order_by=["task_id"])
    assert len(first.task_instances) == 3
    assert first.next_cursor
    second = api.get_task_instances("~", "~", cursor=first.next_cursor, limit=3, order_by=["task_id"])
    ids = [(one.dag_id, one.dag_run_id, one.task_id, one.map_index) for one in (*first.task_instances, *second.task_instances)]
    assert len(set(ids)) == len(ids)
    assert [one[2] for one in ids] == sorted(one[2] for one in ids)
    one = api.get_task_instances("shop", walk.shop, task_group_id="reports", state=["success"], operator_name_pattern="@task")
    assert [each.task_id for each in one.task_instances] == ["reports.daily", "reports.weekly"]


def _runs(walk: Walk) -> None:
    api = walk.api("DagRun")
    assert walk.standalone.wait_run("shop", "second") == "success"
    found = api.get_dag_runs(
        "~",
        state=["success", "running"],
        order_by=["-start_date", "dag_id"],
        run_after_gte=datetime(2024, 1, 1, tzinfo=UTC),
        duration_gte=0,
        updated_at_gte=datetime(2024, 1, 1, tzinfo=UTC),
        dag_id_prefix_pattern="sh",
        dag_version=[1],
    )
    assert [run.dag_run_id for run in found.dag_runs] == ["second", walk.shop]


def _delete_dag(walk: Walk) -> None:
    (walk.standalone.dags_folder / "old_shop.py").unlink()
    walk.api("DAG").delete_dag("old_shop")
    with pytest.raises(ApiException) as problem:
        walk.api("DAG").get_dag("old_shop")
    assert problem.value.status == 404


def _hitl_details(walk: Walk) -> None:
    run = walk.api("DagRun").trigger_dag_run("asks", body("TriggerDAGRunPostBody", logical_date=None)).dag_run_id
    walk.standalone.wait_task("asks", walk.keep("asked", run), "ship", ("awaiting_input",))
    found = walk.api("TaskInstance").get_hitl_details("asks", "~", response_received=False, subject_search="Ship")
    assert [one.subject for one in found.hitl_details] == ["Ship it?"]


def _hitl_detail(walk: Walk) -> None:
    found = walk.api("TaskInstance").get_hitl_detail("asks", walk.kept["asked"], "ship", -1)
    assert (found.options, found.response_received) == (["Approve", "Reject"], False)


def _answer_hitl(walk: Walk) -> None:
    payload = body("UpdateHITLDetailPayload", chosen_options=["Approve"], params_input={"to": "Rome"})
    answered = walk.api("TaskInstance").update_hitl_detail("asks", walk.kept["asked"], "ship", -1, payload)
    assert (answered.chosen_options, answered.responded_by.name) == (["Approve"], "admin")
    assert walk.standalone.wait_run("asks", walk.kept["asked"]) == "success"


def _hitl_try(walk: Walk) -> None:
    found = walk.api("TaskInstance").get_hitl_detail_try_detail("asks", walk.kept["asked"], "ship", -1, 1)
    assert (found.response_received, found.params_input) == (True, {"to": "Rome"})


def _task_state(walk: Walk) -> Any:
    return walk.api("TaskStateStore").get_task_state_store("job", "shop", walk.shop, "load")


def _set_task_state(walk: Walk) -> None:
    for given, days in (("default", 30), (None, None)):
        new = body("TaskStateStoreBody", value={"id": 7}, expires_at=given)
        walk.api("TaskStateStore").set_task_state_store("job", "shop", walk.shop, "load", new)
        found = _task_state(walk)
        assert found.value == {"id": 7}
        assert days is None or round((found.expires_at - found.updated_at) / timedelta(days=1)) == days
        assert (found.expires_at is None) is (days is None)


def _patch_task_state(walk: Walk) -> None:
    api = walk.api("TaskStateStore")
    api.patch_task_state_store("job", "shop", walk.shop, "load", body("TaskStateStorePatchBody", value=8))
    assert _task_state(walk).value == 8
    change = body("TaskStateStorePatchBody", value=1)
    _refused(lambda w: api.patch_task_state_store("jobs", "shop", w.shop, "load", change), 404)(walk)


def _no_task_state(call: str, *key: str) -> Call:
    """Delete, and see that nothing is left."""

    def check(walk: Walk) -> None:
        api = walk.api("TaskStateStore")
        getattr(api, call)(*key, "shop", walk.shop, "load")
        assert api.list_task_state_store("shop", walk.shop, "load").total_entries == 0

    return check


def _set_asset_state(walk: Walk) -> None:
    walk.states.set_asset_state_store("mark", walk.asset(), body("AssetStateStoreBody", value="x"))
    found = walk.states.get_asset_state_store("mark", walk.asset())
    assert (found.value, found.last_updated_by.kind) == ("x", "api")


def _no_asset_state(walk: Walk) -> None:
    walk.states.set_asset_state_store("mark", walk.asset(), body("AssetStateStoreBody", value=1))
    walk.states.clear_asset_state_store(walk.asset())
    assert walk.states.list_asset_state_store(walk.asset()).total_entries == 0


def _refused(call: Call, status: int) -> Call:
    def check(walk: Walk) -> None:
        with pytest.raises(ApiException) as problem:
            call(walk)
        assert problem.value.status == status, problem.value

    return check


RUN = {"dag_run_id": "second", "logical_date": None, "conf": {"day": "friday"}, "note": "by the client"}
FIRST = {"connection_id": "c1", "conn_type": "http", "host": "one.example"}
SECOND = {"connection_id": "c2", "conn_type": "http", "host": "two.example", "extra": '{"a": 1}'}
MARK = {"new_state": "success", "note": "seen"}
BACKFILL = {"dag_id": "nightly", "from_date": datetime(2024, 2, 1, tzinfo=UTC), "to_date": datetime(2024, 2, 3, tzinfo=UTC)}

CALLS: list[tuple[str, Call]] = [
    ("VersionApi.get_version", lambda w: w.api("Version").get_version()),
    ("MonitorApi.get_health", lambda w: w.api("Monitor").get_health()),
    ("LoginApi.login", lambda w: w.api("Login").login()),
    # DAGs
    (
        "DAGApi.get_dags",
        lambda w: w.api("DAG").get_dags(tags=["money"], tags_match_mode="all", owners=["ann"], is_favorite=False),
    ),
    ("DAGApi.get_dag", lambda w: w.api("DAG").get_dag("shop")),
    ("DAGApi.get_dag_details", lambda w: w.api("DAG").get_dag_details("shop")),
    ("DAGApi.get_dag_tags", lambda w: w.api("DAG").get_dag_tags(order_by=["-name"])),
    ("DAGApi.patch_dag", lambda w: w.api("DAG").patch_dag("shop", body("DAGPatchBody", is_paused=False))),
    ("DAGApi.patch_dags", lambda w: w.api("DAG").patch_dags(body("DAGPatchBody", is_paused=False), dag_id_pattern="shop")),
    ("DAGApi.favorite_dag", lambda w: w.api("DAG").favorite_dag("shop")),
    ("DAGApi.unfavorite_dag", lambda w: w.api("DAG").unfavorite_dag("shop")),
    ("DagSourceApi.get_dag_source", lambda w: w.api("DagSource").get_dag_source("shop")),
    ("DagStatsApi.get_dag_stats", lambda w: w.api("DagStats").get_dag_stats(dag_ids=["shop"])),
    ("DagVersionApi.get_dag_versions", lambda w: w.api("DagVersion").get_dag_versions("shop", bundle_name="dags")),
    ("DagVersionApi.get_dag_version", lambda w: w.api("DagVersion").get_dag_version("shop", 1)),
    ("DagWarningApi.list_dag_warnings", lambda w: w.api("DagWarning").list_dag_warnings()),
    ("DAGParsingApi.reparse_dag_file", lambda w: w.api("DAGParsing").reparse_dag_file(w.file_token())),
    ("TaskApi.get_tasks", lambda w: w.api("Task").get_tasks("shop", order_by="-task_id")),
    ("TaskApi.get_task", lambda w: w.api("Task").get_task("shop", "load")),
    (
        "ImportErrorApi.get_import_errors",
        lambda w: w.keep("error", w.api("ImportError").get_import_errors(filename_pattern="broken")),
    ),
    (
        "ImportErrorApi.get_import_error",
        lambda w: w.api("ImportError").get_import_error(w.kept["error"].import_errors[0].import_error_id),
    ),
    # runs
    ("DagRunApi.trigger_dag_run", lambda w: w.api("DagRun").trigger_dag_run("shop", body("TriggerDAGRunPostBody", **RUN))),
    ("DagRunApi.get_dag_run", lambda w: w.api("DagRun").get_dag_run("shop", w.shop)),
    ("DagRunApi.get_dag_runs", _runs),
    (
        "DagRunApi.get_list_dag_runs_batch",
        lambda w: w.api("DagRun").get_list_dag_runs_batch("~", body("DAGRunsBatchBody", dag_ids=["shop"], states=["success"])),
    ),
    ("DagRunApi.wait_dag_run_until_finished", _wait("DagRun")),
    ("ExperimentalApi.wait_dag_run_until_finished", _wait("Experimental")),
    (
        "DagRunApi.patch_dag_run",
        lambda w: w.api("DagRun").patch_dag_run("shop", w.shop, body("DAGRunPatchBody", note="checked")),
    ),
    (
        "DagRunApi.clear_dag_run",
        lambda w: w.api("DagRun").clear_dag_run("shop", w.shop, body("DAGRunClearBody", dry_run=True, only_failed=True)),
    ),
    (
        "DagRunApi.clear_dag_runs",
        lambda w: w.api("DagRun").clear_dag_runs(
            "shop", body("BulkDAGRunClearBody", dry_run=True, only_failed=True, dag_runs=[{"dag_run_id": w.shop}])
        ),
    ),
    (
        "DagRunApi.clear_dag_run_partitions",
        lambda w: w.api("DagRun").clear_dag_run_partitions(
            "shop", body("ClearPartitionsBody", partition_key="none", dry_run=True)
        ),
    ),
    ("DagRunApi.get_upstream_asset_events", lambda w: w.api("DagRun").get_upstream_asset_events("shop", w.shop)),
    # task instances
    ("TaskInstanceApi.get_task_instances", _cursor),
    (
        "TaskInstanceApi.get_task_instances_batch",
        lambda w: w.api("TaskInstance").get_task_instances_batch(
            "~", "~", body("TaskInstancesBatchBody", dag_ids=["shop"], state=["success"], order_by="-start_date")
        ),
    ),
    ("TaskInstanceApi.get_task_instance", lambda w: w.api("TaskInstance").get_task_instance("shop", w.shop, "load")),
    (
        "TaskInstanceApi.get_mapped_task_instances",
        lambda w: w.api("TaskInstance").get_mapped_task_instances("shop", w.shop, "double"),
    ),
    (
        "TaskInstanceApi.get_mapped_task_instance",
        lambda w: w.api("TaskInstance").get_mapped_task_instance("shop", w.shop, "double", 1),
    ),
    (
        "TaskInstanceApi.get_task_instance_tries",
        lambda w: w.api("TaskInstance").get_task_instance_tries("shop", w.shop, "load"),
    ),
    (
        "TaskInstanceApi.get_task_instance_try_details",
        lambda w: w.api("TaskInstance").get_task_instance_try_details("shop", w.shop, "load", 1),
    ),
    (
        "TaskInstanceApi.get_mapped_task_instance_tries",
        lambda w: w.api("TaskInstance").get_mapped_task_instance_tries("shop", w.shop, "double", 0),
    ),
    (
        "TaskInstanceApi.get_mapped_task_instance_try_details",
        lambda w: w.api("TaskInstance").get_mapped_task_instance_try_details("shop", w.shop, "double", 1, 0),
    ),
    (
        "TaskInstanceApi.get_task_instance_dependencies",
        lambda w: w.api("TaskInstance").get_task_instance_dependencies("held", w.held, "after"),
    ),
    (
        "TaskInstanceApi.get_task_instance_dependencies_by_map_index",
        lambda w: w.api("TaskInstance").get_task_instance_dependencies_by_map_index("held", w.held, "after", -1),
    ),
    ("TaskInstanceApi.get_log", _logs),
    (
        "TaskInstanceApi.get_external_log_url",
        # no remote store of logs is configured: there is no other place of the log
        _refused(lambda w: w.api("TaskInstance").get_external_log_url("shop", w.shop, "load", 1), 400),
    ),
    ("TaskInstanceApi.get_extra_links", _extra_links("TaskInstance")),
    ("ExtraLinksApi.get_extra_links", _extra_links("ExtraLinks")),
    (
        "TaskInstanceApi.patch_task_instance_dry_run",
        lambda w: w.api("TaskInstance").patch_task_instance_dry_run(
            "shop", w.shop, "load", body("PatchTaskInstanceBody", new_state="failed")
        ),
    ),
    (
        "TaskInstanceApi.patch_task_instance_dry_run_by_map_index",
        lambda w: w.api("TaskInstance").patch_task_instance_dry_run_by_map_index(
            "shop", w.shop, "double", 1, body("PatchTaskInstanceBody", new_state="failed")
        ),
    ),
    (
        "TaskInstanceApi.patch_task_instance",
        lambda w: w.api("TaskInstance").patch_task_instance("shop", w.shop, "load", body("PatchTaskInstanceBody", note="seen")),
    ),
    (
        "TaskInstanceApi.patch_task_instance_by_map_index",
        lambda w: w.api("TaskInstance").patch_task_instance_by_map_index(
            "shop", w.shop, "double", 1, body("PatchTaskInstanceBody", note="seen")
        ),
    ),
    (
        "TaskInstanceApi.patch_task_group_instances_dry_run",
        lambda w: w.api("TaskInstance").patch_task_group_instances_dry_run(
            "shop", w.shop, "reports", body("PatchTaskInstanceBody", new_state="failed")
        ),
    ),
    (
        "TaskInstanceApi.patch_task_group_instances",
        lambda w: w.api("TaskInstance").patch_task_group_instances(
            "shop", w.shop, "reports", body("PatchTaskInstanceBody", note="seen")
        ),
    ),
    (
        "TaskInstanceApi.bulk_task_instances",
        lambda w: w.api("TaskInstance").bulk_task_instances(
            "held",
            w.held,
            body(
                "BulkBodyBulkTaskInstanceBody",
                actions=[{"action": "update", "entities": [{"task_id": "after", **MARK}]}],
            ),
        ),
    ),
    (
        "TaskInstanceApi.post_clear_task_instances",
        lambda w: w.api("TaskInstance").post_clear_task_instances(
            "held", body("ClearTaskInstancesBody", dag_run_id=w.held, task_ids=["after"], dry_run=False, only_failed=False)
        ),
    ),
    # XComs
    ("XComApi.get_xcom_entries", lambda w: w.api("XCom").get_xcom_entries("~", "~", "~", xcom_key_pattern="return")),
    ("XComApi.get_xcom_entry", lambda w: w.api("XCom").get_xcom_entry("shop", "load", w.shop, "return_value")),
    (
        "XComApi.create_xcom_entry",
        lambda w: w.api("XCom").create_xcom_entry("shop", "load", w.shop, body("XComCreateBody", key="mine", value={"a": [1]})),
    ),
    (
        "XComApi.update_xcom_entry",
        lambda w: w.api("XCom").update_xcom_entry("shop", "load", w.shop, "mine", body("XComUpdateBody", value=7)),
    ),
    ("XComApi.delete_xcom_entry", lambda w: w.api("XCom").delete_xcom_entry("shop", "load", w.shop, "mine")),
    # state stores
    ("TaskStateStoreApi.set_task_state_store", _set_task_state),
    ("TaskStateStoreApi.get_task_state_store", _task_state),
    (
        "TaskStateStoreApi.list_task_state_store",
        lambda w: w.api("TaskStateStore").list_task_state_store("shop", w.shop, "load"),
    ),
    ("TaskStateStoreApi.patch_task_state_store", _patch_task_state),
    ("TaskStateStoreApi.delete_task_state_store", _no_task_state("delete_task_state_store", "job")),
    ("TaskStateStoreApi.clear_task_state_store", _no_task_state("clear_task_state_store")),
    ("AssetStateStoreApi.set_asset_state_store", _set_asset_state),
    (
        "AssetStateStoreApi.get_asset_state_store",
        _refused(lambda w: w.states.get_asset_state_store("marks", w.asset()), 404),
    ),
    ("AssetStateStoreApi.list_asset_state_store", lambda w: w.states.list_asset_state_store(w.asset())),
    ("AssetStateStoreApi.delete_asset_state_store", lambda w: w.states.delete_asset_state_store("mark", w.asset())),
    ("AssetStateStoreApi.clear_asset_state_store", _no_asset_state),
    # assets
    ("AssetApi.get_assets", lambda w: w.api("Asset").get_assets(dag_ids=["shop"], uri_prefix_pattern="file:")),
    ("AssetApi.get_asset", lambda w: w.api("Asset").get_asset(w.asset())),
    ("AssetApi.get_asset_aliases", lambda w: w.api("Asset").get_asset_aliases()),
    ("AssetApi.get_asset_alias", _refused(lambda w: w.api("Asset").get_asset_alias(1), 404)),
    ("AssetApi.get_asset_events", lambda w: w.api("Asset").get_asset_events(source_dag_id="shop")),
    (
        "AssetApi.create_asset_event",
        lambda w: w.api("Asset").create_asset_event(body("CreateAssetEventsBody", asset_id=w.asset(), extra={"by": "client"})),
    ),
    ("AssetApi.get_asset_queued_events", lambda w: w.api("Asset").get_asset_queued_events(w.asset())),
    ("AssetApi.get_dag_asset_queued_events", lambda w: w.api("Asset").get_dag_asset_queued_events("report")),
    ("AssetApi.get_dag_asset_queued_event", lambda w: w.api("Asset").get_dag_asset_queued_event("report", w.asset())),
    ("AssetApi.delete_dag_asset_queued_event", lambda w: w.api("Asset").delete_dag_asset_queued_event("report", w.asset())),
    (
        "AssetApi.delete_dag_asset_queued_events",
        lambda w: w.with_event.delete_dag_asset_queued_events("report"),
    ),
    ("AssetApi.delete_asset_queued_events", lambda w: w.with_event.delete_asset_queued_events(w.asset())),
    (
        "AssetApi.materialize_asset",
        lambda w: w.api("Asset").materialize_asset(w.asset(), body("MaterializeAssetBody", note="now")),
    ),
    # backfills
    (
        "BackfillApi.create_backfill_dry_run",
        lambda w: w.api("Backfill").create_backfill_dry_run(body("BackfillPostBody", **BACKFILL)),
    ),
    (
        "BackfillApi.create_backfill",
        lambda w: w.keep("backfill", w.api("Backfill").create_backfill(body("BackfillPostBody", **BACKFILL))),
    ),
    ("BackfillApi.list_backfills", lambda w: w.api("Backfill").list_backfills("nightly")),
    ("BackfillApi.get_backfill", lambda w: w.api("Backfill").get_backfill(w.kept["backfill"].id)),
    ("BackfillApi.pause_backfill", lambda w: w.api("Backfill").pause_backfill(w.kept["backfill"].id)),
    ("BackfillApi.unpause_backfill", lambda w: w.api("Backfill").unpause_backfill(w.kept["backfill"].id)),
    ("BackfillApi.cancel_backfill", lambda w: w.api("Backfill").cancel_backfill(w.kept["backfill"].id)),
    # variables, connections, pools
    ("VariableApi.post_variable", lambda w: w.api("Variable").post_variable(body("VariableBody", key="color", value="red"))),
    ("VariableApi.get_variable", lambda w: w.api("Variable").get_variable("color")),
    (
        "VariableApi.get_variables",
        lambda w: w.api("Variable").get_variables(variable_key_prefix_pattern="co", order_by=["-key"]),
    ),
    (
        "VariableApi.patch_variable",
        lambda w: w.api("Variable").patch_variable(
            "color", body("VariableBody", key="color", value="blue"), update_mask=["value"]
        ),
    ),
    (
        "VariableApi.bulk_variables",
        lambda w: _bulk_done(
            w.api("Variable").bulk_variables(
                bulk(
                    "BulkBodyVariableBody",
                    "key",
                    {"key": "v1", "value": "1"},
                    {"key": "v2", "value": "2"},
                    {"key": "v2", "value": "3"},
                )
            ),
            "v1",
            "v2",
        ),
    ),
    ("VariableApi.delete_variable", lambda w: w.api("Variable").delete_variable("color")),
    (
        "ConnectionApi.post_connection",
        lambda w: w.api("Connection").post_connection(
            body("ConnectionBody", connection_id="db", conn_type="sqlite", password="s3cret")
        ),
    ),
    ("ConnectionApi.get_connection", lambda w: w.api("Connection").get_connection("db")),
    ("ConnectionApi.get_connections", lambda w: w.api("Connection").get_connections(order_by=["-connection_id"])),
    (
        "ConnectionApi.patch_connection",
        lambda w: w.api("Connection").patch_connection(
            "db", body("ConnectionBody", connection_id="db", conn_type="sqlite", host="/tmp/x.db"), update_mask=["host"]
        ),
    ),
    (
        "ConnectionApi.bulk_connections",
        lambda w: _bulk_done(
            w.api("Connection").bulk_connections(
                bulk("BulkBodyConnectionBody", "connection_id", FIRST, SECOND, {**SECOND, "host": "three.example"})
            ),
            "c1",
            "c2",
        ),
    ),
    (
        "ConnectionApi.test_connection",
        lambda w: w.api("Connection").test_connection(body("ConnectionBody", connection_id="there", conn_type="fs")),
    ),
    ("ConnectionApi.enqueue_connection_test", _connection_test),
    ("ConnectionApi.get_connection_test", lambda w: w.api("Connection").get_connection_test(w.kept["connection_test"])),
    ("ConnectionApi.create_default_connections", lambda w: w.api("Connection").create_default_connections()),
    ("ConnectionApi.delete_connection", lambda w: w.api("Connection").delete_connection("db")),
    ("PoolApi.post_pool", lambda w: w.api("Pool").post_pool(body("PoolBody", name="small", slots=2))),
    ("PoolApi.get_pool", lambda w: w.api("Pool").get_pool("small")),
    ("PoolApi.get_pools", lambda w: w.api("Pool").get_pools(pool_name_prefix_pattern="sm")),
    ("PoolApi.patch_pool", lambda w: w.api("Pool").patch_pool("small", body("PoolPatchBody", slots=3), update_mask=["slots"])),
    (
        "PoolApi.bulk_pools",
        lambda w: _bulk_done(
            w.api("Pool").bulk_pools(
                bulk(
                    "BulkBodyPoolBody",
                    "name",
                    {"name": "p1", "slots": 1},
                    {"name": "p2", "slots": 2},
                    {"name": "p2", "slots": 3},
                )
            ),
            "p1",
            "p2",
        ),
    ),
    ("PoolApi.delete_pool", lambda w: w.api("Pool").delete_pool("small")),
    # the installation
    ("ConfigApi.get_config", lambda w: w.api("Config").get_config()),
    ("ConfigApi.get_config_value", lambda w: w.api("Config").get_config_value("core", "parallelism")),
    ("EventLogApi.get_event_logs", lambda w: w.keep("events", w.api("EventLog").get_event_logs(event_pattern="set variable"))),
    ("EventLogApi.get_event_log", lambda w: w.api("EventLog").get_event_log(w.kept["events"].event_logs[0].event_log_id)),
    ("JobApi.get_jobs", lambda w: w.api("Job").get_jobs(is_alive=True)),
    ("PluginApi.get_plugins", lambda w: w.api("Plugin").get_plugins()),
    ("PluginApi.import_errors", lambda w: w.api("Plugin").import_errors()),
    ("ProviderApi.get_providers", lambda w: w.api("Provider").get_providers()),
    # human in the loop
    ("TaskInstanceApi.get_hitl_details", _hitl_details),
    ("TaskInstanceApi.get_hitl_detail", _hitl_detail),
    ("TaskInstanceApi.update_hitl_detail", _answer_hitl),
    ("TaskInstanceApi.get_hitl_detail_try_detail", _hitl_try),
    # what is deleted, last
    ("TaskInstanceApi.delete_task_instance", lambda w: w.api("TaskInstance").delete_task_instance("shop", "second", "load")),
    (
        "DagRunApi.bulk_dag_runs",
        lambda w: w.api("DagRun").bulk_dag_runs(
            "shop",
            body("BulkBodyBulkDAGRunBody", actions=[{"action": "update", "entities": [{"dag_run_id": "second", "note": "x"}]}]),
        ),
    ),
    ("DagRunApi.delete_dag_run", lambda w: w.api("DagRun").delete_dag_run("shop", "second")),
    ("DAGApi.delete_dag", _delete_dag),
    ("LoginApi.logout", lambda w: w.api("Login").logout()),
]


def operations() -> Iterator[str]:
    """`Class.method` of every operation of the client."""
    for module in pkgutil.iter_modules(api_package.__path__):
        found = importlib.import_module(f"{api_package.__name__}.{module.name}")
        for name, kind in inspect.getmembers(found, inspect.isclass):
            if name.endswith("Api") and kind.__module__ == found.__name__:
                for method in vars(kind):
                    if not method.startswith("_") and not method.endswith(("_with_http_info", "_without_preload_content")):
                        yield f"{name}.{method}"


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    folder: Path = tmp_path_factory.mktemp("client")
    with installation(folder) as found:
        yield Walk(found)


def test_every_operation_of_the_client_is_called() -> None:
    called = [name for name, _ in CALLS]
    assert sorted(called) == sorted(set(called))
    assert set(called) == set(operations())


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_operation(walk: Walk, name: str, call: Call) -> None:
    call(walk)
