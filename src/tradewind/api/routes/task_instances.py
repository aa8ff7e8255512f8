"""Task instances: how they stand, their tries, and clearing them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from tradewind.api.answers import Api, Asker, Indexes, Limit, Names, Offset, Order, described, json_answer, page_size
from tradewind.api.auth.policy import allow
from tradewind.api.routes.ranges import Ranges
from tradewind.api.shapes import TaskInstances, Tries
from tradewind.kernel.topology import Topology
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import to_micros
from tradewind.store.sqlite.store import SqliteStore
from tradewind.store.views import TaskInstanceView, TryView

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
    """Task instances of a run. `~` for the run: of all its DAG's runs; `~` for both: of all."""
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
    return json_answer(TaskInstances(found.rows, found.total))


@router.get(_INSTANCES + "/{task_id}", responses=described(TaskInstanceView, also=(404,)))
@allow("read", "task_instance")
def get_task_instance(api: Api, dag_id: str, dag_run_id: str, task_id: str) -> Response:
    """One task instance that is not mapped."""
    return json_answer(api.reader().task_instance(dag_id, dag_run_id, task_id))


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
    """The task instances of a mapped task, by map index."""
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
    return json_answer(TaskInstances(rows, found.total if rows else 0))


def _need_mapped(reader: SqliteStore, dag_id: str, dag_run_id: str, task_id: str) -> None:
    """None in the list: because it was empty, or because nothing is mapped there."""
    run = reader.need_run(dag_id, dag_run_id)
    topology = Topology(reader.definition(run.version))
    if task_id not in topology.index:
        raise NotFound(f"DAG {dag_id} has no task {task_id!r}.{did_you_mean(task_id, topology.ids)}")
    if topology.index[task_id] not in topology.domain_of:
        raise NotFound(f"Task id {task_id} is not mapped")


@router.get(_INSTANCES + "/{task_id}/tries", responses=described(Tries, also=(404,)))
@allow("read", "task_instance")
def list_tries(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: int = -1) -> Response:
    """All tries of a task instance, the current one last."""
    found = api.reader().task_tries(dag_id, dag_run_id, task_id, map_index)
    return json_answer(Tries(found, len(found)))


@router.get(_INSTANCES + "/{task_id}/tries/{task_try_number}", responses=described(TryView, also=(404,)))
@allow("read", "task_instance")
def get_try(api: Api, dag_id: str, dag_run_id: str, task_id: str, task_try_number: int, map_index: int = -1) -> Response:
    """One try of a task instance."""
    tries = api.reader().task_tries(dag_id, dag_run_id, task_id, map_index)
    for one in tries:
        if one.try_number == task_try_number:
            return json_answer(one)
    known = ", ".join(str(one.try_number) for one in tries) or "none yet"
    raise NotFound(f"{task_id} in {dag_run_id} had no try {task_try_number}; its tries: {known}")


@router.get(_INSTANCES + "/{task_id}/{map_index}/tries", responses=described(Tries, also=(404,)))
@allow("read", "task_instance")
def list_mapped_tries(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: int) -> Response:
    """All tries of one instance of a mapped task."""
    return list_tries(api, dag_id, dag_run_id, task_id, map_index)


@router.get(_INSTANCES + "/{task_id}/{map_index}/tries/{task_try_number}", responses=described(TryView, also=(404,)))
@allow("read", "task_instance")
def get_mapped_try(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: int, task_try_number: int) -> Response:
    """One try of one instance of a mapped task."""
    return get_try(api, dag_id, dag_run_id, task_id, task_try_number, map_index)


@router.get(_INSTANCES + "/{task_id}/{map_index}", responses=described(TaskInstanceView, also=(404,)))
@allow("read", "task_instance")
def get_mapped_task_instance(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: int) -> Response:
    """One task instance of a mapped task; -1 is the one of a task that is not mapped."""
    return json_answer(api.reader().task_instance(dag_id, dag_run_id, task_id, map_index))


class Clear(BaseModel):
    """What to clear: the task instances of one run (`dag_run_id`), or of the runs of a span of logical dates."""

    model_config = ConfigDict(extra="forbid")

    dry_run: bool = True
    start_date: AwareDatetime | None = None
    end_date: AwareDatetime | None = None
    only_failed: bool = True
    only_running: bool = False
    reset_dag_runs: bool = True
    task_ids: list[str | tuple[str, int]] | None = Field(default=None, min_length=1)
    dag_run_id: str | None = None
    include_upstream: bool = False
    include_downstream: bool = False
    include_future: bool = False
    include_past: bool = False
    run_on_latest_version: bool | None = None
    prevent_running_task: bool = False
    note: str | None = Field(default=None, max_length=1000)

    @model_validator(mode="after")
    def _consistent(self) -> Clear:
        if self.only_failed and self.only_running:
            raise ValueError("only_failed and only_running exclude each other")
        if self.dag_run_id is not None and (self.start_date is not None or self.end_date is not None):
            raise ValueError("give either dag_run_id, or start_date and end_date")
        if self.start_date is not None and self.end_date is not None and self.end_date < self.start_date:
            raise ValueError("end_date lies before start_date")
        return self

    def unsupported(self) -> str | None:
        """The name of a wish that would be ignored."""
        for name, plain in (("include_future", False), ("include_past", False), ("reset_dag_runs", True)):
            if getattr(self, name) is not plain:
                return f"{name}={str(not plain).lower()}"
        if self.run_on_latest_version:
            return "run_on_latest_version=true"
        return "prevent_running_task=true" if self.prevent_running_task else None


@router.post("/clearTaskInstances", responses=described(TaskInstances, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def clear_task_instances(api: Api, asker: Asker, dag_id: str, body: Clear) -> Response:
    """Forget results so that tasks run again; with `dry_run` (the default) only say which.

    The answer holds at most one page of task instances; `total_entries` counts all.
    """
    wish = body.unsupported()
    if wish is not None:
        raise HTTPException(400, f"{wish} is not supported yet.")
    reader = api.reader()
    reader.need_dag(dag_id)
    if body.dag_run_id is not None:
        reader.run_details(dag_id, body.dag_run_id)
    cleared: list[dict[str, Any]] = []
    single = [list(task) for task in body.task_ids or () if not isinstance(task, str) and task[1] >= 0]
    onward: dict[str, Any] = {"instances": single} if single else {}
    while True:
        answer = api.control().call(
            "clear",
            actor=asker.name,
            dag_id=dag_id,
            run_id=body.dag_run_id,
            task_ids=[task if isinstance(task, str) else task[0] for task in body.task_ids or ()],
            start=None if body.start_date is None else to_micros(body.start_date),
            end=None if body.end_date is None else to_micros(body.end_date),
            upstream=body.include_upstream,
            downstream=body.include_downstream,
            only_failed=body.only_failed,
            only_running=body.only_running,
            dry_run=body.dry_run,
            reason=body.note or "",
            **onward,
        )
        cleared += answer["task_instances"]
        if not answer.get("next"):
            break
        onward["after"] = answer["next"]
    shown = [
        reader.task_instance(dag_id, one["run_id"], one["task_id"], one.get("map_index", -1))
        for one in cleared[: api.config.page_limit_max]
    ]
    return json_answer(TaskInstances(shown, len(cleared)))
