"""Answers about assets for the web page: one asset with everything that its page shows, and the graph of assets and DAGs."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.awaited_assets import awaited_assets
from tradewind.api.responses import Api, Number, described, json_response
from tradewind.api.ui_shapes import AssetGraph, AssetLinks, AssetUse, AwaitedAssets

router = APIRouter(prefix="/api/tradewind/v1", tags=["Web page"])

EVENTS_MAX = 100
GRAPH_MAX = 2000
"""Maximum number of assets in the graph. A larger drawing is not readable; the page says that assets are missing."""


@router.get("/assets/graph", responses=described(AssetGraph))
@allow("read", "asset")
def get_asset_graph(api: Api) -> Response:
    """Which DAGs produce each asset, and which DAGs it starts. At most 2000 assets, by name."""
    found = api.reader().list_assets(limit=GRAPH_MAX, order_by=("name",))
    links = [
        AssetLinks(
            id=one.id,
            name=one.name,
            uri=one.uri,
            producers=sorted({task.dag_id for task in one.producing_tasks}),
            consumers=sorted({dag.dag_id for dag in one.scheduled_dags}),
            last_event_at=one.last_asset_event.timestamp,
        )
        for one in found.rows
    ]
    return json_response(AssetGraph(links, len(links) if found.total is None else found.total))


@router.get("/assets/{asset_id}", responses=described(AssetUse, also=(404,)))
@allow("read", "asset")
def get_asset_use(api: Api, asset_id: Number) -> Response:
    """An asset with its latest 100 events and the events that DAGs have not consumed."""
    reader = api.reader()
    asset = reader.asset_details(asset_id)
    events = reader.list_asset_events(asset=asset_id, limit=EVENTS_MAX, order_by=("-timestamp",))
    return json_response(AssetUse(asset, events.rows, reader.queued_events(asset=asset_id)))


@router.get("/dags/{dag_id}/awaitedAssets", responses=described(AwaitedAssets, also=(404,)))
@allow("read", "dag")
def get_awaited_assets(api: Api, dag_id: str) -> Response:
    """What the next runs of a DAG that is scheduled by assets wait for; for a DAG with partitions, the missing partition keys."""
    return json_response(awaited_assets(api.reader(), dag_id))
