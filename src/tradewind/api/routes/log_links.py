"""Links to logs in systems outside of Tradewind."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Path, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Number, described

router = APIRouter(
    prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/externalLogUrl", tags=["Task Instance"]
)


class ExternalLogUrl(msgspec.Struct, frozen=True):
    """The address of a log in another system."""

    url: str


@router.get("/{try_number}", responses=described(ExternalLogUrl, also=(400, 404)))
@allow("read", "log")
def get_external_log_url(
    api: Api,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    try_number: Annotated[int, Path(ge=1, le=2**31)],
    map_index: Number = -1,
) -> Response:
    """The address of the log in another system. 400: logs are kept only by Tradewind; read them with `…/logs/{try_number}`."""
    api.reader().task_instance(dag_id, dag_run_id, task_id, map_index)
    raise HTTPException(400, "Logs are kept only by Tradewind: read them with …/logs/{try_number}.")
