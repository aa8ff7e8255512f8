"""Changes of DAG runs: state, note, clear."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Caller, Names, described, described_any, json_response
from tradewind.api.routes.task_edits import edited, shown
from tradewind.api.routes.task_instances import TaskInstances
from tradewind.store.views import RunView
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}", tags=["DagRun"])

_STATES = ("queued", "success", "failed")


class RunPatch(BaseModel):
    """A new state, a note, or both."""

    model_config = ConfigDict(extra="forbid")

    state: str | None = None
    note: str | None = Field(default=None, max_length=1000)

    @field_validator("state")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value not in _STATES:
            raise ValueError(f"{value!r} is not one of {', '.join(_STATES)}")
        return value


@router.patch("", responses=described(RunView, also=(400, 404, 409, 503)))
@allow("edit", "run")
def patch_run(api: Api, caller: Caller, dag_id: str, dag_run_id: str, body: RunPatch, update_mask: Names = None) -> Response:
    """Set the state of a run to success, failed or queued, and its note. With `update_mask` only the fields that it names."""
    reader = api.reader()
    reader.run_details(dag_id, dag_run_id)
    given = body.model_fields_set if update_mask is None else set(update_mask)
    if "state" in given and body.state is not None:
        api.control().call(c.SetRunState(dag_id, dag_run_id, body.state, reason=body.note), actor=caller.name)
    if "note" in given:
        api.control().call(c.NoteRun(dag_id, dag_run_id, body.note), actor=caller.name)
    return json_response(reader.run_details(dag_id, dag_run_id))


class ClearRun(BaseModel):
    """How to clear a run. With `run_on_latest_version` it runs the newest version of its bundle; null: as its DAG says."""

    model_config = ConfigDict(extra="forbid")

    dry_run: bool = True
    only_failed: bool = False
    only_new: bool = False
    run_on_latest_version: bool | None = None
    note: str | None = Field(default=None, max_length=1000)


@router.post("/clear", responses=described_any(RunView, TaskInstances, also=(400, 404, 409, 503)))
@allow("edit", "run")
def clear_run(api: Api, caller: Caller, dag_id: str, dag_run_id: str, body: ClearRun) -> Response:
    """Clear a run, so that it runs again. With `dry_run` (the default): list the task instances that would be cleared."""
    if body.only_new:
        raise HTTPException(
            400, "only_new=true is not supported: clear any task of the run, and the new tasks of its DAG are added."
        )
    reader = api.reader()
    reader.run_details(dag_id, dag_run_id)
    clear = c.ClearTasks(
        dag_id,
        dag_run_id,
        only_failed=body.only_failed,
        dry_run=body.dry_run,
        reason=body.note,
        latest_version=body.run_on_latest_version,
    )
    touched = edited(api, caller, clear)
    if body.dry_run:
        return shown(api, touched)
    if body.note is not None:
        api.control().call(c.NoteRun(dag_id, dag_run_id, body.note), actor=caller.name)
    return json_response(reader.run_details(dag_id, dag_run_id))
