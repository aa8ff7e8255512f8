"""The audit log."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import (
    Api,
    Limit,
    Number,
    Offset,
    Order,
    When,
    described,
    json_response,
    moments,
    page_size,
    total_of,
)
from tradewind.api.shapes import Events
from tradewind.store.views import EventView

router = APIRouter(prefix="/api/v2/eventLogs", tags=["Event Log"])


@router.get("", responses=described(Events, also=(400,)))
@allow("read", "event_log")
def list_event_logs(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    dag_id: str | None = None,
    task_id: str | None = None,
    run_id: str | None = None,
    event: str | None = None,
    owner: str | None = None,
    before: When = None,
    after: When = None,
    order_by: Order = None,
) -> Response:
    """List the entries of the audit log."""
    spans = moments({"when_lt": before, "when_gt": after})
    found = api.reader().event_logs(
        dag_id=dag_id,
        task_id=task_id,
        run_id=run_id,
        event=event,
        owner=owner,
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
