"""Task instances: their states and tries."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Indexes, Limit, Names, Number, Offset, Order, Text, described, json_response, page_size
from tradewind.api.routes.dag_runs import RunRanges
from tradewind.api.routes.ranges import Cursor, Pattern, Prefix, Ranges, conditions
from tradewind.api.shapes import Tries
from tradewind.kernel.topology import Topology
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.phrases import english, phrase
from tradewind.store.port import Reader
from tradewind.store.views import Conditions, Listing, TaskInstanceView, TriedView, TryView

router = APIRouter(prefix="/api/v2/dags/{dag_id}", tags=["Task Instance"])

_INSTANCES = "/dagRuns/{dag_run_id}/taskInstances"

ShownState = Literal[
    "removed",
    "scheduled",
    "queued",
    "running",
    "success",
    "restarting",
    "failed",
    "up_for_retry",
    "up_for_reschedule",
    "upstream_failed",
    "skipped",
    "deferred",
    "awaiting_input",
]
"""Airflow's states of a task instance. A task instance that is not scheduled yet has the state null."""


class TaskInstances(msgspec.Struct, frozen=True):
    """A page of task instances. `total_entries` is null in pages by cursor, and where counting would take too long."""

    task_instances: list[TaskInstanceView]
    total_entries: int | None
    total_entries_limit: int | None = None
    """The number at which counting stops; null here: everything is counted."""
    next_cursor: str | None = None
    previous_cursor: str | None = None


async def _task_conditions(
    dag_id_pattern: Pattern = None,
    dag_id_prefix_pattern: Prefix = None,
    run_id_pattern: Pattern = None,
    run_id_prefix_pattern: Prefix = None,
    task_display_name_pattern: Pattern = None,
    task_display_name_prefix_pattern: Prefix = None,
    pool_name_pattern: Pattern = None,
    pool_name_prefix_pattern: Prefix = None,
    queue_name_pattern: Pattern = None,
    queue_name_prefix_pattern: Prefix = None,
    operator_name_pattern: Pattern = None,
    operator_name_prefix_pattern: Prefix = None,
    rendered_map_index_pattern: Pattern = None,
    rendered_map_index_prefix_pattern: Prefix = None,
    pool: Names = None,
    queue: Names = None,
    executor: Names = None,
    operator: Names = None,
    version_number: Indexes = None,
    try_number: Indexes = None,
) -> Conditions:
    return conditions(
        {
            "dag_id": dag_id_pattern,
            "run_id": run_id_pattern,
            "task_display_name": task_display_name_pattern,
            "pool": pool_name_pattern,
            "queue": queue_name_pattern,
            "operator": operator_name_pattern,
            "rendered_map_index": rendered_map_index_pattern,
        },
        {
            "dag_id": dag_id_prefix_pattern,
            "run_id": run_id_prefix_pattern,
            "task_display_name": task_display_name_prefix_pattern,
            "pool": pool_name_prefix_pattern,
            "queue": queue_name_prefix_pattern,
            "operator": operator_name_prefix_pattern,
            "rendered_map_index": rendered_map_index_prefix_pattern,
        },
        {
            "pool": pool,
            "queue": queue,
            "executor": executor,
            "operator": operator,
            "version_number": version_number,
            "try_number": try_number,
        },
    )


Fields = Annotated[Conditions, Depends(_task_conditions)]


@router.get(_INSTANCES, responses=described(TaskInstances, also=(400, 404)))
@allow("read", "task_instance")
def list_task_instances(
    api: Api,
    dag_id: str,
    dag_run_id: str,
    ranges: Ranges,
    fields: Fields,
    task_id: Text = None,
    task_group_id: Annotated[str | None, Query(description="Tasks in this group, or in a group within it.")] = None,
    state: Names = None,
    map_index: Indexes = None,
    limit: Limit = 50,
    offset: Offset = 0,
    cursor: Cursor = None,
    order_by: Order = None,
) -> Response:
    """List the task instances of a run. `~` as the run: of all runs of the DAG; `~` for both: of all DAGs."""
    return instances_response(
        api.reader().list_task_instances(
            dag_id,
            dag_run_id,
            task_id=task_id,
            states=state or (),
            ranges=ranges,
            map_indexes=map_index or (),
            conditions=fields,
            task_group=task_group_id,
            cursor=cursor,
            limit=page_size(api, limit),
            offset=offset,
            order_by=order_by or (() if "~" in (dag_id, dag_run_id) else ("map_index",)),
        )
    )


def instances_response(found: Listing[TaskInstanceView]) -> Response:
    """A page of task instances."""
    return json_response(TaskInstances(found.rows, found.total, None, found.next_cursor, found.previous_cursor))


class InstancesBatch(RunRanges):
    """The filters of a list of task instances, in a body."""

    dag_ids: list[str] | None = None
    dag_run_ids: list[str] | None = None
    task_ids: list[str] | None = None
    state: list[ShownState | None] | None = None
    pool: list[str] | None = None
    queue: list[str] | None = None
    executor: list[str] | None = None
    page_offset: int = Field(default=0, ge=0, le=2**62)
    page_limit: int = Field(default=100, ge=0, le=2**62)
    order_by: str | None = None


