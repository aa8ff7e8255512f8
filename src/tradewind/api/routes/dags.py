"""DAGs, their versions and statistics."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Depends, HTTPException, Query, Response
from pydantic import BaseModel, ConfigDict

from tradewind.api.auth.policy import Policy, allow
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
from tradewind.api.routes.dag_runs import RunState
from tradewind.api.routes.ranges import Pattern, Prefix
from tradewind.api.shapes import Dags, DagStats, Versions
from tradewind.store.views import Conditions, DagConditions, DagDetailsView, DagView, VersionView
from tradewind.wire.commands import DeleteDag, SetFavorite, SetPaused

router = APIRouter(prefix="/api/v2", tags=["DAG"])


class DagPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    is_paused: bool


def _only_is_paused(update_mask: list[str] | None) -> None:
    if any(field != "is_paused" for field in update_mask or ()):
        raise HTTPException(400, "Only is_paused can be changed: omit update_mask, or set it to is_paused.")


async def _dag_conditions(
    caller: Caller,
    dag_display_name_pattern: Pattern = None,
    dag_display_name_prefix_pattern: Prefix = None,
    bundle_name: Text = None,
    bundle_version: Annotated[str | None, Query(description="DAGs are not bound to a version of their bundle.")] = None,
    has_asset_schedule: bool | None = None,
    asset_dependency: Annotated[
        str | None, Query(description="Part of the name or the URI of an asset in the schedule.")
    ] = None,
    last_dag_run_state: RunState | None = None,
    dag_run_state: Annotated[list[RunState] | None, Query(description="States of the latest run.")] = None,
    dag_run_start_date_gte: When = None,
    dag_run_start_date_gt: When = None,
    dag_run_start_date_lte: When = None,
    dag_run_start_date_lt: When = None,
    dag_run_end_date_gte: When = None,
    dag_run_end_date_gt: When = None,
    dag_run_end_date_lte: When = None,
    dag_run_end_date_lt: When = None,
    is_favorite: bool | None = None,
    timetable_type: Annotated[list[str] | None, Query(description="Full class names of timetables.")] = None,
) -> DagConditions:
    given = {name: one for name, one in locals().items() if name.startswith("dag_run_") and name != "dag_run_state"}
    return DagConditions(
        among={} if bundle_name is None else {"bundle_name": [bundle_name]},
        display_name_pattern=dag_display_name_pattern,
        display_name_prefix=dag_display_name_prefix_pattern,
        has_asset_schedule=has_asset_schedule,
        asset=asset_dependency,
        favorite_of=None if is_favorite is None else caller.name,
        is_favorite=bool(is_favorite),
        last_run_states=[*(dag_run_state or ()), *([last_dag_run_state] if last_dag_run_state else ())],
        last_run_ranges={name.removeprefix("dag_run_"): one for name, one in moments(given).items()},
        timetable_types=timetable_type or (),
    )


@router.get("/dags", responses=described(Dags, also=(400,)))
@allow("read", "dag")
def list_dags(
    api: Api,
    more: Annotated[DagConditions, Depends(_dag_conditions)],
    limit: Limit = 50,
    offset: Offset = 0,
    tags: Names = None,
    tags_match_mode: Literal["any", "all"] | None = None,
    owners: Names = None,
    dag_id_pattern: Pattern = None,
    dag_id_prefix_pattern: Prefix = None,
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
        owners=[owner for owner in owners or () if owner],
        dag_id_pattern=dag_id_pattern,
        dag_id_prefix=dag_id_prefix_pattern,
        has_import_errors=has_import_errors,
        more=more,
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("dag_id",),
        now=api.clock.wall(),
    )
    return json_response(Dags(found.rows, total_of(found, offset)))


@router.patch("/dags", responses=described(Dags, also=(400, 404, 503)))
@allow("edit", "dag", checks_objects=True)
def patch_dags(
    api: Api,
    caller: Caller,
    body: DagPatch,
    update_mask: Names = None,
    limit: Limit = 50,
    offset: Offset = 0,
    tags: Names = None,
    tags_match_mode: Literal["any", "all"] | None = None,
    owners: Names = None,
    dag_id_pattern: Pattern = None,
    dag_id_prefix_pattern: Prefix = None,
    exclude_stale: bool = True,
    paused: bool | None = None,
) -> Response:
    """Pause or unpause the DAGs of one page that match all filters and that the account may edit.

    Without a pattern of DAG ids no DAG matches; `~` means all.
    """
    _only_is_paused(update_mask)
    if dag_id_pattern is None and dag_id_prefix_pattern is None:
        return json_response(Dags([], 0))
    reader = api.limited_to_permitted(caller.access, Policy("edit", "dag")).reader()
    found = reader.list_dags(
        paused=paused,
        active=True if exclude_stale else None,
        tags=tags or (),
        all_tags=tags_match_mode == "all",
        owners=[owner for owner in owners or () if owner],
        dag_id_pattern=dag_id_pattern,
        dag_id_prefix=dag_id_prefix_pattern,
        limit=page_size(api, limit),
        offset=offset,
    )
    for dag in found.rows:
        if dag.is_paused != body.is_paused:
            api.control().call(SetPaused(dag.dag_id, body.is_paused), actor=caller.name)
    return json_response(Dags([reader.dag_view(dag.dag_id, api.clock.wall()) for dag in found.rows], total_of(found, offset)))


@router.get("/dags/{dag_id}", responses=described(DagView, also=(404,)))
@allow("read", "dag")
def get_dag(api: Api, dag_id: str) -> Response:
    """One DAG."""
    return json_response(api.reader().dag_view(dag_id, api.clock.wall()))


@router.get("/dags/{dag_id}/details", responses=described(DagDetailsView, also=(404,)))
@allow("read", "dag")
def get_dag_details(api: Api, caller: Caller, dag_id: str) -> Response:
    """One DAG with its arguments and docs."""
    reader = api.reader()
    found = reader.dag_details(dag_id, api.clock.wall())
    return json_response(msgspec.structs.replace(found, is_favorite=reader.is_favorite(dag_id, caller.name)))


@router.post("/dags/{dag_id}/favorite", status_code=204, responses=error_responses(404, 409, 503))
@allow("edit", "favorite")
def favorite_dag(api: Api, caller: Caller, dag_id: str) -> Response:
    """Make a DAG a favorite of the user. 409: it is one already."""
    api.control().call(SetFavorite(dag_id, True), actor=caller.name)
    return Response(status_code=204)


@router.post("/dags/{dag_id}/unfavorite", status_code=204, responses=error_responses(404, 409, 503))
@allow("edit", "favorite")
def unfavorite_dag(api: Api, caller: Caller, dag_id: str) -> Response:
    """Remove a DAG from the favorites of the user. 409: the DAG is not a favorite."""
    api.control().call(SetFavorite(dag_id, False), actor=caller.name)
    return Response(status_code=204)


@router.delete("/dags/{dag_id}", status_code=204, responses=error_responses(404, 409, 503))
@allow("edit", "dag")
def delete_dag(api: Api, caller: Caller, dag_id: str) -> Response:
    """Delete a DAG with all its runs. 409: it has runs that have not ended. It comes back without runs if its file still exists."""
    api.reader().need_dag(dag_id)
    while not api.control().call(DeleteDag(dag_id), actor=caller.name).gone:
        pass  # one bounded step for each command
    return Response(status_code=204)


@router.patch("/dags/{dag_id}", responses=described(DagView, also=(400, 404, 503)))
@allow("edit", "dag")
def patch_dag(api: Api, caller: Caller, dag_id: str, body: DagPatch, update_mask: Names = None) -> Response:
    """Pause or unpause a DAG."""
    _only_is_paused(update_mask)
    api.reader().need_dag(dag_id)
    api.control().call(SetPaused(dag_id, body.is_paused), actor=caller.name)
    return json_response(api.reader().dag_view(dag_id, api.clock.wall()))


@router.get("/dags/{dag_id}/dagVersions", responses=described(Versions, also=(400, 404)))
@allow("read", "dag")
def list_versions(
    api: Api,
    dag_id: str,
    version_number: Number | None = None,
    bundle_name: Text = None,
    bundle_version: Text = None,
    limit: Limit = 50,
    offset: Offset = 0,
    order_by: Order = None,
) -> Response:
    """List the versions of a DAG (with `~` of all DAGs)."""
    given = {"version_number": version_number, "bundle_name": bundle_name, "bundle_version": bundle_version}
    fields = Conditions(among={name: [one] for name, one in given.items() if one is not None})
    found = api.reader().dag_versions(
        dag_id, conditions=fields, limit=page_size(api, limit), offset=offset, order_by=order_by or ("version_number",)
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
    """Count the runs of each DAG by state. DAGs that do not exist are left out."""
    reader = api.reader()
    places = {place.dag_id for place in reader.dag_bundles(dag_ids)} if dag_ids else set()
    known = [dag_id for dag_id in dag_ids or () if dag_id in places]
    found = reader.dag_stats(known) if known or not dag_ids else []
    return json_response(DagStats(found, len(found)))
