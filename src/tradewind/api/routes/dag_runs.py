"""DAG runs: list, read, trigger."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Caller, Limit, Moment, Names, Offset, Order, described, json_response, page_size
from tradewind.api.routes.ranges import Ranges
from tradewind.api.shapes import Runs
from tradewind.model.moments import to_micros
from tradewind.store.views import RunView
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns", tags=["DagRun"])


@router.get("", responses=described(Runs, also=(400, 404)))
@allow("read", "run")
def list_runs(
    api: Api,
    dag_id: str,
    ranges: Ranges,
    limit: Limit = 50,
    offset: Offset = 0,
    state: Names = None,
    run_type: Names = None,
    run_id_pattern: str | None = None,
    run_id_prefix_pattern: str | None = None,
    dag_id_pattern: str | None = None,
    order_by: Order = None,
) -> Response:
    """List the runs of a DAG, or of all DAGs with `~`."""
    found = api.reader().list_runs(
        dag_id,
        states=state or (),
        run_types=run_type or (),
        ranges=ranges,
        run_id_pattern=run_id_pattern,
        run_id_prefix=run_id_prefix_pattern,
        dag_id_pattern=dag_id_pattern,
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("id",),
    )
    return json_response(Runs(found.rows, found.total))


@router.get("/{dag_run_id}", responses=described(RunView, also=(404,)))
@allow("read", "run")
def get_run(api: Api, dag_id: str, dag_run_id: str) -> Response:
    """One run."""
    return json_response(api.reader().run_details(dag_id, dag_run_id))


class Trigger(BaseModel):
    """A run to create. `logical_date` is required; null creates a run without a logical date."""

    model_config = ConfigDict(extra="forbid")

    dag_run_id: str | None = Field(default=None, min_length=1, max_length=250)
    data_interval_start: Moment | None = None
    data_interval_end: Moment | None = None
    logical_date: Moment | None
    run_after: Moment | None = None
    conf: dict[str, Any] | None = None
    note: str | None = Field(default=None, max_length=1000)
    partition_key: None = Field(default=None, description="Not supported yet.")

    @model_validator(mode="before")
    @classmethod
    def _old_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and "execution_date" in data:
            raise ValueError("execution_date is the name of Airflow 2: use logical_date")
        return data

    @model_validator(mode="after")
    def _whole_interval(self) -> Trigger:
        if (self.data_interval_start is None) != (self.data_interval_end is None):
            raise ValueError("give both data_interval_start and data_interval_end, or neither")
        if self.data_interval_start and self.data_interval_end and self.data_interval_end < self.data_interval_start:
            raise ValueError("data_interval_end is before data_interval_start")
        return self


@router.post("", responses=described(RunView, also=(400, 404, 409, 503)))
@allow("create", "run")
def trigger(api: Api, caller: Caller, dag_id: str, body: Trigger) -> Response:
    """Trigger a run. 409: a run with this id or logical date exists."""
    reader = api.reader()
    reader.need_dag(dag_id)
    command = c.Trigger(
        dag_id,
        body.dag_run_id,
        logical_date=None if body.logical_date is None else to_micros(body.logical_date),
        run_after=None if body.run_after is None else to_micros(body.run_after),
        interval_start=None if body.data_interval_start is None else to_micros(body.data_interval_start),
        interval_end=None if body.data_interval_end is None else to_micros(body.data_interval_end),
        conf=body.conf,
        note=body.note,
        triggered_by="rest_api",
    )
    made = api.control().call(command, actor=caller.name)
    return json_response(reader.run_details(dag_id, made.run_id))
