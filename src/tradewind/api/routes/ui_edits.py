"""Clear, mark and backfill with a preview: an action changes exactly what its preview has shown, or nothing.

A preview is a dry run. Its fingerprint identifies what would change. The request for the action contains the fingerprint. The
scheduler compares it with what the action would change now, in the same transaction.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.auth.guard import Identity
from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Caller, Moment, Number, described, json_response
from tradewind.api.services import Services
from tradewind.api.ui_shapes import BackfillPreview, BackfillRunPlan, ChangedTask, ChangePreview, TaskCount
from tradewind.model.moments import to_micros
from tradewind.model.phrases import english, phrase
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/tradewind/v1/dags/{dag_id}", tags=["Web page"])

SHOWN_MAX = 500
TASKS_MAX = 100

Fingerprint = Annotated[str, Field(min_length=1, max_length=100_000, description="`fingerprint` of the preview.")]
TaskId = Annotated[str, Field(min_length=1, max_length=1000)]


class Selection(BaseModel):
    """Which task instances to change: those of some tasks in one run, and those that the options add."""

    model_config = ConfigDict(extra="forbid")

    run_id: str = Field(min_length=1, max_length=1000)
    tasks: list[TaskId | tuple[TaskId, Number]] = Field(
        default_factory=list, max_length=10_000, description="Task ids, or [task id, map index]. Empty: all tasks."
    )
    past: bool = Field(default=False, description="Also in all runs before it.")
    future: bool = Field(default=False, description="Also in all runs after it.")
    upstream: bool = False
    downstream: bool = False
    note: str | None = Field(default=None, max_length=1000)


class ClearWanted(Selection):
    """What to clear."""

    only_failed: bool = False
    only_running: bool = False
    queue_run: bool = Field(default=True, description="Queue runs that have ended again. False: nothing runs before that.")
    run_on_latest_version: bool | None = Field(
        default=None, description="Continue with the newest version of the bundle. Null: as the DAG says."
    )


class ClearConfirmed(ClearWanted):
    """A clear, with the fingerprint of its preview."""

    fingerprint: Fingerprint


class MarkWanted(Selection):
    """What to mark."""

    state: Literal["success", "failed", "skipped"]


class MarkConfirmed(MarkWanted):
    """A mark, with the fingerprint of its preview."""

    fingerprint: Fingerprint


@router.post("/clear/preview", responses=described(ChangePreview, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def preview_clear(api: Api, caller: Caller, dag_id: str, body: ClearWanted) -> Response:
    """Show what a clear would change, without changing anything."""
    return json_response(_preview(_steps(api, caller, _clear(dag_id, body))))


@router.post("/clear", responses=described(ChangePreview, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def clear(api: Api, caller: Caller, dag_id: str, body: ClearConfirmed) -> Response:
    """Clear the task instances that the preview has shown, so that they run again. 409: the clear would now change other task
    instances.
    """
    return json_response(_edit(api, caller, _clear(dag_id, body), body.fingerprint))


@router.post("/mark/preview", responses=described(ChangePreview, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def preview_mark(api: Api, caller: Caller, dag_id: str, body: MarkWanted) -> Response:
    """Show what a mark would change, without changing anything: the marked task instances, and failed downstream ones that run
    again.
    """
    return json_response(_preview(_steps(api, caller, _mark(dag_id, body))))


@router.post("/mark", responses=described(ChangePreview, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def mark(api: Api, caller: Caller, dag_id: str, body: MarkConfirmed) -> Response:
    """Set the states that the preview has shown. 409: the mark would now change other task instances."""
    return json_response(_edit(api, caller, _mark(dag_id, body), body.fingerprint))


def _clear(dag_id: str, body: ClearWanted) -> c.ClearTasks:
    if body.only_failed and body.only_running:
        raise HTTPException(400, "only_failed and only_running exclude each other")
    return c.ClearTasks(
        dag_id,
        body.run_id,
        past=body.past,
        future=body.future,
        task_ids=_task_ids(body),
        instances=_instances(body),
        upstream=body.upstream,
        downstream=body.downstream,
        only_failed=body.only_failed,
        only_running=body.only_running,
        reset_dag_runs=body.queue_run,
        latest_version=body.run_on_latest_version,
        dry_run=True,
        reason=body.note,
        note=body.note,
    )


def _mark(dag_id: str, body: MarkWanted) -> c.MarkTasks:
    return c.MarkTasks(
        dag_id=dag_id,
        run_id=body.run_id,
        past=body.past,
        future=body.future,
        task_ids=_task_ids(body),
        instances=_instances(body),
        upstream=body.upstream,
        downstream=body.downstream,
        state=body.state,
        dry_run=True,
        reason=body.note,
        note=body.note,
    )


def _task_ids(body: Selection) -> list[str]:
    return [one if isinstance(one, str) else one[0] for one in body.tasks if isinstance(one, str) or one[1] < 0]


def _instances(body: Selection) -> list[tuple[str, int]]:
    return [one for one in body.tasks if not isinstance(one, str) and one[1] >= 0]


def _steps(api: Services, caller: Identity, command: c.ClearTasks | c.MarkTasks) -> list[c.EditTasksResult]:
    control = api.control()
    return list(c.edit_in_steps(command, lambda step: control.call(step, actor=caller.name)))


def _edit(api: Services, caller: Identity, command: c.ClearTasks | c.MarkTasks, fingerprint: str) -> ChangePreview:
    """Execute the steps of the preview, each with its part of the fingerprint."""
    control = api.control()
    done: list[c.EditTasksResult] = []
    after: tuple[int, int] | None = None
    for expected in fingerprint.split("."):
        step = msgspec.structs.replace(command, dry_run=False, after=after, expected=expected)
        result = control.call(step, actor=caller.name)
        done.append(result)
        after = result.next
        if after is None:
            break
    if after is not None:
        raise HTTPException(409, english(phrase("error_more_runs")))
    return _preview(done)


def _preview(steps: Sequence[c.EditTasksResult]) -> ChangePreview:
    touched = [one for step in steps for one in step.task_instances]
    by_task = Counter((one.dag_id, one.task_id) for one in touched)
    return ChangePreview(
        total=len(touched),
        runs=len({(one.dag_id, one.run_id) for one in touched}),
        by_state=dict(Counter(one.state for one in touched)),
        by_task=[TaskCount(dag_id, task_id, count) for (dag_id, task_id), count in by_task.most_common(TASKS_MAX)],
        task_instances=[
            ChangedTask(one.dag_id, one.run_id, one.task_id, one.map_index, one.state, one.to) for one in touched[:SHOWN_MAX]
        ],
        fingerprint=".".join(c.fingerprint(step.task_instances) for step in steps),
        dry_run=all(step.dry_run for step in steps),
    )


# --- backfills -----------------------------------------------------------------------------------------------------------


class BackfillWanted(BaseModel):
    """Which runs to create. Both dates are included."""

    model_config = ConfigDict(extra="forbid")

    from_date: Moment
    to_date: Moment
    run_backwards: bool = False
    conf: dict[str, object] = Field(default_factory=dict)
    reprocess_behavior: Literal["none", "failed", "completed"] = "none"
    max_active_runs: int = Field(default=10, ge=1, le=2**31)


class BackfillConfirmed(BackfillWanted):
    """A backfill, with the fingerprint of its preview."""

    fingerprint: Fingerprint


@router.post("/backfill/preview", responses=described(BackfillPreview, also=(400, 404, 409, 503)))
@allow("create", "run")
def preview_backfill(api: Api, caller: Caller, dag_id: str, body: BackfillWanted) -> Response:
    """Show which runs a backfill would create, run again or skip, without creating anything."""
    return json_response(_plan(api, caller, dag_id, body))


@router.post("/backfill", responses=described(BackfillPreview, also=(400, 404, 409, 503)))
@allow("create", "run")
def create_backfill(api: Api, caller: Caller, dag_id: str, body: BackfillConfirmed) -> Response:
    """Create the backfill that the preview has shown. 409: its plan has changed since.

    A run that is created between this comparison and the begin of the backfill is skipped by the backfill, or run again, as its
    `reprocess_behavior` says.
    """
    plan = _plan(api, caller, dag_id, body)
    if plan.fingerprint != body.fingerprint:
        raise HTTPException(409, english(phrase("error_plan", count=plan.total)))
    made = api.control().call(_backfill(dag_id, body, dry_run=False), actor=caller.name).backfill
    return json_response(msgspec.structs.replace(plan, backfill_id=None if made is None else made.id))


def _plan(api: Services, caller: Identity, dag_id: str, body: BackfillWanted) -> BackfillPreview:
    api.reader().need_dag(dag_id)
    plan = api.control().call(_backfill(dag_id, body, dry_run=True), actor=caller.name).plan
    digest = hashlib.blake2b(
        msgspec.json.encode([(one.logical_date, one.partition_key, one.outcome) for one in plan]), digest_size=8
    )
    return BackfillPreview(
        total=len(plan),
        by_outcome=dict(Counter(one.outcome for one in plan)),
        runs=[
            BackfillRunPlan(one.logical_date or one.partition_date or "", one.run_id, one.outcome, one.partition_key)
            for one in plan[:SHOWN_MAX]
        ],
        fingerprint=digest.hexdigest(),
        backfill_id=None,
    )


def _backfill(dag_id: str, body: BackfillWanted, *, dry_run: bool) -> c.CreateBackfill:
    return c.CreateBackfill(
        dag_id,
        to_micros(body.from_date),
        to_micros(body.to_date),
        conf=body.conf,
        max_active_runs=body.max_active_runs,
        run_backwards=body.run_backwards,
        reprocess_behavior=body.reprocess_behavior,
        dry_run=dry_run,
    )
