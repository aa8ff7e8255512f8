"""Assets, their events, queued events of DAGs, and materialization."""

from __future__ import annotations

import contextlib
from typing import Any

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.auth.guard import need
from tradewind.api.auth.policy import Policy, allow
from tradewind.api.repeated_requests import RepeatableApi
from tradewind.api.responses import (
    Api,
    Caller,
    Limit,
    Names,
    Number,
    Offset,
    Order,
    Text,
    When,
    described,
    error_responses,
    json_response,
    moments,
    page_size,
    total_of,
)
from tradewind.api.routes.dag_runs import RunFields, Trigger, trigger_run
from tradewind.api.routes.ranges import Pattern, Prefix, conditions
from tradewind.api.services import Services
from tradewind.api.shapes import AssetAliases, AssetEvents, Assets, QueuedEvents
from tradewind.model.errors import Conflict, NotFound
from tradewind.model.phrases import english, phrase
from tradewind.store.views import AssetAliasView, AssetEventView, AssetView, QueuedEventView, RunView
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2", tags=["Asset"])


@router.get("/assets", responses=described(Assets, also=(400,)))
@allow("read", "asset")
def list_assets(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    name_pattern: Pattern = None,
    name_prefix_pattern: Prefix = None,
    uri_pattern: Pattern = None,
    uri_prefix_pattern: Prefix = None,
    dag_ids: Names = None,
    only_active: bool = True,
    order_by: Order = None,
) -> Response:
    """List assets that DAGs name."""
    found = api.reader().list_assets(
        name_pattern=name_pattern,
        uri_pattern=uri_pattern,
        dag_ids=dag_ids or (),
        only_active=only_active,
        conditions=conditions(prefixes={"name": name_prefix_pattern, "uri": uri_prefix_pattern}),
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("id",),
    )
    return json_response(Assets(found.rows, total_of(found, offset)))


@router.get("/assets/aliases", responses=described(AssetAliases, also=(400,)))
@allow("read", "asset")
def list_aliases(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    name_pattern: Pattern = None,
    name_prefix_pattern: Prefix = None,
    order_by: Order = None,
) -> Response:
    """List asset aliases."""
    fields = conditions({"name": name_pattern}, {"name": name_prefix_pattern})
    found = api.reader().list_asset_aliases(
        conditions=fields, limit=page_size(api, limit), offset=offset, order_by=order_by or ("id",)
    )
    return json_response(AssetAliases(found.rows, total_of(found, offset)))


@router.get("/assets/aliases/{asset_alias_id}", responses=described(AssetAliasView, also=(404,)))
@allow("read", "asset")
def get_alias(api: Api, asset_alias_id: Number) -> Response:
    """One alias."""
    return json_response(api.reader().asset_alias(asset_alias_id))


@router.get("/assets/events", responses=described(AssetEvents, also=(400,)))
@allow("read", "asset")
def list_events(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    asset_id: Number | None = None,
    source_dag_id: Text = None,
    source_task_id: Text = None,
    source_run_id: Text = None,
    source_map_index: Number | None = None,
    name_pattern: Pattern = None,
    name_prefix_pattern: Prefix = None,
    timestamp_gte: When = None,
    timestamp_gt: When = None,
    timestamp_lte: When = None,
    timestamp_lt: When = None,
    order_by: Order = None,
) -> Response:
    """List asset events. `timestamp` orders by the sequence of the events."""
    spans = moments(
        {
            "timestamp_gte": timestamp_gte,
            "timestamp_gt": timestamp_gt,
            "timestamp_lte": timestamp_lte,
            "timestamp_lt": timestamp_lt,
        }
    )
    found = api.reader().list_asset_events(
        asset=asset_id,
        source_dag_id=source_dag_id,
        source_task_id=source_task_id,
        source_run_id=source_run_id,
        source_map_index=source_map_index,
        conditions=conditions({"name": name_pattern}, {"name": name_prefix_pattern}),
        ranges=spans,
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("timestamp",),
    )
    return json_response(AssetEvents(found.rows, total_of(found, offset)))


class NewAssetEventBody(BaseModel):
    """An asset event that no task has emitted. `access_control` is accepted and has no effect: assets belong to no team here."""

    model_config = ConfigDict(extra="forbid")

    asset_id: Number
    partition_key: str | None = Field(default=None, max_length=250, pattern=r"\S")
    extra: dict[str, Any] = {}
    access_control: dict[str, Any] | None = None


@router.post("/assets/events", responses=described(AssetEventView, also=(400, 404, 503)))
@allow("edit", "asset")
def create_event(api: RepeatableApi, caller: Caller, body: NewAssetEventBody) -> Response:
    """Record that an asset was updated. DAGs that are scheduled on it run when their condition is met."""
    extra = {**body.extra, "from_rest_api": True}
    made = api.control().call(
        c.CreateAssetEvent(body.asset_id, extra=extra, partition_key=body.partition_key), actor=caller.name
    )
    return json_response(api.reader().asset_event(made.id))


@router.get("/assets/{asset_id}", responses=described(AssetView, also=(404,)))
@allow("read", "asset")
def get_asset(api: Api, asset_id: Number) -> Response:
    """One asset."""
    return json_response(api.reader().asset_details(asset_id))


class Materialize(RunFields):
    """The run that produces the asset: the fields of a run to trigger. All of them are optional."""


