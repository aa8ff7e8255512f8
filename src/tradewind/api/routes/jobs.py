"""Jobs: the present and past processes of services."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import (
    Api,
    Limit,
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
from tradewind.api.shapes import Jobs

router = APIRouter(prefix="/api/v2/jobs", tags=["Job"])


@router.get("", responses=described(Jobs, also=(400,)))
@allow("read", "job")
def list_jobs(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    is_alive: bool | None = None,
    job_state: Text = None,
    job_type: Text = None,
    hostname: Text = None,
    executor_class: Text = None,
    start_date_gte: When = None,
    start_date_gt: When = None,
    start_date_lte: When = None,
    start_date_lt: When = None,
    end_date_gte: When = None,
    end_date_gt: When = None,
    end_date_lte: When = None,
    end_date_lt: When = None,
    order_by: Order = None,
) -> Response:
    """List jobs, with ended ones."""
    spans = {name: one for name, one in locals().items() if name.startswith(("start_date_", "end_date_"))}
    found = api.reader().list_jobs(
        now=api.clock.wall(),
        is_alive=is_alive,
        state=job_state,
        job_type=job_type,
        hostname=hostname,
        executor_class=executor_class,
        ranges=moments(spans),
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("id",),
    )
    return json_response(Jobs(found.rows, total_of(found, offset)))
