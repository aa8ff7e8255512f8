"""The history of a task instance. It is not in Airflow's API and has the prefix of Tradewind's own routes."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Number, described, json_response
from tradewind.api.shapes import History

router = APIRouter(prefix="/api/tradewind/v1", tags=["Task Instance"])


@router.get("/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/history", responses=described(History, also=(404,)))
@allow("read", "task_instance")
def get_history(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number = -1) -> Response:
    """List all state changes of a task instance, with time, duration and cause, and its past waits."""
    found = api.reader().task_history(dag_id, dag_run_id, task_id, map_index)
    return json_response(History(found, len(found)))
