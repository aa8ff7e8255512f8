"""The pages of a run and of a task instance."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response

from tradewind.api.auth.policy import allow
from tradewind.api.conditional import NOT_MODIFIED, changing_json
from tradewind.api.grid_structure import GridShape
from tradewind.api.responses import Api, Number, described, json_response
from tradewind.api.routes.links import extra_links
from tradewind.api.run_timeline import MILLISECOND, PHASES, STATE_NAMES, critical_path, row_times, spans, usual_times
from tradewind.api.services import Services
from tradewind.api.triage import HISTORY_MAX, first_line, usual
from tradewind.api.ui_shapes import Gantt, GanttBar, PageRun, PageTask, XComKeyView
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import RunRow
from tradewind.model.states import TaskState
from tradewind.store.port import Reader
from tradewind.store.port.run_page import InstanceSummary

router = APIRouter(prefix="/api/tradewind/v1/dags/{dag_id}/runs/{run_id}", tags=["Web page"])

BARS_MAX = 2_000
"""Maximum number of task instances in a Gantt chart."""
USUAL_TASKS_MAX = 5_000
"""The usual times of tasks are not computed for DAGs with more tasks than this."""
USUAL_RUNS = 5

_SUCCESS = english(phrase("run_reason_success"))
"""The stored reason of a usual success. The page shows only other reasons."""

Row = Annotated[int, Query(ge=0, le=2**31)]


@router.get("", responses={**described(PageRun, also=(404,)), **NOT_MODIFIED})
@allow("read", "run")
def get_page_run(
    request: Request, api: Api, dag_id: str, run_id: str, structure: bool = False, known_version: Number | None = None
) -> Response:
    """A run, and the state, start, duration and tries of each of its tasks, in the rows of `structure` of its version.

    With `structure`, the response contains these rows too, unless the run has the version `known_version`.
    """
    reader = api.reader()
    row = reader.need_run(dag_id, run_id)
    shape = _shape(api, reader, row)
    instances = reader.instance_summaries(row.id)
    times = row_times(shape, row.started_at or row.queued_at, instances)
    totals = [0] * len(STATE_NAMES)
    for one in instances:
        totals[one.state] += 1
    former = reader.former_runs(dag_id, row.run_after, HISTORY_MAX)
    body = PageRun(
        run=reader.run_details(dag_id, run_id),
        version=shape.number,
        structure=shape.structure if structure and shape.number != known_version else None,
        reason=None if row.reason == _SUCCESS else first_line(row.reason),
        usual=usual([one.ended_at - one.started_at for one in former]),
        states=STATE_NAMES,
        totals=totals,
        state=times.states,
        start_ms=times.starts,
        duration_ms=times.durations,
        tries=times.tries,
        instances=times.instances,
    )
    return changing_json(request, body)


@router.get("/gantt", responses={**described(Gantt, also=(404,)), **NOT_MODIFIED})
@allow("read", "run")
def get_gantt(
    request: Request,
    api: Api,
    dag_id: str,
    run_id: str,
    rows_from: Row = 0,
    rows_to: Annotated[int, Query(ge=0, le=2**31)] = 1000,
) -> Response:
    """How each task instance spent the time of a run: waiting for upstream tasks, a limit, its process, its next try; running.

    `rows_from`, `rows_to`: the window of rows of `structure`, without `rows_to`. At most 2,000 task instances. The time between the
    dispatch of an attempt and its first code is one phase, `queued`.
    """
    reader, now = api.reader(), api.clock.wall()
    row = reader.need_run(dag_id, run_id)
    shape = _shape(api, reader, row)
    definition = reader.definition(row.version)
    instances = reader.instance_summaries(row.id)
    chosen = _in_window(shape, instances, rows_from, rows_to)
    shown = chosen[:BARS_MAX]
    origin = row.started_at or row.queued_at
    end = row.ended_at or now
    found = spans(reader.run_steps(row.id), {one.slot for _, one in shown}, origin, end)
    ends: dict[str, int] = {}
    for one in instances:
        if one.ended_at is not None and one.started_at is not None:
            ends[one.task_id] = max(ends.get(one.task_id, 0), one.ended_at)
    former = reader.former_runs(dag_id, row.run_after, USUAL_RUNS) if len(shape.tasks) <= USUAL_TASKS_MAX else []
    medians = usual_times(former, reader.task_times([one.run for one in former]))
    body = Gantt(
        dag_id=dag_id,
        run_id=run_id,
        version=shape.number,
        origin=iso(origin) or "",
        length_ms=max(0, end - origin) // MILLISECOND,
        phases=list(PHASES),
        states=STATE_NAMES,
        bars=[GanttBar(place, one.map_index, one.state, found[one.slot]) for place, one in shown],
        omitted=len(chosen) - len(shown),
        critical=[shape.row_of[shape.tasks[task_id]] for task_id in critical_path(definition, ends) if task_id in shape.tasks],
        usual={
            str(shape.row_of[shape.tasks[task_id]]): times
            for task_id, times in medians.items()
            if task_id in shape.tasks and rows_from <= shape.row_of[shape.tasks[task_id]] < rows_to
        },
        usual_runs=len(former),
    )
    return changing_json(request, body)


def _shape(api: Services, reader: Reader, row: RunRow) -> GridShape:
    """The structure of the version that the run has."""
    shape = api.grid.shapes(reader, [row.version]).get(row.version)
    if shape is None:
        raise NotFound(f"The version of DAG {row.dag_id} that run {row.run_id} has was deleted.")
    return shape


def _in_window(
    shape: GridShape, instances: list[InstanceSummary], rows_from: int, rows_to: int
) -> list[tuple[int, InstanceSummary]]:
    """(row, task instance) of the instances in a window, by row and map index."""
    placed = ((shape.row_of[shape.tasks[one.task_id]], one.map_index, one) for one in instances if one.task_id in shape.tasks)
    return [(place, one) for place, _, one in sorted(placed, key=lambda found: found[:2]) if rows_from <= place < rows_to]


@router.get("/tasks/{task_id}", responses=described(PageTask, also=(404,)))
@allow("read", "task_instance")
def get_page_task(api: Api, dag_id: str, run_id: str, task_id: str, map_index: Number | None = None) -> Response:
    """One task instance with its tries, attempts, rendered fields, extra links and the keys of its XComs.

    Default for a mapped task: its first failed instance, or map index 0 if none failed.
    """
    reader = api.reader()
    row = reader.need_run(dag_id, run_id)
    definition = reader.definition(row.version)
    known = reader.states_of_task(row.id, task_id)
    if not known and definition.task(task_id) is None:
        raise NotFound(
            english(phrase("error_no_task", dag=dag_id, task=task_id))
            + did_you_mean(task_id, [one.task_id for one in definition.tasks])
        )
    if map_index is None:
        failed = [index for index, state in known if state == TaskState.FAILED.code]
        map_index = (failed or [index for index, _ in known] or [-1])[0]
    task = definition.task(task_id)
    below = [one.task_id for one in definition.tasks if task_id in one.upstream]
    instance = reader.task_instance(dag_id, run_id, task_id, map_index)
    attempts = reader.attempts(dag_id, run_id, task_id, map_index)
    if attempts:
        instance = msgspec.structs.replace(instance, executor=attempts[-1].executor)
    return json_response(
        PageTask(
            instance=instance,
            tries=reader.task_tries(dag_id, run_id, task_id, map_index),
            attempts=attempts,
            xcoms=[XComKeyView(one.key, one.size, iso(one.at) or "") for one in reader.xcom_keys(row.id, task_id, map_index)],
            doc=None if task is None else task.doc,
            template_fields=[] if task is None else list(task.template_fields),
            ui_color=None if task is None else task.ui_color,
            upstream=[] if task is None else list(task.upstream),
            downstream=below,
            instances=len(known),
            extra_links=extra_links(reader, row, task, map_index, instance.rendered_fields, ""),
        )
    )
