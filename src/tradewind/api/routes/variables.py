"""Variables."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.auth.guard import Identity
from tradewind.api.auth.policy import allow
from tradewind.api.masking import masked_text
from tradewind.api.responses import (
    Api,
    Caller,
    Limit,
    Names,
    Offset,
    Order,
    described,
    error_responses,
    json_response,
    page_of_names,
)
from tradewind.api.routes.bulk import BulkBody, BulkResult, EntityChanges, execute, fields_to_change
from tradewind.api.routes.ranges import Pattern, Prefix
from tradewind.api.services import Services
from tradewind.api.shapes import Variables, VariableView
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import VariableRow
from tradewind.wire.commands import DeleteVariable, SetVariable

router = APIRouter(prefix="/api/v2/variables", tags=["Variable"])


@router.get("", responses=described(Variables))
@allow("read", "variable")
def list_variables(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    variable_key_pattern: Pattern = None,
    variable_key_prefix_pattern: Prefix = None,
    order_by: Order = None,
) -> Response:
    """List variables by key. Values are masked where the key is the name of a secret."""
    rows, total = page_of_names(
        api,
        api.reader().variables(),
        lambda row: row.key,
        limit,
        offset,
        pattern=variable_key_pattern,
        prefix=variable_key_prefix_pattern,
        order_by=order_by,
        orders=_ORDERS,
    )
    return json_response(Variables([_view(api, row) for row in rows], total))


_ORDERS: dict[str, Callable[[VariableRow], Any]] = {
    "id": lambda row: row.key,
    "key": lambda row: row.key,
    "description": lambda row: row.description,
    "is_encrypted": lambda row: row.is_encrypted,
}


@router.get("/{variable_key:path}", responses=described(VariableView, also=(404,)))
@allow("read", "variable")
def get_variable(api: Api, variable_key: str) -> Response:
    """One variable."""
    return json_response(_view(api, _need(api, variable_key)))


class NewVariable(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: str = Field(min_length=1, max_length=250)
    value: Any
    description: str | None = None
    team_name: None = Field(default=None, description="Not supported yet.")


@router.post("", status_code=201, responses=described(VariableView, 201, also=(409, 503)))
@allow("edit", "variable")
def post_variable(api: Api, caller: Caller, body: NewVariable) -> Response:
    """Create a variable. 409: it exists."""
    if api.reader().variable(body.key) is not None:
        raise Conflict(english(phrase("error_variable_exists", key=body.key)))
    api.control().call(SetVariable(body.key, _text(body.value), body.description), actor=caller.name)
    return json_response(_view(api, _need(api, body.key)), 201)


@router.patch("", responses=described(BulkResult, also=(400, 503)))
@allow("edit", "variable")
def bulk_variables(api: Api, caller: Caller, body: BulkBody[NewVariable]) -> Response:
    """Create, change and delete variables."""
    reader = api.reader()
    changes: EntityChanges[NewVariable] = EntityChanges(
        key=lambda variable: variable.key,
        existing=lambda keys: {key for key in keys if reader.variable(key) is not None},
        create=lambda variable: _set(api, caller, variable, {"value", "description"}),
        update=lambda variable, mask: _set(api, caller, variable, fields_to_change(variable, mask)),
        delete=lambda key: api.control().call(DeleteVariable(key), actor=caller.name),
        what="variables",
    )
    return json_response(execute(body, changes))


@router.patch("/{variable_key:path}", responses=described(VariableView, also=(400, 404, 503)))
@allow("edit", "variable")
def patch_variable(api: Api, caller: Caller, variable_key: str, body: NewVariable, update_mask: Names = None) -> Response:
    """Change the value and the description of a variable; with `update_mask` only the fields that it names."""
    _need(api, variable_key)
    if body.key != variable_key:
        raise HTTPException(400, f"The key in the body is {body.key!r}, the key in the path is {variable_key!r}.")
    _set(api, caller, body, fields_to_change(body, update_mask))
    return json_response(_view(api, _need(api, variable_key)))


def _set(api: Services, caller: Identity, body: NewVariable, fields: Collection[str]) -> None:
    value = _text(body.value) if "value" in fields else None
    description = body.description if "description" in fields else None
    if value is None and description is None:
        return
    api.control().call(SetVariable(body.key, value, description), actor=caller.name)


@router.delete("/{variable_key:path}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "variable")
def delete_variable(api: Api, caller: Caller, variable_key: str) -> Response:
    """Delete a variable."""
    _need(api, variable_key)
    api.control().call(DeleteVariable(variable_key), actor=caller.name)
    return Response(status_code=204)


def _need(api: Api, key: str) -> VariableRow:
    row = api.reader().variable(key)
    if row is None:
        known = [variable.key for variable in api.reader().variables()]
        raise NotFound(english(phrase("error_no_variable", key=key)) + did_you_mean(key, known))
    return row


def _text(value: Any) -> str:
    """A value as it is stored: a text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _view(api: Api, row: VariableRow) -> VariableView:
    value: str | None = None
    if not row.is_encrypted:
        value = row.value.decode()
    elif (vault := api.vault()) is not None:
        value = vault.decrypt(row.value.decode(), f"variable {row.key!r}")
    return VariableView(row.key, None if value is None else masked_text(value, row.key), row.description, row.is_encrypted)
