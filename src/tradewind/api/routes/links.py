"""Extra links that operators define for their task instances."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Number, described, json_response
from tradewind.api.shapes import ExtraLinks

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/links", tags=["Extra Links"])


@router.get("", responses=described(ExtraLinks, also=(404,)))
@allow("read", "task_instance")
def list_links(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number = -1) -> Response:
    """List the extra links: URL by name; null if the task has not set the URL."""
    reader = api.reader()
    reader.task_instance(dag_id, dag_run_id, task_id, map_index)
    run = reader.need_run(dag_id, dag_run_id)
    task = reader.definition(run.version).task(task_id)
    found: dict[str, str | None] = {}
    for name, key in task.extra_links if task is not None else ():
        values = reader.xcoms(run.id, [task_id], key, [map_index])
        found[name] = str(msgspec.json.decode(values[0][2])) if values and values[0][2] else None
    return json_response(ExtraLinks(found, len(found)))
