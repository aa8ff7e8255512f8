"""Extra links that operators define for their task instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Number, described, json_response
from tradewind.api.shapes import ExtraLinks
from tradewind.model.definition import TaskDefinition
from tradewind.model.errors import NotFound
from tradewind.model.rows import RunRow
from tradewind.model.run_links import EXTERNAL_DAG_KEY, TRIGGERED_DAG_ID, TRIGGERED_DAG_KEY, TRIGGERED_RUN_ID
from tradewind.model.wait_plans import TasksPlan
from tradewind.store.port import Reader

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/links", tags=["Extra Links"])


@router.get("", responses=described(ExtraLinks, also=(404,)))
@allow("read", "task_instance")
def list_links(
    api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number = -1, try_number: Number | None = None
) -> Response:
    """List the extra links: URL by name; null if the task has not set the URL. `try_number` has no effect: it is the latest try.

    The links "Triggered DAG" and "External DAG" go to pages of this server.
    """
    reader = api.reader()
    instance = reader.task_instance(dag_id, dag_run_id, task_id, map_index)
    run = reader.need_run(dag_id, dag_run_id)
    task = reader.definition(run.version).task(task_id)
    found = extra_links(reader, run, task, map_index, instance.rendered_fields, api.config.base_url)
    return json_response(ExtraLinks(found, len(found)))


def extra_links(
    reader: Reader, run: RunRow, task: TaskDefinition | None, map_index: int, rendered: Mapping[str, Any], base_url: str
) -> dict[str, str | None]:
    """URL by the name of each link of a task; None if the instance has not set it.

    Args:
        rendered: the rendered template fields of the instance.
        base_url: first part of links to pages of this server, without a slash at its end.
    """
    found: dict[str, str | None] = {}
    if task is None:
        return found
    for name, key in task.extra_links:
        address = _pushed(reader, run, task, map_index, key)
        if address is None and key == TRIGGERED_DAG_KEY:
            address = _triggered_run(reader, run, task, map_index, base_url)
        elif address is None and key == EXTERNAL_DAG_KEY:
            address = _external_run(reader, run, task, rendered, base_url)
        found[name] = address
    return found


def _pushed(reader: Reader, run: RunRow, task: TaskDefinition, map_index: int, key: str) -> str | None:
    values = reader.xcoms(run.id, [task.task_id], key, [map_index])
    return str(msgspec.json.decode(values[0][2])) if values and values[0][2] else None


def _triggered_run(reader: Reader, run: RunRow, task: TaskDefinition, map_index: int, base_url: str) -> str | None:
    """The page of the run that the instance has triggered; None if it has not triggered one yet."""
    dag_id = _pushed(reader, run, task, map_index, TRIGGERED_DAG_ID) or next(iter(task.waits_for), None)
    run_id = _pushed(reader, run, task, map_index, TRIGGERED_RUN_ID)
    return _page(base_url, dag_id, run_id) if dag_id and run_id else None


def _external_run(reader: Reader, run: RunRow, task: TaskDefinition, rendered: Mapping[str, Any], base_url: str) -> str | None:
    """The page of the run that the instance waits for. The page of its DAG if there is no such run, or not only one."""
    dag_id = str(rendered.get("external_dag_id") or "") or next(iter(task.waits_for), None)
    if not dag_id:
        return None
    until = task.wait.until if task.wait is not None else None
    earlier = until.earlier if isinstance(until, TasksPlan) else 0 if task.external is not None else None
    if run.logical_date is None or earlier is None:
        return _page(base_url, dag_id)
    at = run.logical_date - earlier
    try:
        runs = reader.list_runs(dag_id, ranges={"logical_date_gte": at, "logical_date_lte": at}, limit=1)
    except NotFound:  # the other DAG was deleted, or does not exist yet
        return _page(base_url, dag_id)
    return _page(base_url, dag_id, runs.rows[0].dag_run_id if runs.rows else None)


def _page(base_url: str, dag_id: str, run_id: str | None = None) -> str:
    run = "" if run_id is None else f"/runs/{quote(run_id, safe='')}"
    return f"{base_url}/dags/{quote(dag_id, safe='')}{run}"
