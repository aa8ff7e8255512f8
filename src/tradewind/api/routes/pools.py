"""Pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.auth.guard import Identity
from tradewind.api.auth.policy import allow
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
    page_size,
    total_of,
)
from tradewind.api.routes.bulk import BulkBody, BulkResult, EntityChanges, execute, fields_to_change
from tradewind.api.routes.ranges import Pattern, Prefix, conditions
from tradewind.api.services import Services
from tradewind.api.shapes import Pools
from tradewind.model.errors import Conflict
from tradewind.model.phrases import english, phrase
from tradewind.store.views import PoolView
from tradewind.wire.commands import DeletePool, SetPool

router = APIRouter(prefix="/api/v2/pools", tags=["Pool"])


@router.get("", responses=described(Pools, also=(400,)))
@allow("read", "pool")
def list_pools(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    pool_name_pattern: Pattern = None,
    pool_name_prefix_pattern: Prefix = None,
    order_by: Order = None,
) -> Response:
    """List pools, with the use of their slots."""
    found = api.reader().list_pools(
        conditions=conditions({"name": pool_name_pattern}, {"name": pool_name_prefix_pattern}),
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or ("name",),
    )
    return json_response(Pools(found.rows, total_of(found, offset)))


@router.get("/{pool_name}", responses=described(PoolView, also=(404,)))
@allow("read", "pool")
def get_pool(api: Api, pool_name: str) -> Response:
    """One pool."""
    return json_response(api.reader().pool_details(pool_name))


class NewPool(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=256)
    slots: int = Field(ge=-1, le=2**31 - 1, description="-1 is unlimited.")
    description: str | None = None
    include_deferred: bool = False
    team_name: None = Field(default=None, description="Not supported yet.")


class PoolPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pool: str | None = None
    slots: int | None = Field(default=None, ge=-1, le=2**31 - 1)
    description: str | None = None
    include_deferred: bool | None = None
    team_name: None = Field(default=None, description="Not supported yet.")


@router.post("", status_code=201, responses=described(PoolView, 201, also=(409, 503)))
@allow("edit", "pool")
def post_pool(api: Api, caller: Caller, body: NewPool) -> Response:
    """Create a pool. 409: it exists."""
    reader = api.reader()
    if any(pool.name == body.name for pool in reader.pools()):
        raise Conflict(english(phrase("error_pool_exists", pool=body.name)))
    _set(api, caller, body.name, body.slots, body.description, body.include_deferred)
    return json_response(reader.pool_details(body.name), 201)


@router.patch("", responses=described(BulkResult, also=(400, 503)))
@allow("edit", "pool")
def bulk_pools(api: Api, caller: Caller, body: BulkBody[NewPool]) -> Response:
    """Create, change and delete pools."""
    reader = api.reader()

    def update(pool: NewPool, mask: Sequence[str] | None) -> None:
        _patch(api, caller, pool.name, _given(pool, mask))

    changes = EntityChanges(
        key=lambda pool: pool.name,
        existing=lambda keys: {pool.name for pool in reader.pools()} & set(keys),
        create=lambda pool: _set(api, caller, pool.name, pool.slots, pool.description, pool.include_deferred),
        update=update,
        delete=lambda name: api.control().call(DeletePool(name), actor=caller.name),
        what="pools",
    )
    return json_response(execute(body, changes))


@router.patch("/{pool_name}", responses=described(PoolView, also=(400, 404, 503)))
@allow("edit", "pool")
def patch_pool(api: Api, caller: Caller, pool_name: str, body: PoolPatch, update_mask: Names = None) -> Response:
    """Change the given fields; with `update_mask` only the fields that it names."""
    if body.pool not in (None, pool_name):
        raise HTTPException(400, "A pool cannot be renamed: DAG files use its name.")
    api.reader().pool_details(pool_name)
    _patch(api, caller, pool_name, _given(body, update_mask))
    return json_response(api.reader().pool_details(pool_name))


def _given(body: BaseModel, mask: Sequence[str] | None) -> dict[str, Any]:
    """Name → value of the fields to change."""
    return {name: getattr(body, name) for name in fields_to_change(body, mask)}


def _patch(api: Services, caller: Identity, name: str, given: Mapping[str, Any]) -> None:
    """Change these fields of a pool. A null stands for "no change", except for the description."""
    now = api.reader().pool_details(name)
    slots, deferred = given.get("slots"), given.get("include_deferred")
    _set(
        api,
        caller,
        name,
        now.slots if slots is None else slots,
        given.get("description", now.description),
        now.include_deferred if deferred is None else deferred,
    )


@router.delete("/{pool_name}", status_code=204, responses=error_responses(404, 409, 503))
@allow("edit", "pool")
def delete_pool(api: Api, caller: Caller, pool_name: str) -> Response:
    """Delete a pool."""
    api.reader().pool_details(pool_name)
    api.control().call(DeletePool(pool_name), actor=caller.name)
    return Response(status_code=204)


def _set(api: Services, caller: Identity, name: str, slots: int, description: str | None, include_deferred: bool) -> None:
    api.control().call(SetPool(name, slots, description, include_deferred), actor=caller.name)