@router.post("/assets/{asset_id}/materialize", responses=described(RunView, also=(400, 404, 409, 503)))
@allow("edit", "asset", checks_objects=True)
def materialize(api: RepeatableApi, caller: Caller, asset_id: Number, body: Materialize | None = None) -> Response:
    """Run the DAG that produces the asset. 409: several DAGs produce it. DAGs that the account may not read do not count."""
    asset = api.reader().asset_details(asset_id)
    given = body or Materialize()
    producers = sorted({task.dag_id for task in asset.producing_tasks})
    if not producers:
        raise NotFound(english(phrase("error_no_producer", asset=asset.name)))
    if len(producers) > 1:
        found = ", ".join(producers)
        raise Conflict(english(phrase("error_producers", asset=asset.name, dags=found)))
    (dag_id,) = producers
    need(api, caller, Policy("create", "run"), dag_id)
    if given.model_fields_set - {"conf", "note"}:
        run = Trigger(**{"logical_date": None, **given.model_dump(include=given.model_fields_set)})
        return json_response(trigger_run(api, caller.name, dag_id, run))
    command = c.MaterializeAsset(asset_id, dag_id=dag_id, conf=given.conf, note=given.note, triggered_by="rest_api")
    made = api.control().call(command, actor=caller.name)
    return json_response(api.reader().run_details(made.dag_id, made.run_id))


# --- queued events -----------------------------------------------------------------------------------------------------------


def _before(text: str | None) -> int | None:
    return moments({"before": text}).get("before")


def _queued(found: list[QueuedEventView]) -> Response:
    return json_response(QueuedEvents(found, len(found)))


def _drop(api: Services, actor: str, dag_id: str | None, asset: int | None, before: str | None) -> Response:
    api.control().call(c.DropQueuedEvents(dag_id, asset, _before(before)), actor=actor)
    return Response(status_code=204)


@router.get("/assets/{asset_id}/queuedEvents", responses=described(QueuedEvents, also=(404,)))
@allow("read", "asset")
def queued_of_asset(api: Api, asset_id: Number, before: When = None) -> Response:
    """List the DAGs that have not consumed events of the asset."""
    return _queued(api.reader().queued_events(asset=asset_id, before=_before(before)))


@router.delete("/assets/{asset_id}/queuedEvents", status_code=204, responses=error_responses(404, 503))
@router.delete("/assets/{asset_id}/queuedEvents/", include_in_schema=False)  # airflowctl 0.1.5
@allow("edit", "asset", checks_objects=True)
def drop_of_asset(api: Api, caller: Caller, asset_id: Number, before: When = None) -> Response:
    """Delete the queued events of an asset, for the DAGs that the account may edit."""
    edit = Policy("edit", "dag")
    if caller.access.may_on_all(edit):
        return _drop(api, caller.name, None, asset_id, before)
    found = api.limited_to_permitted(caller.access, edit).reader().queued_events(asset=asset_id, before=_before(before))
    if not found:
        raise NotFound(f"No event is queued for asset {asset_id}.")
    for dag_id in sorted({one.dag_id for one in found}):
        with contextlib.suppress(NotFound):  # the DAG has consumed its events since
            _drop(api, caller.name, dag_id, asset_id, before)
    return Response(status_code=204)


@router.get("/dags/{dag_id}/assets/queuedEvents", responses=described(QueuedEvents, also=(404,)))
@allow("read", "asset")
def queued_of_dag(api: Api, dag_id: str, before: When = None) -> Response:
    """List the assets with events that the DAG has not consumed."""
    return _queued(api.reader().queued_events(dag_id=dag_id, before=_before(before)))


@router.delete("/dags/{dag_id}/assets/queuedEvents", status_code=204, responses=error_responses(404, 503))
@router.delete("/assets/dags/{dag_id}/queuedEvents", include_in_schema=False)  # airflowctl 0.1.5
@allow("edit", "asset")
def drop_of_dag(api: Api, caller: Caller, dag_id: str, before: When = None) -> Response:
    """Delete the queued events of a DAG."""
    return _drop(api, caller.name, dag_id, None, before)


@router.get("/dags/{dag_id}/assets/{asset_id}/queuedEvents", responses=described(QueuedEventView, also=(404,)))
@allow("read", "asset")
def queued_of_both(api: Api, dag_id: str, asset_id: Number, before: When = None) -> Response:
    """The queued events of an asset for a DAG."""
    found = api.reader().queued_events(dag_id=dag_id, asset=asset_id, before=_before(before))
    if not found:
        raise HTTPException(404, f"No event of asset {asset_id} is queued for DAG {dag_id}.")
    return json_response(found[0])


@router.delete("/dags/{dag_id}/assets/{asset_id}/queuedEvents", status_code=204, responses=error_responses(404, 503))
@router.delete("/assets/dags/{dag_id}/assets/{asset_id}/queuedEvents/", include_in_schema=False)  # airflowctl 0.1.5
@allow("edit", "asset")
def drop_of_both(api: Api, caller: Caller, dag_id: str, asset_id: Number, before: When = None) -> Response:
    """Delete the queued events of an asset for a DAG."""
    return _drop(api, caller.name, dag_id, asset_id, before)


@router.get("/dags/{dag_id}/dagRuns/{dag_run_id}/upstreamAssetEvents", responses=described(AssetEvents, also=(404,)))
@allow("read", "asset")
def upstream_events(api: Api, dag_id: str, dag_run_id: str) -> Response:
    """List the asset events that a run consumed."""
    reader = api.reader()
    run = reader.need_run(dag_id, dag_run_id)
    found = reader.list_asset_events(consumed_by=run.id, limit=None)
    return json_response(AssetEvents(found.rows, total_of(found, 0)))