@router.post(_INSTANCES + "/list", responses=described(TaskInstances, also=(400, 404, 503)))
@allow("read", "task_instance")
def list_task_instances_batch(api: Api, dag_id: str, dag_run_id: str, body: InstancesBatch) -> Response:
    """List task instances, with the filters in the body. DAG and run in the path are `~` in Airflow; here they restrict as well."""
    return instances_response(
        api.reader().list_task_instances(
            dag_id,
            dag_run_id,
            states=body.state or (),
            ranges=body.ranges(),
            conditions=conditions(
                among={
                    "dag_id": body.dag_ids,
                    "run_id": body.dag_run_ids,
                    "task_id": body.task_ids,
                    "pool": body.pool,
                    "queue": body.queue,
                    "executor": body.executor,
                }
            ),
            limit=page_size(api, body.page_limit),
            offset=body.page_offset,
            order_by=[body.order_by] if body.order_by else (),
        )
    )


@router.get(_INSTANCES + "/{task_id}", responses=described(TaskInstanceView, also=(404,)))
@allow("read", "task_instance")
def get_task_instance(api: Api, dag_id: str, dag_run_id: str, task_id: str) -> Response:
    """One task instance that is not mapped."""
    return json_response(api.reader().task_instance(dag_id, dag_run_id, task_id))


@router.get(_INSTANCES + "/{task_id}/listMapped", responses=described(TaskInstances, also=(400, 404)))
@allow("read", "task_instance")
def list_mapped(
    api: Api,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    ranges: Ranges,
    fields: Fields,
    state: Names = None,
    map_index: Indexes = None,
    limit: Limit = 50,
    offset: Offset = 0,
    order_by: Order = None,
) -> Response:
    """List the task instances of a mapped task, by map index."""
    reader = api.reader()
    found = reader.list_task_instances(
        dag_id,
        dag_run_id,
        task_id=task_id,
        states=state or (),
        ranges=ranges,
        map_indexes=map_index or (),
        conditions=fields,
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("map_index",),
    )
    rows = [one for one in found.rows if one.map_index >= 0]
    if not rows:
        _need_mapped(reader, dag_id, dag_run_id, task_id)
    return json_response(TaskInstances(rows, found.total if rows else 0))


def _need_mapped(reader: Reader, dag_id: str, dag_run_id: str, task_id: str) -> None:
    """Check, for an empty list, that the task is mapped. Raises NotFound: the task does not exist or is not mapped."""
    run = reader.need_run(dag_id, dag_run_id)
    topology = Topology(reader.definition(run.version))
    if task_id not in topology.index:
        raise NotFound(english(phrase("error_no_task", dag=dag_id, task=task_id)) + did_you_mean(task_id, topology.ids))
    if topology.index[task_id] not in topology.domain_of:
        raise NotFound(f"Task id {task_id} is not mapped")


@router.get(_INSTANCES + "/{task_id}/tries", responses=described(Tries, also=(404,)))
@allow("read", "task_instance")
def list_tries(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number = -1) -> Response:
    """List the tries of a task instance, the current one last."""
    found = _tries(api.reader(), dag_id, dag_run_id, task_id, map_index)
    return json_response(Tries(found, len(found)))


def _tries(
    reader: Reader, dag_id: str, run_id: str, task_id: str, map_index: int, *, present_state: bool = False
) -> list[TriedView]:
    """The tries. As in Airflow, a task instance that has had none stands for itself, with the try number 0."""
    tries = reader.task_tries(dag_id, run_id, task_id, map_index, present_state=present_state)
    if tries:
        return tries
    instance = reader.task_instance(dag_id, run_id, task_id, map_index)
    fields = {name: getattr(instance, name) for name in TryView.__struct_fields__}
    return [TriedView(**fields, reason=None, lost_attempts=0)]


@router.get(_INSTANCES + "/{task_id}/tries/{task_try_number}", responses=described(TriedView, also=(404,)))
@allow("read", "task_instance")
def get_try(api: Api, dag_id: str, dag_run_id: str, task_id: str, task_try_number: Number, map_index: Number = -1) -> Response:
    """One try of a task instance. As in Airflow, the latest one has the state of the task instance: `up_for_retry` instead of the
    `failed` of the list.
    """
    tries = _tries(api.reader(), dag_id, dag_run_id, task_id, map_index, present_state=True)
    for one in tries:
        if one.try_number == task_try_number:
            return json_response(one)
    known = ", ".join(str(one.try_number) for one in tries if one.try_number) or "none yet"
    raise NotFound(f"{task_id} in {dag_run_id} had no try {task_try_number}; its tries: {known}")


@router.get(_INSTANCES + "/{task_id}/{map_index}/tries", responses=described(Tries, also=(404,)))
@allow("read", "task_instance")
def list_mapped_tries(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number) -> Response:
    """List the tries of one instance of a mapped task."""
    return list_tries(api, dag_id, dag_run_id, task_id, map_index)


@router.get(_INSTANCES + "/{task_id}/{map_index}/tries/{task_try_number}", responses=described(TriedView, also=(404,)))
@allow("read", "task_instance")
def get_mapped_try(
    api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number, task_try_number: Number
) -> Response:
    """One try of one instance of a mapped task."""
    return get_try(api, dag_id, dag_run_id, task_id, task_try_number, map_index)


@router.get(_INSTANCES + "/{task_id}/{map_index}", responses=described(TaskInstanceView, also=(404,)))
@allow("read", "task_instance")
def get_mapped_task_instance(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number) -> Response:
    """One instance of a mapped task; -1 is the instance of a task that is not mapped."""
    return json_response(api.reader().task_instance(dag_id, dag_run_id, task_id, map_index))
