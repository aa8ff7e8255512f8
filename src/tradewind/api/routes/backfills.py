"""Backfills: runs for a range of past dates, which the scheduler creates a few at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tradewind.api.auth.guard import Identity
from tradewind.api.auth.policy import allow
from tradewind.api.repeated_requests import RepeatableApi
from tradewind.api.responses import Api, Caller, Limit, Moment, Number, Offset, Order, described, json_response, page_size
from tradewind.api.services import Services
from tradewind.api.shapes import BackfillPlan, Backfills, BackfillView, PlannedRun
from tradewind.model.errors import NotFound
from tradewind.model.moments import iso, to_micros
from tradewind.model.rows import BackfillRow
from tradewind.store.port import Reader
from tradewind.store.views import BadQuery
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2/backfills", tags=["Backfill"])

_ORDERS = ("id", "created_at", "from_date", "to_date")


@router.get("", responses=described(Backfills, also=(400, 404)))
@allow("read", "run")
def list_backfills(api: Api, dag_id: str = "~", limit: Limit = 50, offset: Offset = 0, order_by: Order = None) -> Response:
    """List the backfills of a DAG (`~`: of all DAGs), with completed ones."""
    reader = api.reader()
    if dag_id != "~":
        reader.need_dag(dag_id)
    rows = reader.backfills(None if dag_id == "~" else dag_id, active=False)
    for field in reversed(order_by or ["id"]):
        name = field.removeprefix("-")
        if name not in _ORDERS:
            raise BadQuery(f"Backfills cannot be ordered by {name!r}; possible are: {', '.join(_ORDERS)}.")
        rows.sort(key=lambda row: getattr(row, name), reverse=field.startswith("-"))
    page = rows[offset : offset + page_size(api, limit)]
    names = reader.dag_display_names([row.dag_id for row in page])
    return json_response(Backfills([_view(row, names) for row in page], len(rows)))


@router.get("/{backfill_id}", responses=described(BackfillView, also=(404,)))
@allow("read", "run")
def get_backfill(api: Api, backfill_id: Number) -> Response:
    """One backfill."""
    return json_response(_need(api.reader(), backfill_id))


class NewBackfill(BaseModel):
    """A backfill to create. New runs use the newest version of their bundle. Repeated ones, too, unless the backfill, or the DAG
    with `rerun_with_latest_version`, says that they keep theirs."""

    model_config = ConfigDict(extra="forbid")

    dag_id: str
    from_date: Moment
    to_date: Moment
    run_backwards: bool = False
    dag_run_conf: dict[str, Any] | None = None
    reprocess_behavior: Literal["none", "failed", "completed"] = "none"
    max_active_runs: int = Field(default=10, ge=1, le=2**31)
    run_on_latest_version: bool | None = None

    @model_validator(mode="after")
    def _possible(self) -> NewBackfill:
        if self.to_date < self.from_date:
            raise ValueError(f"from_date ({self.from_date.isoformat()}) must not be after to_date ({self.to_date.isoformat()})")
        return self


@router.post("", responses=described(BackfillView, also=(400, 404, 409, 503)))
@allow("create", "run")
def create_backfill(api: RepeatableApi, caller: Caller, body: NewBackfill) -> Response:
    """Create a backfill. 409: the DAG has an active backfill, or the backfill is not possible."""
    made = _create(api, caller, body, dry_run=False).backfill
    assert made is not None
    return json_response(_need(api.reader(), made.id))


@router.post("/dry_run", responses=described(BackfillPlan, also=(400, 404, 409, 503)))
@allow("create", "run")
def plan_backfill(api: Api, caller: Caller, body: NewBackfill) -> Response:
    """List the runs that the backfill would create or run again. Dates that it would skip are not in the list, as in Airflow."""
    plan = [run for run in _create(api, caller, body, dry_run=True).plan if not run.outcome.startswith("skipped")]
    return json_response(BackfillPlan([PlannedRun(**msgspec.structs.asdict(run)) for run in plan], len(plan)))


def _create(api: Services, caller: Identity, body: NewBackfill, *, dry_run: bool) -> c.CreateBackfillResult:
    api.reader().need_dag(body.dag_id)
    command = c.CreateBackfill(
        body.dag_id,
        to_micros(body.from_date),
        to_micros(body.to_date),
        conf=body.dag_run_conf or {},
        max_active_runs=body.max_active_runs,
        run_backwards=body.run_backwards,
        reprocess_behavior=body.reprocess_behavior,
        dry_run=dry_run,
        run_on_latest_version=body.run_on_latest_version,
    )
    return api.control().call(command, actor=caller.name)


@router.put("/{backfill_id}/pause", responses=described(BackfillView, also=(404, 409, 503)))
@router.post("/{backfill_id}/pause", include_in_schema=False)
@allow("edit", "run")
def pause_backfill(api: Api, caller: Caller, backfill_id: Number) -> Response:
    """Pause a backfill: no more runs are created."""
    _need(api.reader(), backfill_id)
    api.control().call(c.PauseBackfill(backfill_id, is_paused=True), actor=caller.name)
    return json_response(_need(api.reader(), backfill_id))


@router.put("/{backfill_id}/unpause", responses=described(BackfillView, also=(404, 409, 503)))
@router.post("/{backfill_id}/unpause", include_in_schema=False)
@allow("edit", "run")
def unpause_backfill(api: Api, caller: Caller, backfill_id: Number) -> Response:
    """Unpause a backfill."""
    _need(api.reader(), backfill_id)
    api.control().call(c.PauseBackfill(backfill_id, is_paused=False), actor=caller.name)
    return json_response(_need(api.reader(), backfill_id))


@router.put("/{backfill_id}/cancel", responses=described(BackfillView, also=(404, 409, 503)))
@router.post("/{backfill_id}/cancel", include_in_schema=False)
@allow("edit", "run")
def cancel_backfill(api: Api, caller: Caller, backfill_id: Number) -> Response:
    """Cancel a backfill: no more runs are created; runs that exist continue."""
    _need(api.reader(), backfill_id)
    api.control().call(c.CancelBackfill(backfill_id), actor=caller.name)
    return json_response(_need(api.reader(), backfill_id))


def _need(reader: Reader, number: int) -> BackfillView:
    row = reader.backfill(number)
    if row is None:
        raise NotFound(f"There is no backfill {number}.")
    return _view(row, reader.dag_display_names([row.dag_id]))


def _view(row: BackfillRow, names: Mapping[str, str]) -> BackfillView:
    """`names`: DAG → its display name."""
    created = iso(row.created_at) or ""
    return BackfillView(
        row.id,
        row.dag_id,
        iso(row.from_date) or "",
        iso(row.to_date) or "",
        msgspec.json.decode(row.conf) if row.conf and row.conf != b"{}" else None,
        row.is_paused,
        row.reprocess_behavior,
        row.max_active_runs,
        created,
        iso(row.completed_at),
        iso(row.completed_at) or created,
        names.get(row.dag_id, row.dag_id),
        row.planned,
        row.handled,
    )
