"""Variables."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.answers import Api, Caller, Limit, Names, Offset, described, json_answer, page_size
from tradewind.api.auth.policy import allow
from tradewind.api.masking import masked_text
from tradewind.api.shapes import Variables, VariableView
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.rows import VariableRow

router = APIRouter(prefix="/api/v2/variables", tags=["Variable"])


@router.get("", responses=described(Variables))
@allow("read", "variable")
def list_variables(api: Api, limit: Limit = 50, offset: Offset = 0, variable_key_pattern: str | None = None) -> Response:
    """Variables by key; values whose key sounds like a secret are masked."""
    wanted = (variable_key_pattern or "").lower()
    rows = [row for row in api.reader().variables() if wanted in row.key.lower()]
    page = rows[offset : offset + page_size(api, limit)]
    return json_answer(Variables([_view(api, row) for row in page], len(rows)))


@router.get("/{variable_key:path}", responses=described(VariableView, also=(404,)))
@allow("read", "variable")
def get_variable(api: Api, variable_key: str) -> Response:
    """One variable."""
    return json_answer(_view(api, _need(api, variable_key)))


class NewVariable(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: str = Field(min_length=1, max_length=250)
    value: Any
    description: str | None = None
    team_name: None = Field(default=None, description="Not supported yet.")


@router.post("", status_code=201, responses=described(VariableView, 201, also=(409, 503)))
@allow("edit", "variable")
def post_variable(api: Api, caller: Caller, body: NewVariable) -> Response:
    """Create a variable. 409 when it exists."""
    if api.reader().variable(body.key) is not None:
        raise Conflict(f"The variable {body.key!r} exists already.")
    _set(api, caller, body.key, body.value, body.description)
    return json_answer(_view(api, _need(api, body.key)), 201)


@router.patch("/{variable_key:path}", responses=described(VariableView, also=(400, 404, 503)))
@allow("edit", "variable")
def patch_variable(api: Api, caller: Caller, variable_key: str, body: NewVariable, update_mask: Names = None) -> Response:
    """Change a variable's value, or with `update_mask` only its description."""
    row = _need(api, variable_key)
    if body.key != variable_key:
        raise Conflict(f"The body names {body.key!r}, the address {variable_key!r}.")
    if update_mask is not None and "value" not in update_mask:
        vault = api.vault()
        if vault is None:
            raise Conflict("This server was given no key, so it cannot keep the value while it changes the description.")
        body.value = vault.decrypt(row.value.decode(), f"variable {row.key!r}") if row.is_encrypted else row.value.decode()
    _set(api, caller, variable_key, body.value, body.description)
    return json_answer(_view(api, _need(api, variable_key)))


@router.delete("/{variable_key:path}", status_code=204)
@allow("edit", "variable")
def delete_variable(api: Api, caller: Caller, variable_key: str) -> Response:
    """Remove a variable."""
    _need(api, variable_key)
    api.control().call("delete_variable", actor=caller.name, key=variable_key)
    return Response(status_code=204)


def _need(api: Api, key: str) -> VariableRow:
    row = api.reader().variable(key)
    if row is None:
        known = [variable.key for variable in api.reader().variables()]
        raise NotFound(f"There is no variable {key!r}.{did_you_mean(key, known)}")
    return row


def _set(api: Api, caller: Caller, key: str, value: Any, description: str | None) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    api.control().call("set_variable", actor=caller.name, key=key, value=text, description=description)


def _view(api: Api, row: VariableRow) -> VariableView:
    value: str | None = None
    if not row.is_encrypted:
        value = row.value.decode()
    elif (vault := api.vault()) is not None:
        value = vault.decrypt(row.value.decode(), f"variable {row.key!r}")
    return VariableView(row.key, None if value is None else masked_text(value, row.key), row.description, row.is_encrypted)
