"""DAGs, their versions and statistics."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, Response
from pydantic import BaseModel, ConfigDict

from tradewind.api.auth.policy import allow
from tradewind.api.responses import (
    Api,
    Caller,
    Limit,
    Names,
    Number,
    Offset,
    Order,
    described,
    json_response,
    page_size,
    total_of,
)
from tradewind.api.shapes import Dags, DagStats, Versions
from tradewind.store.views import DagDetailsView, DagView, VersionView
from tradewind.wire.commands import SetPaused

router = APIRouter(prefix="/api/v2", tags=["DAG"])


@router.get("/dags", responses=described(Dags, also=(400,)))
@allow("read", "dag")
def list_dags(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    tags: Names = None,
    tags_match_mode: Literal["any", "all"] = "any",
    owners: Names = None,
    dag_id_pattern: str | None = None,
    dag_id_prefix_pattern: str | None = None,
    exclude_stale: bool = True,
    paused: bool | None = None,
    has_import_errors: bool | None = None,
    order_by: Order = None,
) -> Response:
    """List the DAGs that match all filters."""
    found = api.reader().list_dags(
        paused=paused,
        active=True if exclude_stale else None,
        tags=tags or (),
        all_tags=tags_match_mode == "all",
        owners=owners or (),
        dag_id_pattern=dag_id_pattern,
        dag_id_prefix=dag_id_prefix_pattern,
        has_import_errors=has_import_errors,
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("dag_id",),
    )
    return json_response(Dags(found.rows, total_of(found, offset)))


@router.get("/dags/{dag_id}", responses=described(DagView, also=(404,)))
@allow("read", "dag")
def get_dag(api: Api, dag_id: str) -> Response:
    """One DAG."""
    return json_response(api.reader().dag_view(dag_id))


@router.get("/dags/{dag_id}/details", responses=described(DagDetailsView, also=(404,)))
@allow("read", "dag")
def get_dag_details(api: Api, dag_id: str) -> Response:
    """One DAG with its arguments and docs."""
    return json_response(api.reader().dag_details(dag_id))


class DagPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    is_paused: bool


@router.patch("/dags/{dag_id}", responses=described(DagView, also=(400, 404, 503)))
@allow("edit", "dag")
def patch_dag(api: Api, caller: Caller, dag_id: str, body: DagPatch, update_mask: Names = None) -> Response:
    """Pause or unpause a DAG."""
    if any(field != "is_paused" for field in update_mask or ()):
        raise HTTPException(400, "Only is_paused can be changed: omit update_mask, or set it to is_paused.")
    api.reader().need_dag(dag_id)
    api.control().call(SetPaused(dag_id, body.is_paused), actor=caller.name)
    return json_response(api.reader().dag_view(dag_id))


@router.get("/dags/{dag_id}/dagVersions", responses=described(Versions, also=(400, 404)))
@allow("read", "dag")
def list_versions(api: Api, dag_id: str, limit: Limit = 50, offset: Offset = 0, order_by: Order = None) -> Response:
    """List the versions of a DAG (with `~` of all DAGs)."""
    found = api.reader().dag_versions(
        dag_id, limit=page_size(api, limit), offset=offset, order_by=order_by or ("version_number",)
    )
    return json_response(Versions(found.rows, total_of(found, offset)))


@router.get("/dags/{dag_id}/dagVersions/{version_number}", responses=described(VersionView, also=(404,)))
@allow("read", "dag")
def get_version(api: Api, dag_id: str, version_number: Number) -> Response:
    """One version of a DAG."""
    return json_response(api.reader().version_number(dag_id, version_number))


@router.get("/dagStats", responses=described(DagStats, also=(404,)))
@allow("read", "dag")
def dag_stats(api: Api, dag_ids: Annotated[list[str] | None, Query()] = None) -> Response:
    """Count the runs of each DAG by state."""
    found = api.reader().dag_stats(dag_ids or ())
    return json_response(DagStats(found, len(found)))
