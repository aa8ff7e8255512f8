"""Smaller requests of the web page: the use of a pool, the calendar of a DAG, and the search of the command palette."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response

from tradewind.api.auth.policy import allow
from tradewind.api.calendar_days import days_of
from tradewind.api.responses import Api, When, described, json_response, moments
from tradewind.api.services import Services
from tradewind.api.ui_shapes import Calendar, PoolHolder, PoolUse, SearchHit, SearchHits
from tradewind.model.errors import ScheduleError, TradewindError
from tradewind.model.moments import DAY, iso, parse_moment
from tradewind.model.states import RUN_STATES
from tradewind.timetables.zones import zone as zone_of
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/tradewind/v1", tags=["Web page"])

CALENDAR_DAYS_MAX = 800
NEXT_RUNS = 10
PLANNED_MAX = 1000
ASK_SECONDS = 5.0


@router.get("/pools/{pool_name}", responses=described(PoolUse, also=(404, 503)))
@allow("read", "pool")
def get_pool_use(api: Api, pool_name: str) -> Response:
    """A pool with the task instances that hold its slots and those that wait for them."""
    pool = api.reader().pool_details(pool_name)
    found = api.control().call(c.PoolActivity(pool_name), timeout=ASK_SECONDS)
    return json_response(
        PoolUse(
            name=pool.name,
            description=pool.description,
            slots=pool.slots,
            include_deferred=pool.include_deferred,
            used=found["used"],
            holders=msgspec.convert(found["holders"], list[PoolHolder]),
            holder_count=found["holder_count"],
            waiting=msgspec.convert(found["waiting"], list[PoolHolder]),
            waiting_count=found["waiting_count"],
        )
    )


@router.get("/dags/{dag_id}/calendar", responses=described(Calendar, also=(400, 404)))
@allow("read", "run")
def get_calendar(
    api: Api,
    dag_id: str,
    start: When = None,
    end: When = None,
    timezone: Annotated[str, Query(description="The time zone that decides where a day begins.")] = "UTC",
) -> Response:
    """The runs of a DAG by the day on which they were due, and the runs that its schedule plans.

    Default: the last 365 days and the next 30. At most 800 days.
    """
    reader, now = api.reader(), api.clock.wall()
    reader.need_dag(dag_id)
    given = moments({"start": start, "end": end})
    first, last = given.get("start", now - 365 * DAY), given.get("end", now + 30 * DAY)
    if not 0 < last - first <= CALENDAR_DAYS_MAX * DAY:
        raise HTTPException(400, f"The end has to come after the start, by at most {CALENDAR_DAYS_MAX} days.")
    try:
        zone = zone_of(timezone)
    except ScheduleError as error:
        raise HTTPException(400, str(error)) from None
    planned = _planned(api, dag_id, last)
    counted = reader.run_states_by_quarter(dag_id, first, last)
    days = days_of(counted, [one for one in planned or () if one >= first], zone.tz)
    coming = [iso(one) or "" for one in sorted(planned or ())[:NEXT_RUNS]]
    return json_response(Calendar(dag_id, timezone, days, coming, planned is not None))


def _planned(api: Services, dag_id: str, end: int) -> list[int] | None:
    """When the schedule plans runs that do not exist yet, microseconds; None: the scheduler does not answer."""
    try:
        found = api.control().call(c.Upcoming(PLANNED_MAX, [dag_id]), timeout=ASK_SECONDS)
    except TradewindError:
        return None
    return [at for at in (parse_moment(one.at) for one in found.upcoming if one.kind == "run") if at < end]


@router.get("/search", responses=described(SearchHits))
@allow("read", "dag")
def search(
    api: Api,
    q: Annotated[str, Query(min_length=1, max_length=200, description="Part of a name, in any case.")],
    dag_id: Annotated[str | None, Query(description="The DAG that is open: its tasks and runs are searched, too.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Response:
    """DAGs, pools, and the tasks and runs of the DAG that is open. Names that begin with the text come first."""
    reader, text = api.reader(), q.casefold()
    dags = reader.dag_summaries()
    names = api.grid.display_names(reader, [dag.version for dag in dags])
    found = [
        SearchHit(
            "dag",
            names.get(dag.version, dag.dag_id),
            dag_id=dag.dag_id,
            state=None if dag.last_state is None else RUN_STATES[dag.last_state].value,
        )
        for dag in dags
        if text in dag.dag_id.casefold() or text in names.get(dag.version, "").casefold()
    ]
    if dag_id is not None and any(dag.dag_id == dag_id for dag in dags):
        version, _ = reader.grid_version(dag_id)
        shape = api.grid.shapes(reader, [version]).get(version)
        tasks = () if shape is None else shape.tasks
        found += [SearchHit("task", one, dag_id=dag_id, task_id=one) for one in tasks if text in one.casefold()]
        found += [
            SearchHit("run", run_id, dag_id=dag_id, run_id=run_id, state=RUN_STATES[state].value)
            for run_id, state, _ in reader.runs_named(dag_id, q, limit)
        ]
    found += [SearchHit("pool", pool.name, pool=pool.name) for pool in reader.pools() if text in pool.name.casefold()]
    ranked = sorted(found, key=lambda one: (not one.name.casefold().startswith(text), len(one.name), one.kind, one.name))
    return json_response(SearchHits(ranked[:limit]))
