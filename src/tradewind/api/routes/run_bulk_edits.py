"""Changes of several DAG runs in one request, and the deletion of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.auth.guard import Identity
from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Caller, Moment, described, described_any, error_responses, json_response
from tradewind.api.routes.bulk import BulkBody, BulkResult, EntityChanges, execute, fields_to_change
from tradewind.api.routes.dag_runs import Runs
from tradewind.api.routes.ranges import conditions
from tradewind.api.routes.task_edits import TaskKey, edited, shown
from tradewind.api.routes.task_instances import TaskInstances
from tradewind.api.services import Services
from tradewind.model.errors import NotFound
from tradewind.model.moments import to_micros
from tradewind.store.port import Reader
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2/dags/{dag_id}", tags=["DagRun"])

RUNS_MAX = 1000
"""Maximum number of runs in one request."""


@router.delete("/dagRuns/{dag_run_id}", status_code=204, responses=error_responses(404, 409, 503))
@allow("edit", "run")
def delete_run(api: Api, caller: Caller, dag_id: str, dag_run_id: str) -> Response:
    """Delete a run that has ended, with its task instances, XComs and logs. 409: it has not ended."""
    api.control().call(c.DeleteRun(dag_id, dag_run_id), actor=caller.name)
    return Response(status_code=204)


class BulkRun(BaseModel):
    """A run, and what to change in it. `dag_id` is needed where the path has `~`."""

    model_config = ConfigDict(extra="forbid")

    dag_run_id: str
    dag_id: str | None = None
    state: Literal["queued", "success", "failed"] | None = None
    note: str | None = Field(default=None, max_length=1000)


def _key(dag_id: str, run: BulkRun) -> tuple[str, str]:
    """(DAG, run). Raises 400: the DAG is missing, or is not the one of the path."""
    if dag_id == "~" and run.dag_id in (None, "~"):
        raise HTTPException(400, f"With '~' in the path every run needs a dag_id; it is missing for {run.dag_run_id!r}.")
    if dag_id != "~" and run.dag_id not in (None, dag_id):
        raise HTTPException(400, f"The dag_id {run.dag_id!r} of {run.dag_run_id!r} is not the one of the path, {dag_id!r}.")
    return run.dag_id if dag_id == "~" and run.dag_id else dag_id, run.dag_run_id


@router.patch("/dagRuns", responses=described(BulkResult, also=(400, 404, 503)))
@allow("edit", "run")
def bulk_runs(api: Api, caller: Caller, dag_id: str, body: BulkBody[BulkRun]) -> Response:
    """Change or delete runs."""
    reader = api.reader()
    if dag_id != "~":
        reader.need_dag(dag_id)

    def update(run: BulkRun, mask: Sequence[str] | None) -> None:
        dag, run_id = _key(dag_id, run)
        given = fields_to_change(run, mask)
        if "state" in given and run.state is not None:
            api.control().call(c.SetRunState(dag, run_id, run.state, reason=run.note), actor=caller.name)
        if "note" in given:
            api.control().call(c.NoteRun(dag, run_id, run.note), actor=caller.name)

    def existing(keys: object) -> set[str]:
        return {key for key in list(keys) if _find(reader, key)}  # type: ignore[call-overload]

    changes: EntityChanges[BulkRun] = EntityChanges(
        key=lambda run: _joined(*_key(dag_id, run)),
        existing=existing,
        create=None,
        update=update,
        delete=lambda key: _delete(api, caller, key if "\n" in key else _joined(dag_id, key)),
        what="DAG runs",
    )
    found = execute(_with_dag(body, dag_id), changes)
    return json_response(_readable(found))


def _joined(dag_id: str, run_id: str) -> str:
    return f"{dag_id}\n{run_id}"


def _split(key: str) -> tuple[str, str]:
    dag_id, _, run_id = key.partition("\n")
    return dag_id, run_id


def _with_dag(body: BulkBody[BulkRun], dag_id: str) -> BulkBody[BulkRun]:
    """Turn runs to delete that are given as ids into entities."""
    for action in body.actions:
        if action.action == "delete":
            action.entities = [BulkRun(dag_run_id=one) if isinstance(one, str) else one for one in action.entities]
            for one in action.entities:
                assert isinstance(one, BulkRun)
                _key(dag_id, one)
    return body


def _find(reader: Reader, key: str) -> bool:
    return reader.find_run(*_split(key)) is not None


def _delete(api: Services, caller: Identity, key: str) -> None:
    api.control().call(c.DeleteRun(*_split(key)), actor=caller.name)


def _readable(found: BulkResult) -> BulkResult:
    """The keys as `dag.run`."""
    for part in (found.create, found.update, found.delete):
        if part is not None:
            part.success = [".".join(_split(key)) for key in part.success]
            part.errors = [{**one, "error": str(one["error"]).replace("\n", ".")} for one in part.errors]
    return found


class ClearRuns(BaseModel):
    """Which runs to clear: those in `dag_runs`, or all with a partition key. With `run_on_latest_version` they run the newest
    version of their bundle; null: as their DAG says.
    """

    model_config = ConfigDict(extra="forbid")

    dry_run: bool = True
    only_failed: bool = False
    only_new: bool = False
    run_on_latest_version: bool | None = None
    note: str | None = Field(default=None, max_length=1000)
    dag_runs: list[BulkRun] = Field(default_factory=list, max_length=RUNS_MAX)
    partition_key: str | None = None
    partition_date_start: Moment | None = None
    partition_date_end: Moment | None = None


@router.post("/clearDagRuns", responses=described_any(TaskInstances, Runs, also=(400, 404, 409, 503)))
@allow("edit", "run")
def clear_runs(api: Api, caller: Caller, dag_id: str, body: ClearRuns) -> Response:
    """Clear several runs, so that they run again; with `dry_run` (the default) only list their task instances."""
    if body.only_new:
        raise HTTPException(
            400, "only_new=true is not supported: clear any task of a run, and the new tasks of its DAG are added."
        )
    reader = api.reader()
    runs = list(dict.fromkeys(_key(dag_id, run) for run in body.dag_runs)) or _with_partition(reader, dag_id, body)
    for dag, run_id in runs:
        reader.run_details(dag, run_id)
    touched: list[TaskKey] = []
    for dag, run_id in runs:
        clear = c.ClearTasks(
            dag,
            run_id,
            only_failed=body.only_failed,
            dry_run=body.dry_run,
            reason=body.note,
            latest_version=body.run_on_latest_version,
        )
        touched += edited(api, caller, clear)
        if body.note is not None and not body.dry_run:
            api.control().call(c.NoteRun(dag, run_id, body.note), actor=caller.name)
    if body.dry_run:
        return shown(api, touched)
    return json_response(Runs([reader.run_details(*run) for run in runs[: api.config.page_limit_max]], len(runs)))


def _with_partition(reader: Reader, dag_id: str, body: ClearRuns | ClearPartitions) -> list[tuple[str, str]]:
    """The runs with the partition key; without a key, those whose partition date is in the window. Raises 400, NotFound."""
    if dag_id == "~":
        raise HTTPException(400, "Partition selectors require a concrete dag_id; '~' is not supported.")
    reader.need_dag(dag_id)
    window = {"partition_date_gte": body.partition_date_start, "partition_date_lte": body.partition_date_end}
    dates = {name: to_micros(moment) for name, moment in window.items() if moment is not None}
    if body.partition_key is not None:
        of_key = conditions(among={"partition_key": [body.partition_key]})
        found = reader.list_runs(dag_id, conditions=of_key, limit=RUNS_MAX)
    elif dates:
        found = reader.list_runs(dag_id, ranges=dates, limit=RUNS_MAX)
    else:
        return []
    return [(run.dag_id, run.dag_run_id) for run in found.rows]


class ClearPartitions(BaseModel):
    """Runs by partition."""

    model_config = ConfigDict(extra="forbid")

    partition_key: str | None = None
    partition_date_start: Moment | None = None
    partition_date_end: Moment | None = None
    run_id: str | None = None
    clear_task_instances: bool = False
    dry_run: bool = True


class ClearedPartitions(msgspec.Struct, frozen=True):
    """How many runs and task instances were cleared."""

    dag_runs_cleared: int
    task_instances_cleared: int
    dry_run: bool


@router.post("/clearPartitions", responses=described(ClearedPartitions, also=(400, 404, 409, 503)))
@allow("edit", "run")
def clear_partitions(api: Api, caller: Caller, dag_id: str, body: ClearPartitions) -> Response:
    """Count the runs of a partition (`dry_run`). The partition key of a run cannot be removed."""
    reader = api.reader()
    runs = _with_partition(reader, dag_id, body)
    if body.run_id is not None:
        if reader.find_run(dag_id, body.run_id) is None:
            raise NotFound(f"DAG {dag_id} has no run {body.run_id!r}.")
        runs = [run for run in runs if run[1] == body.run_id]
    if runs and not body.dry_run:
        raise HTTPException(
            400, "The partition key of a run cannot be removed; clear its task instances with POST …/clearDagRuns."
        )
    tasks: list[TaskKey] = []
    if body.clear_task_instances:
        for dag, run_id in runs:
            tasks += edited(api, caller, c.ClearTasks(dag, run_id, dry_run=True))
    return json_response(ClearedPartitions(len(runs), len(tasks), body.dry_run))
