"""The log of a task instance in pieces, by byte offset, and its end while it is written."""

from __future__ import annotations

from typing import Annotated, Literal

import anyio
import anyio.to_thread
from fastapi import APIRouter, Path, Query, Request, Response

from tradewind.api import log_pieces as pieces
from tradewind.api.auth.policy import allow
from tradewind.api.conditional import compressed_json
from tradewind.api.log_reading import missing_log_notice
from tradewind.api.responses import Api, Number, described
from tradewind.api.services import Services
from tradewind.api.ui_shapes import LogPieceView
from tradewind.store.views import LogFile

router = APIRouter(prefix="/api/tradewind/v1/dags/{dag_id}/runs/{run_id}", tags=["Web page"])

WAIT_MAX = 25.0
LOOK_SECONDS = 0.2
"""How often a waiting request checks whether the log has grown."""
REREAD_EVERY = 10
"""After this number of checks the attempts are read from the database again: the try may have ended or may have another attempt."""

Where = tuple[str, str, str, int, int]


@router.get("/tasks/{task_id}/tries/{try_number}/log", responses=described(LogPieceView, also=(404, 503)))
@allow("read", "log")
async def get_log_piece(
    request: Request,
    api: Api,
    dag_id: str,
    run_id: str,
    task_id: str,
    try_number: Annotated[int, Path(ge=1, le=2**31)],
    map_index: Number = -1,
    at: Annotated[
        Literal["offset", "before", "end", "error"],
        Query(
            description="`offset`: the lines from `offset` on; `before`: those before it; `end`: the last lines; `error`: from a "
            "little before the first error on, or the last lines where there is none."
        ),
    ] = "offset",
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=pieces.PIECE_MAX, description="Size of the piece, about.")] = pieces.PIECE_BYTES,
    wait: Annotated[float, Query(ge=0, le=WAIT_MAX, description="Seconds to wait until the log is longer than `offset`.")] = 0,
) -> Response:
    """A piece of the log of one try, as whole lines.

    The size of the log does not matter. To follow a log, ask from `end` with `wait`: the answer comes as
    soon as something was written, or the try has ended (`grows` is false), or the time is over.
    """
    where = (dag_id, run_id, task_id, map_index, try_number)
    deadline = anyio.current_time() + wait
    files = await anyio.to_thread.run_sync(_files, api, where)
    looks = 0
    while True:
        parts = await anyio.to_thread.run_sync(_parts, api, files)
        if pieces.size_of(parts) > offset or not pieces.grows(parts) or anyio.current_time() >= deadline:
            break
        await anyio.sleep(LOOK_SECONDS)
        looks += 1
        if looks % REREAD_EVERY == 0:
            if await request.is_disconnected():
                break
            files = await anyio.to_thread.run_sync(_files, api, where)
    return await anyio.to_thread.run_sync(_answer, request, api, files, parts, (at, offset, limit))


def _files(api: Services, where: Where) -> list[LogFile]:
    return api.reader().log_files(*where)


def _parts(api: Services, files: list[LogFile]) -> list[pieces.LogPart]:
    return pieces.parts_of(api.logs, files, api.clock.wall())


def _answer(
    request: Request, api: Services, files: list[LogFile], parts: list[pieces.LogPart], wanted: tuple[str, int, int]
) -> Response:
    logs = api.logs
    at, offset, limit = wanted
    error, searched = api.errors_in_logs.first(logs, parts)
    if at == "error" and error is not None:
        found = pieces.read_from(logs, parts, max(0, error - min(pieces.CONTEXT_BYTES, limit // 2)), limit)
    elif at in ("error", "end"):
        found = pieces.read_before(logs, parts, pieces.size_of(parts), limit)
    elif at == "before":
        found = pieces.read_before(logs, parts, offset, limit)
    else:
        found = pieces.read_from(logs, parts, offset, limit)
    size = pieces.size_of(parts)
    body = LogPieceView(
        size=size,
        start=found.start,
        end=found.end,
        grows=pieces.grows(parts),
        first_error=error,
        searched=searched,
        offsets=found.offsets,
        times=[_text(one.get("timestamp")) for one in found.records],
        levels=[_text(one.get("level")) for one in found.records],
        loggers=[_text(one.get("logger")) for one in found.records],
        texts=[one["event"] for one in found.records],
        notice=missing_log_notice(logs, files, api.clock.wall()) if size == 0 else None,
    )
    return compressed_json(request, body)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
