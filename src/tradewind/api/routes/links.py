"""Extra links that operators define for their task instances."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Number, described, json_response
from tradewind.api.shapes import ExtraLinks
from tradewind.model.definition import TaskDefinition
from tradewind.store.port import Reader

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/links", tags=["Extra Links"])


@router.get("", responses=described(ExtraLinks, also=(404,)))
@allow("read", "task_instance")
def list_links(
    api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number = -1, try_number: Number | None = None
) -> Response:
    """List the extra links: URL by name; null if the task has not set the URL. `try_number` has no effect: it is the latest try."""
    reader = api.reader()
    reader.task_instance(dag_id, dag_run_id, task_id, map_index)
    run = reader.need_run(dag_id, dag_run_id)
    found = extra_links(reader, run.id, reader.definition(run.version).task(task_id), map_index)
    return json_response(ExtraLinks(found, len(found)))


def extra_links(reader: Reader, run: int, task: TaskDefinition | None, map_index: int) -> dict[str, str | None]:
    """URL by the name of each link of a task; None if the instance has not set it."""
    found: dict[str, str | None] = {}
    if task is None:
        return found
    for name, key in task.extra_links:
        values = reader.xcoms(run, [task.task_id], key, [map_index])
        found[name] = str(msgspec.json.decode(values[0][2])) if values and values[0][2] else None
    return found
