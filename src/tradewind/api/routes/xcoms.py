"""XComs: list, read, write and delete them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.auth.policy import allow
from tradewind.api.responses import (
    Api,
    Caller,
    Limit,
    Number,
    Offset,
    Order,
    Text,
    When,
    described,
    error_responses,
    json_response,
    moments,
    page_size,
    total_of,
)
from tradewind.api.routes.ranges import Pattern, Prefix, conditions
from tradewind.api.services import Services
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.rows import XComWrite
from tradewind.model.secret_names import MASK, is_secret, masked
from tradewind.storage.local_spills import LocalSpills
from tradewind.store.views import XComEntryView
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/xcomEntries", tags=["XCom"])

MapIndex = Annotated[int, Query(ge=-1, le=2**31)]

SHOWN_MAX = 4 * 1024 * 1024
"""Size of the largest value that is returned, bytes."""


class XComs(msgspec.Struct, frozen=True):
    """A page of XComs, without their values."""

    xcom_entries: list[XComEntryView]
    total_entries: int


class XComValueView(XComEntryView, frozen=True, kw_only=True):
    """One XCom with its value: any JSON; with `stringify` its text."""

    value: Any


@router.get("", responses=described(XComs, also=(400, 404)))
@allow("read", "task_instance")
def list_xcoms(
    api: Api,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    xcom_key: Text = None,
    map_index: Annotated[int | None, Query(ge=-1, le=2**31)] = None,
    map_index_filter: Number | None = None,
    xcom_key_pattern: Pattern = None,
    xcom_key_prefix_pattern: Prefix = None,
    dag_display_name_pattern: Pattern = None,
    dag_display_name_prefix_pattern: Prefix = None,
    run_id_pattern: Pattern = None,
    run_id_prefix_pattern: Prefix = None,
    task_id_pattern: Pattern = None,
    task_id_prefix_pattern: Prefix = None,
    logical_date_gte: When = None,
    logical_date_gt: When = None,
    logical_date_lte: When = None,
    logical_date_lt: When = None,
    run_after_gte: When = None,
    run_after_gt: When = None,
    run_after_lte: When = None,
    run_after_lt: When = None,
    limit: Limit = 50,
    offset: Offset = 0,
    order_by: Order = None,
) -> Response:
    """List XComs. `~` as DAG, run or task: of all of them."""
    given = locals()
    dates = {f"{field}_{how}" for field in ("logical_date", "run_after") for how in ("gte", "gt", "lte", "lt")}
    index = map_index if map_index is not None else map_index_filter
    found = api.reader().xcom_entries(
        dag_id,
        dag_run_id,
        task_id,
        conditions=conditions(
            {
                "key": xcom_key_pattern,
                "dag_display_name": dag_display_name_pattern,
                "run_id": run_id_pattern,
                "task_id": task_id_pattern,
            },
            {
                "key": xcom_key_prefix_pattern,
                "dag_display_name": dag_display_name_prefix_pattern,
                "run_id": run_id_prefix_pattern,
                "task_id": task_id_prefix_pattern,
            },
            {"key": None if xcom_key is None else [xcom_key], "map_index": None if index is None else [index]},
            moments({name: given[name] for name in dates}),
        ),
        limit=page_size(api, limit),
        offset=offset,
        order_by=order_by or (),
    )
    return json_response(XComs(found.rows, total_of(found, offset)))


@router.get("/{xcom_key:path}", responses=described(XComValueView, also=(404,)))
@allow("read", "task_instance")
def get_xcom(
    api: Api,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    xcom_key: str,
    map_index: MapIndex = -1,
    deserialize: Annotated[bool, Query(description="Has no effect: the value is always JSON.")] = False,
    stringify: Annotated[bool, Query(description="The value as text, as Python prints it.")] = False,
) -> Response:
    """One XCom. Values under names of secrets are masked."""
    value = _value(api, dag_id, dag_run_id, task_id, xcom_key, map_index)
    return json_response(_view(api, dag_id, dag_run_id, task_id, xcom_key, map_index, value, stringify))


class NewXCom(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: str = Field(min_length=1, max_length=512)
    value: Any
    map_index: Number = -1


class XComPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: Any
    map_index: Number = -1


@router.post("", status_code=201, responses=described(XComValueView, 201, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def post_xcom(api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, body: NewXCom) -> Response:
    """Write an XCom of a task instance. 409: it exists."""
    command = c.SetXCom(dag_id, dag_run_id, task_id, body.key, _text(body.value), body.map_index, replace=False)
    api.control().call(command, actor=caller.name)
    return json_response(_view(api, dag_id, dag_run_id, task_id, body.key, body.map_index, body.value, False), 201)


@router.patch("/{xcom_key:path}", responses=described(XComValueView, also=(400, 404, 409, 503)))
@allow("edit", "task_instance")
def patch_xcom(
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, xcom_key: str, body: XComPatch
) -> Response:
    """Change the value of an XCom."""
    _need(api, dag_id, dag_run_id, task_id, xcom_key, body.map_index)
    command = c.SetXCom(dag_id, dag_run_id, task_id, xcom_key, _text(body.value), body.map_index)
    api.control().call(command, actor=caller.name)
    return json_response(_view(api, dag_id, dag_run_id, task_id, xcom_key, body.map_index, body.value, False))


@router.delete("/{xcom_key:path}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "task_instance")
def delete_xcom(
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, xcom_key: str, map_index: MapIndex = -1
) -> Response:
    """Delete an XCom."""
    api.control().call(c.DeleteXCom(dag_id, dag_run_id, task_id, xcom_key, map_index), actor=caller.name)
    return Response(status_code=204)


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _need(api: Services, dag_id: str, run_id: str, task_id: str, key: str, map_index: int) -> XComWrite:
    """The XCom. Raises NotFound with the existing keys."""
    reader = api.reader()
    reader.need_dag(dag_id)
    run = reader.need_run(dag_id, run_id)
    found = reader.list_xcoms(run.id, task_id=task_id, map_index=map_index, key=key, limit=1)
    if not found:
        keys = sorted({one.key for one in reader.list_xcoms(run.id, task_id=task_id, map_index=map_index, limit=100)})
        raise NotFound(f"XCom entry with key: `{key}` not found.{did_you_mean(key, keys)}")
    return found[0]


def _value(api: Services, dag_id: str, run_id: str, task_id: str, key: str, map_index: int) -> Any:
    row = _need(api, dag_id, run_id, task_id, key, map_index)
    if row.size > SHOWN_MAX:
        raise HTTPException(
            400,
            f"This value has {row.size} bytes, more than the {SHOWN_MAX} that the API returns; read it with: tradewind xcom get",
        )
    data = row.value
    if row.spill is not None:
        try:
            data = LocalSpills(api.config.spills).read(row.spill)
        except OSError:
            raise NotFound(f"The file of the XCom {key!r} does not exist any more.") from None
    if not data:
        return None
    if is_secret(key):
        return MASK
    found = msgspec.json.decode(data)
    return masked(found) if isinstance(found, dict | list) else found


def _view(
    api: Services, dag_id: str, run_id: str, task_id: str, key: str, map_index: int, value: Any, stringify: bool
) -> XComValueView:
    found = api.reader().xcom_entries(
        dag_id, run_id, task_id, conditions=conditions(among={"key": [key], "map_index": [map_index]}), limit=1
    )
    if not found.rows:
        raise NotFound(f"XCom entry with key: `{key}` not found.")
    shown = value if not stringify or value is None else str(value)
    return XComValueView(**msgspec.structs.asdict(found.rows[0]), value=shown)
