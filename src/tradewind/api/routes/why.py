"""Explanations of the scheduler: why a task or a run is not running, and what starts next.

`…/dependencies` is a route of Airflow; the others belong to Tradewind and explain more.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Limit, Names, Number, Offset, When, described, json_response, moments, page_size
from tradewind.api.shapes import Dependencies, Dependency
from tradewind.kernel.airflow_dependencies import dependency_name
from tradewind.wire import commands as c
from tradewind.wire.explanations import Explanation, OpenWaitList, UpcomingList

router = APIRouter(prefix="/api/v2", tags=["Why"])

_INSTANCE = "/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}"


@router.get(_INSTANCE + "/dependencies", responses=described(Dependencies, also=(404, 503)))
@allow("read", "task_instance")
def get_dependencies(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number | None = None) -> Response:
    """List the unmet dependencies of a task instance, with Airflow's names; empty if it runs or has ended. 404: it is mapped, and
    `map_index` is missing.
    """
    api.reader().task_instance(dag_id, dag_run_id, task_id, -1 if map_index is None else map_index)
    return _dependencies(api, dag_id, dag_run_id, task_id, map_index)


@router.get(_INSTANCE + "/{map_index}/dependencies", responses=described(Dependencies, also=(404, 503)))
@allow("read", "task_instance")
def get_mapped_dependencies(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number) -> Response:
    """The same for one instance of a mapped task."""
    return _dependencies(api, dag_id, dag_run_id, task_id, map_index)


def _dependencies(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number | None) -> Response:
    found = api.control().call(c.Why(dag_id, task_id, dag_run_id, map_index))
    over = found.state not in (None, "scheduled", "up_for_retry", "up_for_reschedule", "deferred", "awaiting_input")
    rows = [] if over else [Dependency(dependency_name(one.rule, found.state), one.sentence) for one in found.blockers]
    return json_response(Dependencies(rows))


@router.get(_INSTANCE + "/why", responses=described(Explanation, also=(404, 503)))
@allow("read", "task_instance")
def why_task_instance(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number | None = None) -> Response:
    """Explain why a task instance is not running. Default for a mapped task: its first unfinished instance."""
    return json_response(api.control().call(c.Why(dag_id, task_id, dag_run_id, map_index)))


@router.get("/dags/{dag_id}/dagRuns/{dag_run_id}/why", responses=described(Explanation, also=(404, 503)))
@allow("read", "run")
def why_run(api: Api, dag_id: str, dag_run_id: str) -> Response:
    """Explain why a run does not start or end."""
    return json_response(api.control().call(c.WhyDag(dag_id, dag_run_id)))


@router.get("/dags/{dag_id}/why", responses=described(Explanation, also=(404, 503)))
@allow("read", "dag")
def why_next_run(api: Api, dag_id: str, logical_date: When = None) -> Response:
    """Explain why the next run of a DAG has not started, or why there is no run for a logical date."""
    date = moments({"logical_date": logical_date}).get("logical_date")
    return json_response(api.control().call(c.WhyDag(dag_id, logical_date=date)))


@router.get("/waits", responses=described(OpenWaitList, also=(404, 503)))
@allow("read", "run")
def open_waits(api: Api, dag_id: str = "~", impossible: bool = False, limit: Limit = 50, offset: Offset = 0) -> Response:
    """List deferred task instances of a DAG (`~`: of all DAGs), the longest wait first; with `impossible` waits that never end."""
    which = None if dag_id == "~" else dag_id
    return json_response(api.control().call(c.OpenWaits(which, impossible, page_size(api, limit), offset)))


@router.get("/upcoming", responses=described(UpcomingList, also=(400, 503)))
@allow("read", "dag")
def list_upcoming(
    api: Api,
    limit: Annotated[int, Query(ge=0, le=2**63 - 1, description="How many, up to the configured maximum.")] = 20,
    dag_ids: Names = None,
    timezone: Annotated[str | None, Query(description="Time zone of `local`; UTC by default.")] = None,
) -> Response:
    """List what starts next in all DAGs, the soonest first. Paused DAGs are left out."""
    return json_response(api.control().call(c.Upcoming(page_size(api, limit), dag_ids or [], timezone)))
