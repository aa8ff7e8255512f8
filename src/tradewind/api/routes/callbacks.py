"""Unfinished callbacks and mails, and missed deadlines. Airflow has no such routes."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Caller, Limit, Number, described, error_responses, json_response, page_size
from tradewind.api.shapes import DeadlineMisses, UnfinishedCallbacks
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import DEADLINE
from tradewind.store.callback_view import CallbackView, miss_shown, shown
from tradewind.wire.commands import DropCallbacks, RetryCallbacks

router = APIRouter(prefix="/api/v2", tags=["Callback"])


@router.get("/callbacks", responses=described(UnfinishedCallbacks, also=(400,)))
@allow("read", "run")
def list_callbacks(api: Api, parked: bool | None = None, limit: Limit = 50) -> Response:
    """List unfinished callbacks and mails, the oldest first. `parked` true: those that failed too often; false: the others."""
    found = api.reader().outbox_items(parked=parked, at_most=page_size(api, limit))
    return json_response(UnfinishedCallbacks([shown(item) for item in found]))


@router.get("/callbacks/{callback_id}", responses=described(CallbackView, also=(404,)))
@allow("read", "run")
def get_callback(api: Api, callback_id: Number) -> Response:
    """One callback or mail."""
    item = api.reader().outbox_item(callback_id)
    if item is None or item.kind == DEADLINE:
        raise HTTPException(404, english(phrase("error_no_callback", number=callback_id)))
    return json_response(shown(item))


@router.post("/callbacks/{callback_id}/retry", status_code=204, responses=error_responses(404, 503))
@allow("edit", "run")
def retry_callback(api: Api, caller: Caller, callback_id: Number) -> Response:
    """Retry a callback now."""
    api.control().call(RetryCallbacks([callback_id]), actor=caller.name)
    return Response(status_code=204)


@router.delete("/callbacks/{callback_id}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "run")
def drop_callback(api: Api, caller: Caller, callback_id: Number) -> Response:
    """Delete a callback, so that it is never called."""
    api.control().call(DropCallbacks([callback_id]), actor=caller.name)
    return Response(status_code=204)


@router.get("/deadlineMisses", responses=described(DeadlineMisses, also=(400,)))
@allow("read", "run")
def list_deadline_misses(api: Api, dag_id: str | None = None, limit: Limit = 50) -> Response:
    """List missed deadlines (`sla`, `deadline`), the latest first."""
    found = api.reader().deadline_misses(dag_id, at_most=page_size(api, limit))
    return json_response(DeadlineMisses([miss_shown(miss) for miss in found]))
