"""The audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import (
    Api,
    Limit,
    Names,
    Number,
    Offset,
    Order,
    Text,
    When,
    described,
    json_response,
    moments,
    page_size,
    total_of,
)
from tradewind.api.routes.ranges import Pattern, Prefix, conditions
from tradewind.api.shapes import Events
from tradewind.store.views import EventView

router = APIRouter(prefix="/api/v2/eventLogs", tags=["Event Log"])


@router.get("", responses=described(Events, also=(400,)))
@allow("read", "event_log")
def list_event_logs(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    dag_id: Text = None,
    task_id: Text = None,
    run_id: Text = None,
    event: Text = None,
    owner: Text = None,
    map_index: Annotated[Number | None, Query(description="Entries are about whole tasks: only -1 matches.")] = None,
    try_number: Annotated[Number | None, Query(description="Entries are about no try: none matches.")] = None,
    dag_id_pattern: Pattern = None,
    dag_id_prefix_pattern: Prefix = None,
    task_id_pattern: Pattern = None,
    task_id_prefix_pattern: Prefix = None,
    run_id_pattern: Pattern = None,
    run_id_prefix_pattern: Prefix = None,
    owner_pattern: Pattern = None,
    owner_prefix_pattern: Prefix = None,
    event_pattern: Pattern = None,
    event_prefix_pattern: Prefix = None,
    excluded_events: Names = None,
    included_events: Names = None,
    before: When = None,
    after: When = None,
    order_by: Order = None,
) -> Response:
    """List the entries of the audit log."""
    if try_number is not None or map_index not in (None, -1):
        return json_response(Events([], 0))
    spans = moments({"when_lt": before, "when_gt": after})
    fields = conditions(
        {
            "dag_id": dag_id_pattern,
            "task_id": task_id_pattern,
            "run_id": run_id_pattern,
            "owner": owner_pattern,
            "event": event_pattern,
        },
        {
            "dag_id": dag_id_prefix_pattern,
            "task_id": task_id_prefix_pattern,
            "run_id": run_id_prefix_pattern,
            "owner": owner_prefix_pattern,
            "event": event_prefix_pattern,
        },
        {"event": included_events},
    )
    found = api.reader().event_logs(
        dag_id=dag_id,
        task_id=task_id,
        run_id=run_id,
        event=event,
        owner=owner,
        excluded_events=excluded_events or (),
        conditions=fields,
        ranges=spans,
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("id",),
    )
    return json_response(Events(found.rows, total_of(found, offset)))


@router.get("/{event_log_id}", responses=described(EventView, also=(404,)))
@allow("read", "event_log")
def get_event_log(api: Api, event_log_id: Number) -> Response:
    """One entry of the audit log."""
    return json_response(api.reader().event_log(event_log_id))
