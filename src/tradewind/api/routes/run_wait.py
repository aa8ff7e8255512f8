"""Waiting for the end of a run: `…/dagRuns/{run}/wait`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import anyio.to_thread
import msgspec
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Names, error_responses, json_response
from tradewind.api.services import Services
from tradewind.model.states import FINISHED_RUNS, RunState
from tradewind.storage.local_spills import LocalSpills

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/wait", tags=["DagRun"])

_NDJSON = "application/x-ndjson"
_KEY = "return_value"
SHORTEST_INTERVAL = 0.1
"""Minimum seconds between two reads of the state of the run."""

_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A line of JSON each time the state of the run is read. The last line has the final state, and the results "
        "if there are any. As `application/json`: only the last line.",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}, "application/json": {"schema": {"type": "object"}}},
    },
    **error_responses(404),
}


@router.get("", responses=_RESPONSES)
@allow("read", "run")
async def wait_for_run(
    api: Api,
    request: Request,
    dag_id: str,
    dag_run_id: str,
    interval: Annotated[float, Query(gt=0, le=3600, description="Seconds between two reads of the state.")],
    result: Annotated[
        Names, Query(description="Ids of tasks: the last line has their return values. Default: the DAG's results.")
    ] = None,
    accept: Annotated[str, Header()] = "*/*",
) -> Response:
    """Wait until a run has ended."""
    pause = max(interval, SHORTEST_INTERVAL)
    look = await anyio.to_thread.run_sync(
        _read_state, api, dag_id, dag_run_id, result
    )  # raises NotFound before the answer begins
    if _NDJSON in accept.lower() or "application/json" not in accept.lower():
        return StreamingResponse(_lines(api, dag_id, dag_run_id, result, pause, look), media_type=_NDJSON)
    while look["state"] not in _ENDED and not await request.is_disconnected():
        await asyncio.sleep(pause)
        look = await anyio.to_thread.run_sync(_read_state, api, dag_id, dag_run_id, result)
    return json_response(look)


_ENDED = frozenset(state.value for state in FINISHED_RUNS)


async def _lines(
    api: Services, dag_id: str, run_id: str, tasks: list[str] | None, pause: float, first: dict[str, Any]
) -> AsyncIterator[bytes]:
    """One line each time the state is read. The server stops this iterator when the client disconnects."""
    look = first
    yield msgspec.json.encode(look) + b"\n"
    while look["state"] not in _ENDED:
        await asyncio.sleep(pause)
        look = await anyio.to_thread.run_sync(_read_state, api, dag_id, run_id, tasks)
        yield msgspec.json.encode(look) + b"\n"


def _read_state(api: Services, dag_id: str, run_id: str, tasks: list[str] | None) -> dict[str, Any]:
    """The state of the run; of an ended one with the results of these tasks (None: the DAG's results). Raises NotFound."""
    reader = api.reader()
    reader.need_dag(dag_id)
    run = reader.need_run(dag_id, run_id)
    found: dict[str, Any] = {"state": RunState(run.state).value}
    if run.state in FINISHED_RUNS and tasks is None:
        tasks = [task.task_id for task in reader.definition(run.version).tasks if task.returns_dag_result]
    if run.state in FINISHED_RUNS and tasks:
        results = {task: _result(api, run.id, task) for task in tasks}
        present = {task: values for task, values in results.items() if values is not None}
        if present:
            found["results"] = present
    return found


def _result(api: Services, run: int, task_id: str) -> Any:
    """The return value of a task; of a mapped task a list. None: it has none."""
    rows = api.reader().list_xcoms(run, task_id=task_id, key=_KEY)
    if not rows:
        return None
    spills = LocalSpills(api.config.spills)
    stored = [row.value if row.spill is None else spills.read(row.spill) for row in rows]
    values = [msgspec.json.decode(data) for data in stored if data]
    return values[0] if len(rows) == 1 and rows[0].map_index < 0 and values else values
