"""Task instances: how they stand, and their tries."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Indexes, Limit, Names, Number, Offset, Order, described, json_response, page_size
from tradewind.api.routes.ranges import Ranges
from tradewind.api.shapes import TaskInstances, Tries
from tradewind.kernel.topology import Topology
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.store.port import Reader
from tradewind.store.views import TaskInstanceView, TriedView

router = APIRouter(prefix="/api/v2/dags/{dag_id}", tags=["Task Instance"])

_INSTANCES = "/dagRuns/{dag_run_id}/taskInstances"


@router.get(_INSTANCES, responses=described(TaskInstances, also=(400, 404)))
@allow("read", "task_instance")
def list_task_instances(
    api: Api,
    dag_id: str,
    dag_run_id: str,
    ranges: Ranges,
    task_id: str | None = None,
    state: Names = None,
    map_index: Indexes = None,
    limit: Limit = 50,
    offset: Offset = 0,
    order_by: Order = None,
) -> Response:
    """List the task instances of a run. `~` as the run: of all runs of the DAG; `~` for both: of all DAGs."""
    found = api.reader().list_task_instances(
        dag_id,
        dag_run_id,
        task_id=task_id,
        states=state or (),
        ranges=ranges,
        map_indexes=map_index or (),
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or (),
    )
    return json_response(TaskInstances(found.rows, found.total))


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
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("map_index",),
    )
    rows = [one for one in found.rows if one.map_index >= 0]
    if not rows:
        _need_mapped(reader, dag_id, dag_run_id, task_id)
    return json_response(TaskInstances(rows, found.total if rows else 0))


def _need_mapped(reader: Reader, dag_id: str, dag_run_id: str, task_id: str) -> None:
    """The list is empty. Raises NotFound: the task does not exist or is not mapped."""
    run = reader.need_run(dag_id, dag_run_id)
    topology = Topology(reader.definition(run.version))
    if task_id not in topology.index:
        raise NotFound(f"DAG {dag_id} has no task {task_id!r}.{did_you_mean(task_id, topology.ids)}")
    if topology.index[task_id] not in topology.domain_of:
        raise NotFound(f"Task id {task_id} is not mapped")


@router.get(_INSTANCES + "/{task_id}/tries", responses=described(Tries, also=(404,)))
@allow("read", "task_instance")
def list_tries(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number = -1) -> Response:
    """List the tries of a task instance, the current one last."""
    found = api.reader().task_tries(dag_id, dag_run_id, task_id, map_index)
    return json_response(Tries(found, len(found)))


@router.get(_INSTANCES + "/{task_id}/tries/{task_try_number}", responses=described(TriedView, also=(404,)))
@allow("read", "task_instance")
def get_try(api: Api, dag_id: str, dag_run_id: str, task_id: str, task_try_number: Number, map_index: Number = -1) -> Response:
    """One try of a task instance."""
    tries = api.reader().task_tries(dag_id, dag_run_id, task_id, map_index)
    for one in tries:
        if one.try_number == task_try_number:
            return json_response(one)
    known = ", ".join(str(one.try_number) for one in tries) or "none yet"
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
