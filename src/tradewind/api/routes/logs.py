"""Task logs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Path, Query, Response
from fastapi.responses import StreamingResponse

from tradewind.api import log_reading as reading
from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Number, described, json_response
from tradewind.api.shapes import LogPage

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}", tags=["Task Instance"])

CONTINUATION_HEADER = "Airflow-Continuation-Token"
_NDJSON = "application/x-ndjson"
FULL_BYTES = 8 * 1024 * 1024
"""Maximum of a JSON response with `full_content`; NDJSON has no limit."""


@router.get("/logs/{try_number}", responses=described(LogPage, also=(400, 404)))
@allow("read", "log")
def get_log(
    api: Api,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    try_number: Annotated[int, Path(ge=1, le=2**31)],
    accept: Annotated[str, Header()] = "*/*",
    full_content: bool = False,
    map_index: Number = -1,
    token: Annotated[str | None, Query(description="Token of the last response: continue from there.")] = None,
) -> Response:
    """The log of one try.

    JSON: a page, and a token while there is or may be more. With `Accept: application/x-ndjson`: the whole log so far as a stream
    of records, and the token in a header.
    """
    try:
        place = reading.parse_token(token) if token else None
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    files = api.reader().log_files(dag_id, dag_run_id, task_id, map_index, try_number)
    logs = api.logs
    stream = _NDJSON in accept.lower()
    at_most = None if stream else FULL_BYTES if full_content else reading.PAGE_BYTES
    found = reading.plan(logs, files, place, api.clock.wall(), at_most)
    empty = reading.missing_log_notice(logs, files, api.clock.wall()) if place is None and not found.pieces else None
    next_position = None if found.next_position is None else found.next_position.token
    if stream:
        headers = {} if next_position is None else {CONTINUATION_HEADER: next_position}
        stream_of = reading.ndjson(logs, found.pieces) if empty is None else iter([reading.notice_line(empty)])
        return StreamingResponse(stream_of, media_type=_NDJSON, headers=headers)
    if empty is not None:
        return json_response(LogPage([reading.notice_record(empty)], next_position))
    content = [reading.record(line) for line in reading.lines(logs, found.pieces) if line]
    return json_response(LogPage(content, next_position))
