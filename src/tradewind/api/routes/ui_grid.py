"""The grid and the graph of a DAG: its structure, and the states of its tasks in a window of runs."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response

from tradewind.api.auth.policy import allow
from tradewind.api.conditional import NOT_MODIFIED, etag_of, is_known, kept_json, not_modified, packed_json
from tradewind.api.dag_head import head_of
from tradewind.api.grid_cells import STATE_NAMES, known_revisions, shown_run, token_of
from tradewind.api.responses import Api, Caller, described
from tradewind.api.ui_shapes import Cells, Structure
from tradewind.model.errors import NotFound
from tradewind.model.phrases import english, phrase

router = APIRouter(prefix="/api/tradewind/v1/dags/{dag_id}", tags=["Web page"])

FORMAT = 1
"""Part of the ETags. Increase it when the format of the responses changes."""
RUNS_MAX = 366

Version = Annotated[int | None, Query(ge=1, le=2**31, description="Number of the version; the latest by default.")]
Row = Annotated[int, Query(ge=0, le=2**31)]

_encode = msgspec.json.Encoder().encode


@router.get("/structure", responses={**described(Structure, also=(404,)), **NOT_MODIFIED})
@allow("read", "dag")
def get_structure(request: Request, api: Api, dag_id: str, version: Version = None) -> Response:
    """The rows of a DAG's grid in their order, and the edges of its graph, as columns.

    Row i is the i-th entry of `ids`, `parents`, `kinds`, `ends`, `operator`, … Groups come before their members. The response
    belongs to one version of the DAG and never changes; its ETag names the version.
    """
    reader = api.reader()
    which, _ = reader.grid_version(dag_id, version)
    etag = etag_of("structure", FORMAT, which)
    if is_known(request, etag):
        return not_modified(etag)
    shape = api.grid.shapes(reader, [which]).get(which)
    if shape is None:
        raise NotFound(english(phrase("error_new_version", dag=dag_id)))
    return packed_json(request, shape.packed, etag)


@router.get("/cells", responses={**described(Cells, also=(404,)), **NOT_MODIFIED})
@allow("read", "task_instance")
def get_cells(
    request: Request,
    api: Api,
    caller: Caller,
    dag_id: str,
    runs: Annotated[int, Query(ge=1, le=RUNS_MAX, description="How many runs.")] = 25,
    before: Annotated[str | None, Query(description="A run id: only older runs.")] = None,
    tasks_from: Row = 0,
    tasks_to: Annotated[int | None, Query(ge=0, le=2**31, description="The window ends before this row.")] = None,
    version: Version = None,
    since: Annotated[str | None, Query(description="`token` of the last response: only runs that have changed since.")] = None,
    head: Annotated[bool, Query(description="Also return the header of the pages of the DAG.")] = False,
) -> Response:
    """The states of all tasks in the newest runs, as stretches of equal states in the order of `structure`.

    `order` lists the runs of the window, the oldest first. With `since`, `runs` has only those that are new or have changed; the
    client keeps the others, and drops runs that `order` does not name. If the DAG has a new version since, all runs are sent.
    """
    reader = api.reader()
    structure, number = reader.grid_version(dag_id, version)
    found = reader.grid_runs(dag_id, runs + 1, before)
    older = len(found) > runs
    chosen = found[:runs][::-1]
    token = token_of(structure, chosen)
    top = head_of(reader, dag_id, caller.name) if head else None
    etag = etag_of("cells", FORMAT, token, older, tasks_from, tasks_to, since, _encode(top))
    if is_known(request, etag):
        return not_modified(etag)
    shape = api.grid.shapes(reader, [structure]).get(structure)
    if shape is None:
        raise NotFound(english(phrase("error_new_version", dag=dag_id)))
    known = known_revisions(since or "", structure)
    changed = [run for run in chosen if known.get(run.id) != run.revision]
    columns = api.grid.columns(reader, shape, changed)
    end = shape.size if tasks_to is None else min(tasks_to, shape.size)
    start = min(tasks_from, end)
    body = Cells(
        dag_id=dag_id,
        version=number,
        rows=shape.size,
        rows_from=start,
        rows_to=end,
        states=STATE_NAMES,
        order=[run.id for run in chosen],
        runs=[shown_run(run, columns[run.id], start, end) for run in changed],
        older=older,
        token=token,
        head=top,
    )
    return kept_json(request, _encode(body), etag)
