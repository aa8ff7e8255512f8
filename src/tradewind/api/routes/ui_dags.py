"""The list of all DAGs for the web page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from tradewind.api.auth.policy import allow
from tradewind.api.conditional import NOT_MODIFIED, changing_json
from tradewind.api.dag_filters import DagFilters, choose, page_of, state_of
from tradewind.api.dag_head import head_of, schedule_words
from tradewind.api.responses import Api, Caller, Names, described
from tradewind.api.ui_shapes import PageDag, PageDagHead, PageDags, RunBar
from tradewind.model.moments import SECOND, iso
from tradewind.model.states import RUN_STATES, RunState
from tradewind.store.port.dag_overview import DagDisplay, DagSummary, RecentRun

router = APIRouter(prefix="/api/tradewind/v1", tags=["Web page"])

BARS = 14


@router.get("/dags", responses={**described(PageDags, also=(400,)), **NOT_MODIFIED})
@allow("read", "dag")
def list_page_dags(
    request: Request,
    api: Api,
    caller: Caller,
    search: Annotated[str, Query(description="Words in the id, the display name or the description.")] = "",
    tag: Annotated[list[str] | None, Query(description="DAGs with all of these tags.")] = None,
    owner: Annotated[list[str] | None, Query(description="DAGs of any of these owners.")] = None,
    state: Annotated[Names, Query(description="State of the newest run: any of these; `none`: no runs.")] = None,
    paused: bool | None = None,
    import_error: bool | None = None,
    favourite: bool | None = None,
    order: Annotated[
        str, Query(description="`dag_id`, `name`, `next_run`, `last_run` or `state`; descending with `-`.")
    ] = "name",
    cursor: Annotated[str | None, Query(description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """All active DAGs with their last runs: filtered, ordered, in pages, with the number of DAGs that each filter would give."""
    reader = api.reader()
    dags = reader.dag_summaries()
    names = api.grid.display_names(reader, [dag.version for dag in dags])
    marked = reader.favourites(caller.name)
    filters = DagFilters(search, tag or (), owner or (), state or (), paused, import_error, favourite)
    chosen = choose(dags, names, marked, filters)
    page, following = page_of(chosen.dags, names, order, cursor, limit)
    ids = [dag.dag_id for dag in page]
    displays, runs, counts = reader.dag_displays(ids), reader.recent_runs(ids, BARS), reader.run_counts(ids)
    shown = [
        _shown(
            dag,
            names.get(dag.version, dag.dag_id),
            dag.dag_id in marked,
            displays[dag.dag_id],
            runs[dag.dag_id],
            counts[dag.dag_id],
        )
        for dag in page
        if dag.dag_id in displays  # it may have been deleted just now
    ]
    broken = reader.import_error_count()
    return changing_json(request, PageDags(shown, len(chosen.dags), len(dags), following, chosen.counts, broken))


@router.get("/dags/{dag_id}", responses={**described(PageDagHead, also=(404,)), **NOT_MODIFIED})
@allow("read", "dag")
def get_page_dag(request: Request, api: Api, caller: Caller, dag_id: str) -> Response:
    """The header of the pages of one DAG: its details, its schedule in words, and how long its runs take."""
    return changing_json(request, head_of(api.reader(), dag_id, caller.name))


def _shown(
    dag: DagSummary, name: str, is_favourite: bool, display: DagDisplay, runs: list[RecentRun], counts: dict[int, int]
) -> PageDag:
    words = schedule_words(display)
    return PageDag(
        dag_id=dag.dag_id,
        display_name=name,
        description=dag.description,
        file=display.file,
        tags=list(dag.tags),
        owners=list(dag.owners),
        is_paused=dag.is_paused,
        is_favourite=is_favourite,
        has_import_error=dag.has_import_error,
        schedule=display.schedule_summary,
        schedule_text=words.text,
        schedule_phrase=words.phrase,
        next_run=iso(dag.next_run_after),
        task_count=display.task_count,
        last_state=None if dag.last_state is None else state_of(dag),
        last_runs=[run_bar(run) for run in runs],
        queued=counts.get(RunState.QUEUED.code, 0),
        running=counts.get(RunState.RUNNING.code, 0),
        failed=counts.get(RunState.FAILED.code, 0),
    )


def run_bar(run: RecentRun) -> RunBar:
    ended = None if run.started_at is None or run.ended_at is None else (run.ended_at - run.started_at) / SECOND
    return RunBar(run.run_id, RUN_STATES[run.state].value, iso(run.run_after) or "", iso(run.started_at), ended)
