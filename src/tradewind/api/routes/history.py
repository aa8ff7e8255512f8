"""What happened to a task instance, step by step. Not in Airflow, so under a prefix of our own."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.answers import Api, Number, described, json_answer
from tradewind.api.auth.policy import allow
from tradewind.api.shapes import History

router = APIRouter(prefix="/api/tradewind/v1", tags=["Task Instance"])


@router.get("/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/history", responses=described(History, also=(404,)))
@allow("read", "task_instance")
def get_history(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number = -1) -> Response:
    """Every step of a task instance: when, from which state to which, how long it stayed there, and why; past waits, too."""
    found = api.reader().task_history(dag_id, dag_run_id, task_id, map_index)
    return json_answer(History(found, len(found)))
