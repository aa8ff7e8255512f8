"""Changes of task instances: clear, mark, note."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tradewind.api.auth.guard import Identity
from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Caller, Moment, Names, Number, described, json_response
from tradewind.api.routes.task_instances import TaskInstances
from tradewind.api.services import Services
from tradewind.model.moments import to_micros
from tradewind.store.port import Reader
from tradewind.store.views import TaskInstanceView
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2/dags/{dag_id}", tags=["Task Instance"])

_ONE = "/dagRuns/{dag_run_id}/taskInstances/{task_id}"
_MARKS = ("success", "failed", "skipped")


class Clear(BaseModel):
    """What to clear: task instances of one run (`dag_run_id`), or of the runs between two logical dates. With
    `run_on_latest_version` the runs continue with the newest version of their bundle; null: as their DAG says.
    """

    model_config = ConfigDict(extra="forbid")

    dry_run: bool = True
    start_date: Moment | None = None
    end_date: Moment | None = None
    only_failed: bool = True
    only_running: bool = False
    reset_dag_runs: bool = True
    task_ids: list[str | tuple[str, Number]] | None = Field(default=None, min_length=1)
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
            raise ValueError("end_date is before start_date")
        return self


@router.post("/clearTaskInstances", responses=described(TaskInstances, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def clear_task_instances(api: Api, caller: Caller, dag_id: str, body: Clear) -> Response:
    """Clear task instances, so that they run again; with `dry_run` (the default) only list them.

    The response has at most one page of task instances; `total_entries` counts all. Task ids that the DAG does not have are
    ignored, as in Airflow.
    """
    reader = api.reader()
    reader.need_dag(dag_id)
    if body.dag_run_id is not None:
        reader.run_details(dag_id, body.dag_run_id)
    given = _known_tasks(reader, dag_id, body)
    if body.task_ids is not None and not given:
        return shown(api, [])
    clear = c.ClearTasks(
        dag_id,
        body.dag_run_id,
        past=body.include_past,
        future=body.include_future,
        start=None if body.start_date is None else to_micros(body.start_date),
        end=None if body.end_date is None else to_micros(body.end_date),
        task_ids=[task if isinstance(task, str) else task[0] for task in given if isinstance(task, str) or task[1] < 0],
        instances=[task for task in given if not isinstance(task, str) and task[1] >= 0],
        upstream=body.include_upstream,
        downstream=body.include_downstream,
        only_failed=body.only_failed,
        only_running=body.only_running,
        reset_dag_runs=body.reset_dag_runs,
        not_running=body.prevent_running_task,
        latest_version=body.run_on_latest_version,
        dry_run=body.dry_run,
        reason=body.note,
        note=body.note,
    )
    return shown(api, edited(api, caller, clear))


def _known_tasks(reader: Reader, dag_id: str, body: Clear) -> list[str | tuple[str, int]]:
    """The tasks to clear that the DAG has: in the version of the run if one is given, otherwise in the current one."""
    if not body.task_ids:
        return []
    if body.dag_run_id is None:
        definition = reader.current_definition(dag_id)
    else:
        definition = reader.definition(reader.need_run(dag_id, body.dag_run_id).version)
    known = {task.task_id for task in definition.tasks}
    return [task for task in body.task_ids if (task if isinstance(task, str) else task[0]) in known]


class TaskPatch(BaseModel):
    """A new state, a note, or both."""

    model_config = ConfigDict(extra="forbid")

    new_state: str | None = None
    note: str | None = Field(default=None, max_length=1000)
    include_upstream: bool = False
    include_downstream: bool = False
    include_future: bool = False
    include_past: bool = False

    @field_validator("new_state")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value.lower() not in _MARKS:
            raise ValueError(f"{value!r} is not one of {', '.join(_MARKS)}")
        return None if value is None else value.lower()


@router.patch(_ONE + "/dry_run", responses=described(TaskInstances, also=(400, 404, 503)))
@allow("edit", "task_instance")
def mark_dry_run(
    api: Api,
    caller: Caller,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    body: TaskPatch,
    update_mask: Names = None,
    map_index: Number | None = None,
) -> Response:
    """List the task instances that marking would change: the marked ones, and failed downstream ones that are evaluated again."""
    return _would_mark(api, caller, (dag_id, dag_run_id, task_id, map_index), body, update_mask)


@router.patch(_ONE + "/{map_index}/dry_run", responses=described(TaskInstances, also=(400, 404, 503)))
@allow("edit", "task_instance")
def mark_mapped_dry_run(
    api: Api,
    caller: Caller,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    map_index: Number,
    body: TaskPatch,
    update_mask: Names = None,
) -> Response:
    """The same for one instance of a mapped task."""
    return _would_mark(api, caller, (dag_id, dag_run_id, task_id, map_index), body, update_mask)


@router.patch(_ONE, responses=described(TaskInstances, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def mark(
    api: Api,
    caller: Caller,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    body: TaskPatch,
    update_mask: Names = None,
    map_index: Number | None = None,
) -> Response:
    """Set the state of a task in a run (of all instances of a mapped task), or its note. 409: it has that state already."""
    return _mark(api, caller, (dag_id, dag_run_id, task_id, map_index), body, update_mask)


@router.patch(_ONE + "/{map_index}", responses=described(TaskInstances, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def mark_mapped(
    api: Api,
    caller: Caller,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    map_index: Number,
    body: TaskPatch,
    update_mask: Names = None,
) -> Response:
    """The same for one instance of a mapped task; -1 is the instance of a task that is not mapped."""
    return _mark(api, caller, (dag_id, dag_run_id, task_id, map_index), body, update_mask)


Which = tuple[str, str, str, int | None]
"""DAG, run, task, map index (None: all of a mapped task)."""
TaskKey = tuple[str, str, str, int]
"""DAG, run, task, map index of one task instance."""


def _mark(api: Services, caller: Identity, which: Which, body: TaskPatch, update_mask: list[str] | None) -> Response:
    touched, given = _addressed(api.reader(), which), _given(body, update_mask)
    dag_id, run_id, task_id, map_index = which
    if "new_state" in given and body.new_state is not None:
        touched = edited(api, caller, _command(which, body, body.new_state))
        if not touched:
            raise HTTPException(409, f"Task id {task_id} is already in {body.new_state} state")
    if "note" in given:
        index = None if map_index is None or map_index < 0 else map_index
        api.control().call(c.NoteTask(dag_id, run_id, task_id, index, body.note), actor=caller.name)
    return shown(api, touched)


def _would_mark(api: Services, caller: Identity, which: Which, body: TaskPatch, update_mask: list[str] | None) -> Response:
    touched = _addressed(api.reader(), which)
    if "new_state" in _given(body, update_mask) and body.new_state is not None:
        touched = edited(api, caller, _command(which, body, body.new_state, dry_run=True))
    return shown(api, touched)


def _addressed(reader: Reader, which: Which) -> list[TaskKey]:
    """The task instances that the path names. Raises NotFound with the nearest."""
    dag_id, run_id, task_id, map_index = which
    if map_index is None:
        found = reader.list_task_instances(dag_id, run_id, task_id=task_id, limit=None).rows
        if any(one.map_index >= 0 for one in found):
            return [(dag_id, run_id, task_id, one.map_index) for one in found]
    index = -1 if map_index is None else map_index
    reader.task_instance(dag_id, run_id, task_id, index)
    return [(dag_id, run_id, task_id, index)]


def _given(body: TaskPatch, update_mask: list[str] | None) -> set[str]:
    return body.model_fields_set if update_mask is None else set(update_mask)


def _command(which: Which, body: TaskPatch, state: str, *, dry_run: bool = False) -> c.MarkTasks:
    dag_id, run_id, task_id, map_index = which
    single = [(task_id, map_index)] if map_index is not None and map_index >= 0 else []
    return c.MarkTasks(
        dag_id=dag_id,
        run_id=run_id,
        past=body.include_past,
        future=body.include_future,
        task_ids=[] if single else [task_id],
        instances=single,
        upstream=body.include_upstream,
        downstream=body.include_downstream,
        state=state,
        dry_run=dry_run,
        reason=body.note,
    )


def edited(api: Services, caller: Identity, command: c.ClearTasks | c.MarkTasks) -> list[TaskKey]:
    """The task instances that all steps of a clear or a mark change."""
    control = api.control()
    steps = c.edit_in_steps(command, lambda step: control.call(step, actor=caller.name))
    return [(one.dag_id, one.run_id, one.task_id, one.map_index) for step in steps for one in step.task_instances]


def shown(api: Services, touched: list[TaskKey]) -> Response:
    """At most one page of the task instances, in their present state; `total_entries` counts all."""
    reader = api.reader()
    views: list[TaskInstanceView] = [reader.task_instance(*one) for one in touched[: api.config.page_limit_max]]
    return json_response(TaskInstances(views, len(touched)))
