"""Objects of Airflow 3's API between a task and the API server, for tests: the run, the task instance, and their context.

Tradewind's tasks get a `Workload` instead. Fields that the classes do not define are stored unchanged.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AssetEventDagRunReference",
    "AssetReferenceAssetEventDagRun",
    "ConnectionResponse",
    "DagRun",
    "HITLDetailResponse",
    "TIRunContext",
    "TaskInstance",
    "VariableResponse",
    "XComResponse",
]


class _Model(BaseModel):
    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True, populate_by_name=True)


class TaskInstance(_Model):
    """A task instance that is to be executed."""

    id: UUID | str | None = None
    task_id: str
    dag_id: str
    run_id: str
    try_number: int = 1
    map_index: int = -1
    hostname: str | None = None
    dag_version_id: UUID | str | None = None
    queue: str = "default"
    pool_slots: int = 1
    priority_weight: int = 1
    context_carrier: dict[str, Any] | None = None


class AssetReferenceAssetEventDagRun(_Model):
    """The asset of an event."""

    name: str | None = None
    uri: str | None = None
    extra: dict[str, Any] = {}


class AssetEventDagRunReference(_Model):
    """An asset event that has started a run."""

    asset: Any = None
    extra: dict[str, Any] = {}
    source_task_id: str | None = None
    source_dag_id: str | None = None
    source_run_id: str | None = None
    source_map_index: int | None = None
    source_aliases: list[Any] = []
    timestamp: datetime | None = None


class DagRun(_Model):
    """A run."""

    dag_id: str
    run_id: str
    logical_date: datetime | None = None
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None
    run_after: datetime | None = None
    start_date: datetime | None = None
    end_date: datetime | None = None
    clear_number: int = 0
    run_type: Any = "manual"
    state: Any = "running"
    conf: dict[str, Any] | None = None
    triggering_user_name: str | None = None
    consumed_asset_events: list[Any] = []
    partition_key: str | None = None
    note: str | None = None


class TIRunContext(_Model):
    """The information about its run that a task instance gets at its start."""

    dag_run: DagRun
    task_reschedule_count: int = 0
    max_tries: int = 0
    variables: list[Any] = []
    connections: list[Any] = []
    upstream_map_indexes: dict[str, Any] | None = None
    next_method: str | None = None
    next_kwargs: Any = None
    xcom_keys_to_clear: list[str] = []
    should_retry: bool = False
    start_date: datetime | None = None


class ConnectionResponse(_Model):
    """A connection. The attribute `schema_` is its schema, because pydantic uses the name `schema`."""

    conn_id: str
    conn_type: str | None = None
    host: str | None = None
    schema_: str | None = Field(default=None, alias="schema")
    login: str | None = None
    password: str | None = None
    port: int | None = None
    extra: str | None = None


class VariableResponse(_Model):
    """A variable."""

    key: str
    value: str | None = None


class XComResponse(_Model):
    """An XCom."""

    key: str
    value: Any = None


class HITLDetailResponse(_Model):
    """The answer of a person to a task that waits for one."""

    response_received: bool = False
    responded_by_user: Any = None
    responded_at: datetime | None = None
    chosen_options: list[str] | None = None
    params_input: dict[str, Any] = {}
