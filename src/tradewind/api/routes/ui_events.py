"""Server-sent events with the names of changed objects."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from tradewind.api.auth.policy import allow
from tradewind.api.event_hub import STREAM_SECONDS, lines
from tradewind.api.responses import Api, Caller, error_responses
from tradewind.model.moments import SECOND

router = APIRouter(prefix="/api/tradewind/v1", tags=["Web page"])

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "A stream of events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


@router.get("/events", response_class=StreamingResponse, responses={**_STREAM, **error_responses(503)})
@allow("read", "dag")
async def follow_changes(
    request: Request,
    api: Api,
    caller: Caller,
    after: Annotated[str | None, Query(description="As the header Last-Event-ID, for clients that cannot set it.")] = None,
) -> Response:
    """Server-sent events that name what has changed; the client reads it again.

    - `hello` is the first event: `{"version", "resumed"}`. If `resumed` is false, read everything that is shown again.
    - `change`: `{"version", "changed": […]}` with the names `dag:DAG`, `run:DAG/RUN`, `task:DAG/RUN/TASK/MAP_INDEX`, `pool:NAME`,
      `pools` and `triage`. Ids are percent-encoded. `run:` stands for the run and all of its cells. At most ten a second.
    - `resync`: changes were lost; read everything again.
    - `live`: `{"live": false}` while there is no scheduler, `true` when it is back.

    `version` increases with each event. A comment is sent every 15 seconds. The stream ends after five minutes, or with the login;
    open it again with the id of the last event. It answers 503 if the scheduler cannot be reached.
    """
    left = (caller.expires_at - api.clock.wall()) / SECOND if caller.expires_at else STREAM_SECONDS
    seconds = min(STREAM_SECONDS, left)
    sees = None if caller.access.reads_all else lambda dag_id: dag_id in (api.visible_to(caller.access) or ())
    opening = await api.events.open(request.headers.get("last-event-id") or after, sees)
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    return StreamingResponse(lines(api.events, opening, seconds), media_type="text/event-stream", headers=headers)
