"""Connections. Passwords go in and never come out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator

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
from tradewind.api.shapes import Connections, ConnectionView
from tradewind.model.errors import ConfigError, Conflict, NotFound, did_you_mean
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import ConnectionRow
from tradewind.model.secret_names import MASK
from tradewind.sdk.default_connections import DEFAULT_CONNECTIONS
from tradewind.wire.commands import DeleteConnection, SetConnection

router = APIRouter(prefix="/api/v2/connections", tags=["Connection"])


@router.get("", responses=described(Connections))
@allow("read", "connection")
def list_connections(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    connection_id_pattern: Pattern = None,
    connection_id_prefix_pattern: Prefix = None,
    order_by: Order = None,
) -> Response:
    """List connections by id, without their secrets."""
    rows, total = page_of_names(
        api,
        api.reader().connections(),
        lambda row: row.conn_id,
        limit,
        offset,
        pattern=connection_id_pattern,
        prefix=connection_id_prefix_pattern,
        order_by=order_by,
        orders=_ORDERS,
    )
    return json_response(Connections([_view(api, row) for row in rows], total))


_ORDERS: dict[str, Callable[[ConnectionRow], Any]] = {
    "id": lambda row: row.conn_id,
    "conn_id": lambda row: row.conn_id,
    "connection_id": lambda row: row.conn_id,
    "conn_type": lambda row: row.conn_type,
    "description": lambda row: row.description,
    "host": lambda row: row.host,
    "port": lambda row: row.port,
}


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
        raise Conflict(english(phrase("error_connection_exists", connection=body.connection_id)))
    _create(api, caller, body)
    return json_response(_view(api, _need(api, body.connection_id)), 201)


@router.patch("", responses=described(BulkResult, also=(400, 503)))
@allow("edit", "connection")
def bulk_connections(api: Api, caller: Caller, body: BulkBody[NewConnection]) -> Response:
    """Create, change and delete connections."""
    reader = api.reader()
    changes: EntityChanges[NewConnection] = EntityChanges(
        key=lambda connection: connection.connection_id,
        existing=lambda keys: {key for key in keys if reader.connection(key) is not None},
        create=lambda connection: _create(api, caller, connection),
        update=lambda connection, mask: _patch(api, caller, connection, mask),
        delete=lambda key: api.control().call(DeleteConnection(key), actor=caller.name),
        what="connections",
    )
    return json_response(execute(body, changes))


@router.patch("/{connection_id}", responses=described(ConnectionView, also=(400, 404, 503)))
@allow("edit", "connection")
def patch_connection(api: Api, caller: Caller, connection_id: str, body: NewConnection, update_mask: Names = None) -> Response:
    """Change the given fields of a connection; with `update_mask` only the fields that it names.

    A password, or a value in the extra, that is the mask `***` stays as it is.
    """
    _need(api, connection_id)
    if body.connection_id != connection_id:
        raise HTTPException(400, f"The id in the body is {body.connection_id!r}, the id in the path is {connection_id!r}.")
    _patch(api, caller, body, update_mask)
    return json_response(_view(api, _need(api, connection_id)))


@router.post("/defaults", status_code=204, responses=error_responses(503))
@allow("edit", "connection")
def create_default_connections(api: Api, caller: Caller) -> Response:
    """Create the connections of a new database of Airflow (`http_default`, `postgres_default` …) that do not exist yet."""
    known = {row.conn_id for row in api.reader().connections()}
    for conn_id, parts in DEFAULT_CONNECTIONS.items():
        if conn_id not in known:
            extra = {"extra": json.dumps(parts["extra"])} if "extra" in parts else {}
            api.control().call(SetConnection(conn_id, **{**parts, **extra}), actor=caller.name)
    return Response(status_code=204)


def _create(api: Services, caller: Identity, body: NewConnection) -> None:
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


def _patch(api: Services, caller: Identity, body: NewConnection, mask: Sequence[str] | None) -> None:
    """Raises ConfigError: the present secrets cannot be decrypted in this process."""
    now = _need(api, body.connection_id)
    given = fields_to_change(body, mask)

    def field(name: str, present: Any) -> Any:
        return getattr(body, "schema_" if name == "schema" else name) if name in given else present

    password, extra = _secret(api, now, now.password), _secret(api, now, now.extra)
    command = SetConnection(
        now.conn_id,
        field("conn_type", now.conn_type),
        field("description", now.description),
        field("host", now.host),
        field("login", now.login),
        field("port", now.port),
        field("schema", now.schema),
        password if "password" in given and body.password == MASK else field("password", password),
        merged_extra(body.extra, extra) if "extra" in given else extra,
    )
    api.control().call(command, actor=caller.name)


def _secret(api: Services, row: ConnectionRow, stored: bytes | None) -> str | None:
    if stored is None:
        return None
    vault = api.vault()
    if vault is None:
        raise ConfigError("This server has no Fernet key, so it cannot change a connection that has secrets.")
    return vault.decrypt(stored.decode(), f"connection {row.conn_id!r}")


class Secrets(NamedTuple):
    """The secrets of a connection, decrypted."""

    password: str | None
    extra: str | None


def stored_secrets(api: Services, conn_id: str, extra: str | None) -> Secrets:
    """The stored password, and `extra` with the stored values in place of masks. Nothing is stored: the masks stay."""
    row = api.reader().connection(conn_id)
    if row is None:
        return Secrets(None, extra)
    return Secrets(_secret(api, row, row.password), merged_extra(extra, _secret(api, row, row.extra)))


def merged_extra(given: str | None, present: str | None) -> str | None:
    """The new extra. A value that is the mask stands for the present value under the same key."""
    if given is None or present is None:
        return given
    try:
        old = json.loads(present)
    except ValueError:
        return given
    return json.dumps(_unmasked(json.loads(given), old))


def _unmasked(new: Any, old: Any) -> Any:
    if isinstance(new, dict) and isinstance(old, dict):
        return {name: _unmasked(value, old.get(name)) for name, value in new.items()}
    return old if new == MASK and old is not None else new


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
        raise NotFound(english(phrase("error_no_connection", connection=conn_id)) + did_you_mean(conn_id, known))
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
