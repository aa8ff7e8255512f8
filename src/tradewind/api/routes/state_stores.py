"""State stores (Airflow 3.3): values that a task keeps between its tries, and values that belong to an asset."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict

from tradewind.api.auth.policy import allow
from tradewind.api.responses import (
    Api,
    Caller,
    Limit,
    Moment,
    Number,
    Offset,
    described,
    error_responses,
    invalid,
    json_response,
    page_size,
)
from tradewind.api.services import Services
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import DAY, iso, to_micros
from tradewind.model.rows import AssetStateEntry, TaskStateEntry
from tradewind.model.secret_names import MASK, is_secret, masked
from tradewind.store.views import Moment as ShownMoment
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2")

_TASK = "/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/state-store"
_ASSET = "/assets/{asset_id}/state-store"
_TASK_TAG: list[Any] = ["Task State Store"]
_ASSET_TAG: list[Any] = ["Asset State Store"]
MapIndex = Annotated[int, Query(ge=-1, le=2**31)]
_NEAR_MAX = 1_000
"""Number of keys that are searched for the nearest key to an unknown one."""


class TaskStateEntryView(msgspec.Struct, frozen=True):
    """One value of a task instance."""

    key: str
    value: Any
    updated_at: ShownMoment
    expires_at: ShownMoment | None


class TaskStates(msgspec.Struct, frozen=True):
    """The values of a task instance."""

    task_state_store: list[TaskStateEntryView]
    total_entries: int


class AssetStateWriter(msgspec.Struct, frozen=True):
    """Who wrote the value of an asset: a task instance, or a person through the API."""

    kind: Literal["task", "watcher", "api"]
    dag_id: str | None
    run_id: str | None
    task_id: str | None
    map_index: int | None


class AssetStateEntryView(msgspec.Struct, frozen=True):
    """One value of an asset."""

    key: str
    value: Any
    updated_at: ShownMoment
    last_updated_by: AssetStateWriter | None = None


class AssetStates(msgspec.Struct, frozen=True):
    """The values of an asset."""

    asset_state_store: list[AssetStateEntryView]
    total_entries: int


class NewState(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: Any
    expires_at: Moment | Literal["default"] | None = "default"


class NewValue(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: Any


# --- tasks ------------------------------------------------------------------------------------------------------------


@router.get(_TASK, tags=_TASK_TAG, responses=described(TaskStates, also=(404,)))
@allow("read", "task_instance")
def list_task_states(
    api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: MapIndex = -1, limit: Limit = 50, offset: Offset = 0
) -> Response:
    """The values of a task instance by key. Values under names of secrets are masked."""
    reader, run = api.reader(), _run_of(api, dag_id, dag_run_id, task_id, map_index)
    entries = reader.task_state_entries(run, task_id, map_index, limit=page_size(api, limit), offset=offset)
    total = reader.count_task_state_entries(run, task_id, map_index)
    return json_response(TaskStates([_task_view(entry) for entry in entries], total))


@router.delete(_TASK, status_code=204, tags=_TASK_TAG, responses=error_responses(404, 503))
@allow("edit", "task_instance")
def clear_task_states(
    api: Api,
    caller: Caller,
    dag_id: str,
    dag_run_id: str,
    task_id: str,
    map_index: MapIndex = -1,
    all_map_indices: bool = False,
) -> Response:
    """Delete all values of a task instance; with `all_map_indices` those of all task instances of the task."""
    command = c.DeleteTaskState(dag_id, dag_run_id, task_id, None, None if all_map_indices else map_index)
    api.control().call(command, actor=caller.name)
    return Response(status_code=204)


@router.get(_TASK + "/{key:path}", tags=_TASK_TAG, responses=described(TaskStateEntryView, also=(404,)))
@allow("read", "task_instance")
def get_task_state(api: Api, dag_id: str, dag_run_id: str, task_id: str, key: str, map_index: MapIndex = -1) -> Response:
    """One value of a task instance."""
    return json_response(_one_task_view(api, dag_id, dag_run_id, task_id, key, map_index))


@router.put(_TASK + "/{key:path}", status_code=204, tags=_TASK_TAG, responses=error_responses(404, 409, 503))
@allow("edit", "task_instance")
def put_task_state(
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, key: str, body: NewState, map_index: MapIndex = -1
) -> Response:
    """Write a value. `expires_at`: a moment; null: never; default: the setting `state_store.default_retention_days`."""
    command = c.SetTaskState(dag_id, dag_run_id, task_id, key, _text(body.value), map_index, _expiry(api, body.expires_at))
    api.control().call(command, actor=caller.name)
    return Response(status_code=204)


@router.patch(_TASK + "/{key:path}", tags=_TASK_TAG, responses=described(TaskStateEntryView, also=(404, 409, 503)))
@allow("edit", "task_instance")
def patch_task_state(
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, key: str, body: NewValue, map_index: MapIndex = -1
) -> Response:
    """Change an existing value. Its time of expiry stays."""
    command = c.SetTaskState(dag_id, dag_run_id, task_id, key, _text(body.value), map_index, only_existing=True)
    api.control().call(command, actor=caller.name)
    return json_response(_one_task_view(api, dag_id, dag_run_id, task_id, key, map_index))


@router.delete(_TASK + "/{key:path}", status_code=204, tags=_TASK_TAG, responses=error_responses(404, 503))
@allow("edit", "task_instance")
def delete_task_state(
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, key: str, map_index: MapIndex = -1
) -> Response:
    """Delete a value. Without effect if it does not exist, as in Airflow."""
    api.control().call(c.DeleteTaskState(dag_id, dag_run_id, task_id, key, map_index), actor=caller.name)
    return Response(status_code=204)


# --- assets -----------------------------------------------------------------------------------------------------------


@router.get(_ASSET, tags=_ASSET_TAG, responses=described(AssetStates, also=(404,)))
@allow("read", "asset")
def list_asset_states(api: Api, asset_id: Number, limit: Limit = 50, offset: Offset = 0) -> Response:
    """The values of an asset by key. Values under names of secrets are masked."""
    reader = api.reader()
    reader.asset_details(asset_id)
    entries = reader.asset_state_entries(asset_id, limit=page_size(api, limit), offset=offset)
    total = reader.count_asset_state_entries(asset_id)
    return json_response(AssetStates([_asset_view(entry) for entry in entries], total))


@router.delete(_ASSET, status_code=204, tags=_ASSET_TAG, responses=error_responses(404, 503))
@allow("edit", "asset")
def clear_asset_states(api: Api, caller: Caller, asset_id: Number) -> Response:
    """Delete all values of an asset."""
    api.control().call(c.DeleteAssetState(asset_id), actor=caller.name)
    return Response(status_code=204)


@router.get(_ASSET + "/{key:path}", tags=_ASSET_TAG, responses=described(AssetStateEntryView, also=(404,)))
@allow("read", "asset")
def get_asset_state(api: Api, asset_id: Number, key: str) -> Response:
    """One value of an asset."""
    reader = api.reader()
    reader.asset_details(asset_id)
    found = reader.asset_state_entries(asset_id, key=key)
    if not found:
        raise _no_key("Asset", key, [one.key for one in reader.asset_state_entries(asset_id, limit=_NEAR_MAX)])
    return json_response(_asset_view(found[0]))


@router.put(_ASSET + "/{key:path}", status_code=204, tags=_ASSET_TAG, responses=error_responses(404, 409, 503))
@allow("edit", "asset")
def put_asset_state(api: Api, caller: Caller, asset_id: Number, key: str, body: NewValue) -> Response:
    """Write a value."""
    api.control().call(c.SetAssetState(asset_id, key, _text(body.value)), actor=caller.name)
    return Response(status_code=204)


@router.delete(_ASSET + "/{key:path}", status_code=204, tags=_ASSET_TAG, responses=error_responses(404, 503))
@allow("edit", "asset")
def delete_asset_state(api: Api, caller: Caller, asset_id: Number, key: str) -> Response:
    """Delete a value. Without effect if it does not exist, as in Airflow."""
    api.control().call(c.DeleteAssetState(asset_id, key), actor=caller.name)
    return Response(status_code=204)


# --- what is shown ----------------------------------------------------------------------------------------------------


def _run_of(api: Services, dag_id: str, run_id: str, task_id: str, map_index: int) -> int:
    """The number of the run that has this task instance. Raises NotFound."""
    reader = api.reader()
    reader.task_instance(dag_id, run_id, task_id, map_index)
    return reader.need_run(dag_id, run_id).id


def _one_task_view(api: Services, dag_id: str, run_id: str, task_id: str, key: str, map_index: int) -> TaskStateEntryView:
    reader, run = api.reader(), _run_of(api, dag_id, run_id, task_id, map_index)
    found = reader.task_state_entries(run, task_id, map_index, key=key)
    if not found:
        raise _no_key("Task", key, [one.key for one in reader.task_state_entries(run, task_id, map_index, limit=_NEAR_MAX)])
    return _task_view(found[0])


def _no_key(whose: str, key: str, known: list[str]) -> NotFound:
    return NotFound(f"{whose} state store key {key!r} not found.{did_you_mean(key, known)}")


def _task_view(entry: TaskStateEntry) -> TaskStateEntryView:
    return TaskStateEntryView(entry.key, _shown(entry.key, entry.value), iso(entry.at) or "", iso(entry.expires_at))


def _asset_view(entry: AssetStateEntry) -> AssetStateEntryView:
    kind: Literal["task", "api"] = "task" if entry.writer == "task" else "api"
    writer = AssetStateWriter(kind, entry.source_dag, entry.source_run, entry.source_task, entry.source_index)
    return AssetStateEntryView(entry.key, _shown(entry.key, entry.value), iso(entry.at) or "", writer)


def _shown(key: str, stored: bytes) -> Any:
    if is_secret(key):
        return MASK
    value = msgspec.json.decode(stored)
    return masked(value) if isinstance(value, dict | list) else value


def _text(value: Any) -> str:
    if value is None:
        raise invalid(("body", "value"), "a state store cannot keep null; delete the key instead")
    return msgspec.json.encode(value).decode()


def _expiry(api: Services, given: datetime | Literal["default"] | None) -> int | None:
    if given == "default":
        days = api.config.state_retention_days
        return api.clock.wall() + days * DAY if days else None
    return None if given is None else to_micros(given)
