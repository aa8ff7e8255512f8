"""Changes of several task instances in one request: in bulk, or of a task group. And the deletion of one task instance."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, HTTPException, Response
from pydantic import Field

from tradewind.api.auth.guard import Identity
from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Caller, Names, Number, described, error_responses, json_response
from tradewind.api.routes.bulk import BulkBody, BulkResult, EntityChanges, execute, fields_to_change
from tradewind.api.routes.task_edits import TaskKey, TaskPatch, edited, shown
from tradewind.api.routes.task_instances import TaskInstances
from tradewind.api.services import Services
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.store.port import Reader
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}", tags=["Task Instance"])

_GROUP = "/taskGroupInstances/{group_id:path}"


class BulkTask(TaskPatch):
    """A task instance, and what to change in it. DAG and run are needed where the path has `~`."""

    task_id: str
    map_index: Number | None = Field(default=None, description="Null: all instances of a mapped task.")
    dag_id: str | None = None
    dag_run_id: str | None = None


Key = tuple[str, str, str, int | None]


@router.patch("/taskInstances", responses=described(BulkResult, also=(400, 404, 503)))
@allow("edit", "task_instance")
def bulk_task_instances(api: Api, caller: Caller, dag_id: str, dag_run_id: str, body: BulkBody[BulkTask]) -> Response:
    """Set states and notes of task instances, or delete task instances of ended runs."""
    reader, keys = api.reader(), dict[str, Key]()

    def key_of(task: BulkTask) -> str:
        key = _key(dag_id, dag_run_id, task)
        text = ".".join([*key[:3]]) + ("" if key[3] is None else f"[{key[3]}]")
        keys[text] = key
        return text

    changes: EntityChanges[BulkTask] = EntityChanges(
        key=key_of,
        existing=lambda texts: {text for text in texts if _instances(reader, keys[text])},
        create=None,
        update=lambda task, mask: _update(api, caller, keys[key_of(task)], task, mask),
        delete=lambda text: _delete(api, caller, reader, keys[text]),
        what="task instances",
    )
    for action in body.actions:
        if action.action == "delete":
            action.entities = [BulkTask(task_id=one) if isinstance(one, str) else one for one in action.entities]
    return json_response(execute(body, changes))


def _key(dag_id: str, run_id: str, task: BulkTask) -> Key:
    """Raises 400: DAG or run is missing, or is not the one of the path."""
    parts = []
    for name, in_path, given in (("dag_id", dag_id, task.dag_id), ("dag_run_id", run_id, task.dag_run_id)):
        if in_path == "~" and given in (None, "~"):
            raise HTTPException(400, f"With '~' in the path every entity needs a {name}; it is missing for {task.task_id!r}.")
        if in_path != "~" and given not in (None, in_path):
            raise HTTPException(400, f"The {name} {given!r} of {task.task_id!r} is not the one of the path, {in_path!r}.")
        parts.append(given if in_path == "~" and given is not None else in_path)
    return parts[0], parts[1], task.task_id, task.map_index


def _instances(reader: Reader, key: Key) -> list[TaskKey]:
    """The task instances of a key; empty: there are none."""
    dag_id, run_id, task_id, map_index = key
    try:
        indexes = () if map_index is None else (map_index,)
        rows = reader.list_task_instances(dag_id, run_id, task_id=task_id, map_indexes=indexes, limit=None).rows
    except NotFound:
        return []
    return [(dag_id, run_id, task_id, one.map_index) for one in rows]


def _update(api: Services, caller: Identity, key: Key, task: TaskPatch, mask: Sequence[str] | None) -> None:
    dag_id, run_id, task_id, map_index = key
    given = fields_to_change(task, mask)
    if "new_state" in given and task.new_state is not None:
        edited(api, caller, _mark(dag_id, run_id, [task_id], map_index, task, dry_run=False))
    if "note" in given:
        api.control().call(c.NoteTask(dag_id, run_id, task_id, map_index, task.note), actor=caller.name)


def _delete(api: Services, caller: Identity, reader: Reader, key: Key) -> None:
    for dag_id, run_id, task_id, map_index in _instances(reader, key):
        api.control().call(c.DeleteTaskInstance(dag_id, run_id, task_id, map_index), actor=caller.name)


def _mark(dag_id: str, run_id: str, tasks: list[str], map_index: int | None, body: TaskPatch, *, dry_run: bool) -> c.MarkTasks:
    single = [(task, map_index) for task in tasks] if map_index is not None and map_index >= 0 else []
    return c.MarkTasks(
        dag_id=dag_id,
        run_id=run_id,
        past=body.include_past,
        future=body.include_future,
        task_ids=[] if single else tasks,
        instances=single,
        upstream=body.include_upstream,
        downstream=body.include_downstream,
        state=body.new_state or "",
        dry_run=dry_run,
        reason=body.note,
    )


@router.delete("/taskInstances/{task_id}", responses={
    200: {"description": "It is deleted.", "content": {"application/json": {"schema": {"type": "null"}}}},
    **error_responses(404, 409, 503),
})  # fmt: skip
@allow("edit", "task_instance")
def delete_task_instance(
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, map_index: Number = -1
) -> Response:
    """Take a task instance out of a run that has ended: it becomes `removed`, and its XComs are deleted. 409: the run has not
    ended.
    """
    api.control().call(c.DeleteTaskInstance(dag_id, dag_run_id, task_id, map_index), actor=caller.name)
    return json_response(None)


@router.patch(_GROUP + "/dry_run", responses=described(TaskInstances, also=(400, 404, 503)))
@allow("edit", "task_instance")
def mark_group_dry_run(api: Api, caller: Caller, dag_id: str, dag_run_id: str, group_id: str, body: TaskPatch) -> Response:
    """List the task instances that marking the tasks of a group would change."""
    tasks = _tasks_of(api.reader(), dag_id, dag_run_id, group_id)
    if body.new_state is None:
        return shown(api, _all_of(api.reader(), dag_id, dag_run_id, tasks))
    return shown(api, edited(api, caller, _mark(dag_id, dag_run_id, tasks, None, body, dry_run=True)))


@router.patch(_GROUP, responses=described(TaskInstances, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def mark_group(
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, group_id: str, body: TaskPatch, update_mask: Names = None
) -> Response:
    """Set the state of all tasks of a group, with the groups in it, or their note. 409: all tasks have that state already."""
    reader = api.reader()
    tasks = _tasks_of(reader, dag_id, dag_run_id, group_id)
    touched = _all_of(reader, dag_id, dag_run_id, tasks)
    given = body.model_fields_set if update_mask is None else set(update_mask)
    if "new_state" in given and body.new_state is not None:
        touched = edited(api, caller, _mark(dag_id, dag_run_id, tasks, None, body, dry_run=False))
        if not touched:
            raise HTTPException(409, f"All tasks of the group {group_id} are already in {body.new_state} state")
    if "note" in given:
        for task_id in {key[2] for key in touched}:
            api.control().call(c.NoteTask(dag_id, dag_run_id, task_id, None, body.note), actor=caller.name)
    return shown(api, touched)


def _tasks_of(reader: Reader, dag_id: str, run_id: str, group_id: str) -> list[str]:
    """The tasks of a group, and of the groups in it. Raises NotFound with the nearest group."""
    reader.need_dag(dag_id)
    definition = reader.definition(reader.need_run(dag_id, run_id).version)
    parents = {group.group_id: group.parent for group in definition.groups}
    if group_id not in parents:
        raise NotFound(f"DAG {dag_id} has no task group {group_id!r}.{did_you_mean(group_id, parents)}")

    def is_inside(group: str | None) -> bool:
        while group is not None:
            if group == group_id:
                return True
            group = parents.get(group)
        return False

    return [task.task_id for task in definition.tasks if is_inside(task.group)]


def _all_of(reader: Reader, dag_id: str, run_id: str, tasks: list[str]) -> list[TaskKey]:
    wanted = set(tasks)
    rows = reader.list_task_instances(dag_id, run_id, limit=None).rows
    return [(dag_id, run_id, one.task_id, one.map_index) for one in rows if one.task_id in wanted]
