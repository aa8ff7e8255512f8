"""`airflow.executors.workloads`: the messages that Airflow's scheduler gives to executors.

Tradewind's executors get other messages. Executors of provider packages, and their tests, make and read these.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator

from tradewind.airflow.compat.execution_api import TaskInstance
from tradewind.airflow.compat.supervisor_comms import BundleInfo
from tradewind.execution.task_instance import TaskInstanceKey
from tradewind.model.states import TaskState

__all__ = [
    "All",
    "BaseWorkload",
    "BundleInfo",
    "CallbackDTO",
    "CallbackFetchMethod",
    "CallbackKey",
    "CallbackState",
    "ExecuteCallback",
    "ExecuteTask",
    "ExecutorWorkload",
    "RunTrigger",
    "TaskInstanceDTO",
    "TaskInstanceUuid",
    "WorkloadKey",
    "WorkloadState",
    "WorkloadType",
]

TaskInstanceUuid = UUID
WorkloadKey = Any
WorkloadState = Any


class WorkloadType(StrEnum):
    """The kind of a workload for an executor."""

    EXECUTE_TASK = "ExecuteTask"
    EXECUTE_CALLBACK = "ExecuteCallback"
    RUN_TRIGGER = "RunTrigger"
    TEST_CONNECTION = "TestConnection"


class CallbackFetchMethod(StrEnum):
    """How an executor finds a callback."""

    DAG_ATTRIBUTE = "dag_attribute"
    IMPORT_PATH = "import_path"


class CallbackState(StrEnum):
    """The state of a callback."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


@dataclass(frozen=True)
class CallbackKey:
    """Identifies a callback."""

    id: str


class TaskInstanceDTO(TaskInstance):
    """A task instance as executors get it. `queue`, `pool_slots` and `priority_weight` are those of the task."""

    external_executor_id: str | None = Field(default=None, exclude=True)
    executor_config: dict[str, Any] | None = Field(default=None, exclude=True)

    @property
    def key(self) -> TaskInstanceKey:
        """Identifies the try."""
        return TaskInstanceKey(self.dag_id, self.task_id, self.run_id, self.try_number, self.map_index)


class CallbackDTO(BaseModel):
    """A callback as executors get it."""

    id: str
    fetch_method: CallbackFetchMethod
    data: dict[str, Any]

    @field_validator("id", mode="before")
    @classmethod
    def _text(cls, given: Any) -> Any:
        return str(given) if isinstance(given, UUID) else given

    @property
    def key(self) -> CallbackKey:
        """Identifies the callback."""
        return CallbackKey(self.id)


class BaseWorkload:
    """Base of rows of Airflow's database that become workloads."""

    def get_dag_id(self) -> str | None:
        """The DAG to which the workload belongs. Subclasses have it."""
        raise NotImplementedError(f"{type(self).__name__} has no get_dag_id()")

    def get_executor_name(self) -> str | None:
        """The executor of the workload. Subclasses have it."""
        raise NotImplementedError(f"{type(self).__name__} has no get_executor_name()")


class _Workload(BaseModel):
    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True, populate_by_name=True)

    token: str = Field(default="", repr=False)
    dag_rel_path: os.PathLike[str] | None = None
    bundle_info: BundleInfo | None = None
    log_path: str | None = None

    @property
    def sort_key(self) -> int:
        """The order among workloads of the same kind: the smallest first."""
        return 0

    @property
    def running_state(self) -> CallbackState | None:
        """The state that an executor reports at the start; None: no state."""
        return None


class ExecuteTask(_Workload):
    """Run a task instance."""

    ti: TaskInstanceDTO
    sentry_integration: str = ""
    type: str = Field(default=WorkloadType.EXECUTE_TASK)

    success_state: TaskState = Field(default=TaskState.SUCCESS, exclude=True, repr=False)
    failure_state: TaskState = Field(default=TaskState.FAILED, exclude=True, repr=False)

    @property
    def key(self) -> TaskInstanceKey:
        """Identifies the try."""
        return self.ti.key

    @property
    def display_name(self) -> str:
        """The id of the task instance."""
        return str(self.ti.id)

    @classmethod
    def make(
        cls,
        ti: Any,
        dag_rel_path: Path | None = None,
        generator: Any = None,
        bundle_info: BundleInfo | None = None,
        sentry_integration: str = "",
    ) -> ExecuteTask:
        """A workload without a log path from any object with the attributes of a task instance.

        Args:
            generator: ignored; the workload has no token.
        """
        del generator
        made = TaskInstanceDTO.model_validate(ti, from_attributes=True)
        where = dag_rel_path if dag_rel_path is not None else Path(getattr(ti.dag_model, "relative_fileloc", None) or "")
        bundle = bundle_info or BundleInfo(name=ti.dag_model.bundle_name, version=ti.dag_run.bundle_version)
        return cls(ti=made, dag_rel_path=where, bundle_info=bundle, sentry_integration=sentry_integration)


class ExecuteCallback(_Workload):
    """Run a callback."""

    callback: CallbackDTO
    type: str = Field(default=WorkloadType.EXECUTE_CALLBACK)

    success_state: CallbackState = Field(default=CallbackState.SUCCESS, exclude=True, repr=False)
    failure_state: CallbackState = Field(default=CallbackState.FAILED, exclude=True, repr=False)

    @property
    def key(self) -> CallbackKey:
        """Identifies the callback."""
        return self.callback.key

    @property
    def display_name(self) -> str:
        """The name of the function, or the id of the callback."""
        return str(self.callback.data.get("path") or self.callback.id).rpartition(".")[2]

    @property
    def running_state(self) -> CallbackState:
        return CallbackState.RUNNING


class RunTrigger(_Workload):
    """Run a trigger."""

    type: str = WorkloadType.RUN_TRIGGER


All = ExecutorWorkload = ExecuteTask | ExecuteCallback | RunTrigger
