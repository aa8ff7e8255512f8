"""Connections. Passwords go in and never come out."""

from __future__ import annotations

import json

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator

from tradewind.api.auth.policy import allow
from tradewind.api.masking import masked_text
from tradewind.api.responses import Api, Caller, Limit, Offset, described, error_responses, json_response, page_of_names
from tradewind.api.shapes import Connections, ConnectionView
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.rows import ConnectionRow
from tradewind.model.secret_names import MASK
from tradewind.wire.commands import DeleteConnection, SetConnection

router = APIRouter(prefix="/api/v2/connections", tags=["Connection"])


@router.get("", responses=described(Connections))
@allow("read", "connection")
def list_connections(api: Api, limit: Limit = 50, offset: Offset = 0, connection_id_pattern: str | None = None) -> Response:
    """List connections by id, without their secrets."""
    rows, total = page_of_names(api, api.reader().connections(), lambda row: row.conn_id, connection_id_pattern, limit, offset)
    return json_response(Connections([_view(api, row) for row in rows], total))


@router.get("/{connection_id}", responses=described(ConnectionView, also=(404,)))
@allow("read", "connection")
def get_connection(api: Api, connection_id: str) -> Response:
    """One connection, without its secrets."""
    return json_response(_view(api, _need(api, connection_id)))


class NewConnection(BaseModel):
    model_config = ConfigDict(extra="forbid")

    connection_id: str = Field(max_length=200, pattern=r"^[\w.-]+$")
    conn_type: str = Field(min_length=1, max_length=500)
    description: str | None = None
    host: str | None = None
    login: str | None = None
    schema_: str | None = Field(default=None, alias="schema")
    port: int | None = Field(default=None, ge=0, le=65_535)
    password: str | None = None
    extra: str | None = Field(default=None, description="A JSON object, as text.")
    team_name: None = Field(default=None, description="Not supported yet.")

    @field_validator("extra")
    @classmethod
    def _object(cls, extra: str | None) -> str | None:
        if not extra:
            return None
        try:
            if isinstance(json.loads(extra), dict):
                return extra
        except ValueError:
            pass  # the error below
        raise ValueError('extra must be a JSON object as text, like {"region": "eu-west-1"}')


@router.post("", status_code=201, responses=described(ConnectionView, 201, also=(409, 503)))
@allow("edit", "connection")
def post_connection(api: Api, caller: Caller, body: NewConnection) -> Response:
    """Create a connection. 409: it exists."""
    if api.reader().connection(body.connection_id) is not None:
        raise Conflict(f"The connection {body.connection_id!r} exists already.")
    command = SetConnection(
        body.connection_id,
        body.conn_type,
        body.description,
        body.host,
        body.login,
        body.port,
        body.schema_,
        body.password,
        body.extra,
    )
    api.control().call(command, actor=caller.name)
    return json_response(_view(api, _need(api, body.connection_id)), 201)


@router.delete("/{connection_id}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "connection")
def delete_connection(api: Api, caller: Caller, connection_id: str) -> Response:
    """Delete a connection."""
    _need(api, connection_id)
    api.control().call(DeleteConnection(connection_id), actor=caller.name)
    return Response(status_code=204)


def _need(api: Api, conn_id: str) -> ConnectionRow:
    row = api.reader().connection(conn_id)
    if row is None:
        known = [connection.conn_id for connection in api.reader().connections()]
        raise NotFound(f"There is no connection {conn_id!r}.{did_you_mean(conn_id, known)}")
    return row


def _view(api: Api, row: ConnectionRow) -> ConnectionView:
    extra: str | None = None
    if row.extra is not None:
        vault = api.vault()
        extra = MASK if vault is None else masked_text(vault.decrypt(row.extra.decode(), f"connection {row.conn_id!r}"))
    return ConnectionView(
        connection_id=row.conn_id,
        conn_type=row.conn_type,
        description=row.description,
        host=row.host,
        login=row.login,
        schema=row.schema,
        port=row.port,
        password=None if row.password is None else MASK,
        extra=extra,
    )
