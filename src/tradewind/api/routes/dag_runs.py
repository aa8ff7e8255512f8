"""DAG runs: list, read, trigger."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import msgspec
from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tradewind.api.auth.policy import allow
from tradewind.api.repeated_requests import RepeatableApi
from tradewind.api.responses import (
    Api,
    Caller,
    Indexes,
    Limit,
    Moment,
    Names,
    Offset,
    Order,
    Text,
    When,
    described,
    json_response,
    moments,
    page_size,
)
from tradewind.api.routes.ranges import Cursor, Pattern, Prefix, Ranges, conditions, durations
from tradewind.api.services import Services
from tradewind.model.ids import check_not_reserved
from tradewind.model.moments import to_micros
from tradewind.store.views import Conditions, Listing, RunView
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns", tags=["DagRun"])

RunState = Literal["queued", "running", "success", "failed"]


class Runs(msgspec.Struct, frozen=True):
    """A page of runs. `total_entries` is null in pages by cursor, and where counting would take too long."""

    dag_runs: list[RunView]
    total_entries: int | None
    total_entries_limit: int | None = None
    """The number at which counting stops; null here: everything is counted."""
    next_cursor: str | None = None
    previous_cursor: str | None = None


async def _run_conditions(
    run_id_pattern: Pattern = None,
    run_id_prefix_pattern: Prefix = None,
    dag_id_pattern: Pattern = None,
    dag_id_prefix_pattern: Prefix = None,
    triggering_user_name_pattern: Pattern = None,
    triggering_user_name_prefix_pattern: Prefix = None,
    partition_key_pattern: Pattern = None,
    partition_key_prefix_pattern: Prefix = None,
    dag_version: Indexes = None,
    bundle_version: Text = None,
) -> Conditions:
    return conditions(
        {
            "run_id": run_id_pattern,
            "dag_id": dag_id_pattern,
            "triggering_user_name": triggering_user_name_pattern,
            "partition_key": partition_key_pattern,
        },
        {
            "run_id": run_id_prefix_pattern,
            "dag_id": dag_id_prefix_pattern,
            "triggering_user_name": triggering_user_name_prefix_pattern,
            "partition_key": partition_key_prefix_pattern,
        },
        {"dag_version": dag_version, "bundle_version": None if bundle_version is None else [bundle_version]},
    )


@router.get("", responses=described(Runs, also=(400, 404)))
@allow("read", "run")
def list_runs(
    api: Api,
    dag_id: str,
    ranges: Ranges,
    fields: Annotated[Conditions, Depends(_run_conditions)],
    limit: Limit = 50,
    offset: Offset = 0,
    cursor: Cursor = None,
    state: Names = None,
    run_type: Names = None,
    conf_contains: Annotated[str, Query(description="Part of the JSON text of the conf.")] = "",
    consuming_asset_pattern: Annotated[
        str | None, Query(description="Part of the name or the URI of an asset whose event the run consumed.")
    ] = None,
    partition_date_gte: When = None,
    partition_date_lte: When = None,
    order_by: Order = None,
) -> Response:
    """List the runs of a DAG, or of all DAGs with `~`."""
    dates = moments({"partition_date_gte": partition_date_gte, "partition_date_lte": partition_date_lte})
    return runs_response(
        api.reader().list_runs(
            dag_id,
            states=state or (),
            run_types=run_type or (),
            ranges={**ranges, **dates},
            conditions=fields,
            conf_contains=conf_contains,
            consuming_asset=consuming_asset_pattern,
            cursor=cursor,
            limit=page_size(api, limit),
            offset=offset,
            order_by=order_by or ("id",),
        )
    )


def runs_response(found: Listing[RunView]) -> Response:
    """A page of runs."""
    return json_response(Runs(found.rows, found.total, None, found.next_cursor, found.previous_cursor))


class RunRanges(BaseModel):
    """The range filters of a list of runs or task instances, in a body."""

    model_config = ConfigDict(extra="forbid")

    run_after_gte: Moment | None = None
    run_after_gt: Moment | None = None
    run_after_lte: Moment | None = None
    run_after_lt: Moment | None = None
    logical_date_gte: Moment | None = None
    logical_date_gt: Moment | None = None
    logical_date_lte: Moment | None = None
    logical_date_lt: Moment | None = None
    start_date_gte: Moment | None = None
    start_date_gt: Moment | None = None
    start_date_lte: Moment | None = None
    start_date_lt: Moment | None = None
    end_date_gte: Moment | None = None
    end_date_gt: Moment | None = None
    end_date_lte: Moment | None = None
    end_date_lt: Moment | None = None
    duration_gte: float | None = Field(default=None, ge=-1e12, le=1e12, allow_inf_nan=False)
    duration_gt: float | None = Field(default=None, ge=-1e12, le=1e12, allow_inf_nan=False)
    duration_lte: float | None = Field(default=None, ge=-1e12, le=1e12, allow_inf_nan=False)
    duration_lt: float | None = Field(default=None, ge=-1e12, le=1e12, allow_inf_nan=False)

    def ranges(self) -> dict[str, int]:
        """Name → microseconds."""
        given = {name: getattr(self, name) for name in RunRanges.model_fields if getattr(self, name) is not None}
        spans = {name: value for name, value in given.items() if name.startswith("duration_")}
        dates = {name: to_micros(value) for name, value in given.items() if name not in spans}
        return {**dates, **durations(spans)}


class RunsBatch(RunRanges):
    """The filters of a list of runs, in a body. `dag_ids`: of these DAGs; by default of all."""

    order_by: str | None = None
    page_offset: int = Field(default=0, ge=0, le=2**62)
    page_limit: int = Field(default=100, ge=0, le=2**62)
    dag_ids: list[str] | None = None
    states: list[RunState | None] | None = None
    conf_contains: str | None = None


@router.post("/list", responses=described(Runs, also=(400, 404, 503)))
@allow("read", "run")
def list_runs_batch(api: Api, dag_id: str, body: RunsBatch) -> Response:
    """List runs, with the filters in the body. `dag_id` has to be `~` in Airflow; here it restricts the list as well."""
    return runs_response(
        api.reader().list_runs(
            dag_id,
            states=[state for state in body.states or () if state is not None],
            ranges=body.ranges(),
            conditions=conditions(among={"dag_id": body.dag_ids}),
            conf_contains=body.conf_contains,
            limit=page_size(api, body.page_limit),
            offset=body.page_offset,
            order_by=[body.order_by] if body.order_by else ("id",),
        )
    )


@router.get("/{dag_run_id}", responses=described(RunView, also=(404,)))
@allow("read", "run")
def get_run(api: Api, dag_id: str, dag_run_id: str) -> Response:
    """One run."""
    return json_response(api.reader().run_details(dag_id, dag_run_id))


class RunFields(BaseModel):
    """The fields of a run to create, all of them optional."""

    model_config = ConfigDict(extra="forbid")

    dag_run_id: str | None = Field(default=None, min_length=1, max_length=250)
    data_interval_start: Moment | None = None
    data_interval_end: Moment | None = None
    logical_date: Moment | None = None
    run_after: Moment | None = None
    conf: dict[str, Any] | None = None
    note: str | None = Field(default=None, max_length=1000)
    partition_key: str | None = Field(default=None, max_length=250, description="Only for a DAG with partitions.")

    @model_validator(mode="before")
    @classmethod
    def _old_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and "execution_date" in data:
            raise ValueError("execution_date is the name of Airflow 2: use logical_date")
        return data

    @model_validator(mode="after")
    def _whole_interval(self) -> Self:
        if (self.data_interval_start is None) != (self.data_interval_end is None):
            raise ValueError("give both data_interval_start and data_interval_end, or neither")
        if self.data_interval_start and self.data_interval_end and self.data_interval_end < self.data_interval_start:
            raise ValueError("data_interval_end is before data_interval_start")
        return self


class Trigger(RunFields):
    """A run to create. `logical_date` is required; null creates a run without a logical date."""

    logical_date: Moment | None


@router.post("", responses=described(RunView, also=(400, 404, 409, 503)))
@allow("create", "run")
def trigger(api: RepeatableApi, caller: Caller, dag_id: str, body: Trigger) -> Response:
    """Trigger a run. 409: a run with this id or logical date exists."""
    return json_response(trigger_run(api, caller.name, dag_id, body))


def trigger_run(api: Services, actor: str, dag_id: str, body: Trigger) -> RunView:
    """Create the run. Raises NotFound, Conflict."""
    reader = api.reader()
    reader.need_dag(dag_id)
    if body.dag_run_id is not None:
        check_not_reserved(body.dag_run_id)
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
        partition_key=body.partition_key,
    )
    made = api.control().call(command, actor=actor)
    return reader.run_details(dag_id, made.run_id)
