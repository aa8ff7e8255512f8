"""Clearing task instances, marking them by hand, and notes on them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tradewind.api.answers import Api, Caller, Moment, Names, Number, described, json_answer
from tradewind.api.auth.guard import Identity
from tradewind.api.auth.policy import allow
from tradewind.api.services import Services
from tradewind.api.shapes import TaskInstances
from tradewind.model.moments import to_micros
from tradewind.store.sql.store import SqlStore
from tradewind.store.views import TaskInstanceView

router = APIRouter(prefix="/api/v2/dags/{dag_id}", tags=["Task Instance"])

_ONE = "/dagRuns/{dag_run_id}/taskInstances/{task_id}"
_MARKS = ("success", "failed", "skipped")


class Clear(BaseModel):
    """What to clear: the task instances of one run (`dag_run_id`), or of the runs of a span of logical dates."""

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
            raise ValueError("end_date lies before start_date")
        return self


@router.post("/clearTaskInstances", responses=described(TaskInstances, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def clear_task_instances(api: Api, caller: Caller, dag_id: str, body: Clear) -> Response:
    """Forget results so that tasks run again; with `dry_run` (the default) only say which.

    The answer holds at most one page of task instances; `total_entries` counts all.
    """
    reader = api.reader()
    reader.need_dag(dag_id)
    if body.dag_run_id is not None:
        reader.run_details(dag_id, body.dag_run_id)
    given = body.task_ids or ()
    wish = {
        "run_id": body.dag_run_id,
        "start": None if body.start_date is None else to_micros(body.start_date),
        "end": None if body.end_date is None else to_micros(body.end_date),
        "task_ids": [task if isinstance(task, str) else task[0] for task in given if isinstance(task, str) or task[1] < 0],
        "instances": [list(task) for task in given if not isinstance(task, str) and task[1] >= 0] or None,
        "upstream": body.include_upstream,
        "downstream": body.include_downstream,
        "past": body.include_past or None,
        "future": body.include_future or None,
        "only_failed": body.only_failed,
        "only_running": body.only_running,
        "reset_dag_runs": None if body.reset_dag_runs else False,
        "not_running": body.prevent_running_task or None,
        "dry_run": body.dry_run,
        "reason": body.note or "",
        "note": body.note,
    }
    return shown(api, dag_id, edited(api, caller, "clear", dag_id, wish))


class TaskPatch(BaseModel):
    """A state by hand, a note, or both."""

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
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, body: TaskPatch, update_mask: Names = None
) -> Response:
    """What marking would touch: what is marked, and what failed below it and is judged again."""
    return _would_mark(api, caller, (dag_id, dag_run_id, task_id, None), body, update_mask)


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
    """Likewise, of one instance of a mapped task."""
    return _would_mark(api, caller, (dag_id, dag_run_id, task_id, map_index), body, update_mask)


@router.patch(_ONE, responses=described(TaskInstances, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def mark(
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, body: TaskPatch, update_mask: Names = None
) -> Response:
    """Mark a task of a run (all instances of a mapped one), or write a note on it. 409: it has that state already."""
    return _mark(api, caller, (dag_id, dag_run_id, task_id, None), body, update_mask)


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
    """Likewise, one instance of a mapped task; -1 is the one of a task that is not mapped."""
    return _mark(api, caller, (dag_id, dag_run_id, task_id, map_index), body, update_mask)


Which = tuple[str, str, str, int | None]
"""DAG, run, task, map index (None: all of a mapped task)."""


def _mark(api: Services, caller: Identity, which: Which, body: TaskPatch, update_mask: list[str] | None) -> Response:
    addressed, given = _addressed(api.reader(), which), _given(body, update_mask)
    dag_id, run_id, task_id, map_index = which
    touched = [{"run_id": run_id, "task_id": task_id, "map_index": index} for index in addressed]
    if "new_state" in given and body.new_state is not None:
        touched = edited(api, caller, "mark", dag_id, _wish(which, body))
        if not touched:
            raise HTTPException(409, f"Task id {task_id} is already in {body.new_state} state")
    if "note" in given:
        about: dict[str, Any] = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id}
        index = None if map_index is None or map_index < 0 else map_index
        api.control().call("note_task", actor=caller.name, **about, map_index=index, note=body.note or "")
    return shown(api, dag_id, touched)


def _would_mark(api: Services, caller: Identity, which: Which, body: TaskPatch, update_mask: list[str] | None) -> Response:
    addressed = _addressed(api.reader(), which)
    touched = [{"run_id": which[1], "task_id": which[2], "map_index": index} for index in addressed]
    if "new_state" in _given(body, update_mask) and body.new_state is not None:
        touched = edited(api, caller, "mark", which[0], {**_wish(which, body), "dry_run": True})
    return shown(api, which[0], touched)


def _addressed(reader: SqlStore, which: Which) -> list[int]:
    """The map indexes that are meant. Raises NotFound with the nearest."""
    dag_id, run_id, task_id, map_index = which
    if map_index is None:
        found = reader.list_task_instances(dag_id, run_id, task_id=task_id, limit=None).rows
        if any(one.map_index >= 0 for one in found):
            return [one.map_index for one in found]
    reader.task_instance(dag_id, run_id, task_id, -1 if map_index is None else map_index)
    return [-1 if map_index is None else map_index]


def _given(body: TaskPatch, update_mask: list[str] | None) -> set[str]:
    return body.model_fields_set if update_mask is None else set(update_mask)


def _wish(which: Which, body: TaskPatch) -> dict[str, Any]:
    _, run_id, task_id, map_index = which
    single = map_index is not None and map_index >= 0
    return {
        "run_id": run_id,
        "state": body.new_state,
        "task_ids": None if single else [task_id],
        "instances": [[task_id, map_index]] if single else None,
        "upstream": body.include_upstream or None,
        "downstream": body.include_downstream or None,
        "past": body.include_past or None,
        "future": body.include_future or None,
        "reason": body.note,
    }


def edited(api: Services, caller: Identity, command: str, dag_id: str, wish: dict[str, Any]) -> list[dict[str, Any]]:
    """Every bounded step of a clear or a mark; the task instances that it touched."""
    touched: list[dict[str, Any]] = []
    after = None
    while True:
        answer = api.control().call(command, actor=caller.name, dag_id=dag_id, **wish, after=after)
        touched += answer["task_instances"]
        after = answer.get("next")
        if not after:
            return touched


def shown(api: Services, dag_id: str, touched: list[dict[str, Any]]) -> Response:
    """At most one page of them, as they stand now; `total_entries` counts all."""
    reader = api.reader()
    views: list[TaskInstanceView] = [
        reader.task_instance(one.get("dag_id", dag_id), one["run_id"], one["task_id"], one.get("map_index", -1))
        for one in touched[: api.config.page_limit_max]
    ]
    return json_answer(TaskInstances(views, len(touched)))
