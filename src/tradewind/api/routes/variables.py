"""Variables."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.auth.policy import allow
from tradewind.api.masking import masked_text
from tradewind.api.responses import Api, Caller, Limit, Names, Offset, described, error_responses, json_response, page_of_names
from tradewind.api.shapes import Variables, VariableView
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.rows import VariableRow
from tradewind.wire.commands import DeleteVariable, SetVariable

router = APIRouter(prefix="/api/v2/variables", tags=["Variable"])


@router.get("", responses=described(Variables))
@allow("read", "variable")
def list_variables(api: Api, limit: Limit = 50, offset: Offset = 0, variable_key_pattern: str | None = None) -> Response:
    """List variables by key. Values are masked where the key is the name of a secret."""
    rows, total = page_of_names(api, api.reader().variables(), lambda row: row.key, variable_key_pattern, limit, offset)
    return json_response(Variables([_view(api, row) for row in rows], total))


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
        raise Conflict(f"The variable {body.key!r} exists already.")
    api.control().call(SetVariable(body.key, _text(body.value), body.description), actor=caller.name)
    return json_response(_view(api, _need(api, body.key)), 201)


@router.patch("/{variable_key:path}", responses=described(VariableView, also=(400, 404, 503)))
@allow("edit", "variable")
def patch_variable(api: Api, caller: Caller, variable_key: str, body: NewVariable, update_mask: Names = None) -> Response:
    """Change the value and the description of a variable; with `update_mask` only the fields that it names."""
    row = _need(api, variable_key)
    if body.key != variable_key:
        raise HTTPException(400, f"The key in the body is {body.key!r}, the key in the path is {variable_key!r}.")
    fields = {"value", "description"} if update_mask is None else set(update_mask)
    value = _text(body.value) if "value" in fields else None
    description = body.description if "description" in fields else row.description
    api.control().call(SetVariable(variable_key, value, description), actor=caller.name)
    return json_response(_view(api, _need(api, variable_key)))


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
        raise NotFound(f"There is no variable {key!r}.{did_you_mean(key, known)}")
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
