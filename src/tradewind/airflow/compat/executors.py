"""`airflow.executors`: the base class and the messages of executors in provider packages.

Tradewind has its own executors. An executor of a package can be imported and inspected, but it never runs.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from tradewind.airflow.compat.logging_mixin import LoggingMixin
from tradewind.model.errors import NotYetSupported
from tradewind.sdk.conf import conf

__all__ = [
    "PARALLELISM",
    "All",
    "BaseExecutor",
    "EventBufferValueType",
    "ExecuteCallback",
    "ExecuteTask",
    "ExecutorConf",
    "ExecutorLoader",
    "ExecutorName",
    "ExecutorWorkload",
    "RunTrigger",
    "TaskInstanceUuid",
    "WorkloadKey",
    "WorkloadState",
    "WorkloadType",
]

PARALLELISM = 32
TaskInstanceUuid = UUID
WorkloadKey = Any
WorkloadState = Any
EventBufferValueType = tuple[str | None, Any]
CommandType = list[str]
QueuedTaskInstanceType = tuple[CommandType, int, str | None, Any]
"""(command, priority, queue, task instance)."""
TaskTuple = tuple[Any, CommandType, str | None, Any]
"""(key of the task instance, command, queue, configuration)."""


class WorkloadType(StrEnum):
    """The kind of a workload for an executor."""

    EXECUTE_TASK = "ExecuteTask"
    EXECUTE_CALLBACK = "ExecuteCallback"
    RUN_TRIGGER = "RunTrigger"
    TEST_CONNECTION = "TestConnection"


class _Workload(BaseModel):
    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True)


class ExecuteTask(_Workload):
    """Run a task instance."""

    type: str = WorkloadType.EXECUTE_TASK


class ExecuteCallback(_Workload):
    """Run a callback."""

    type: str = WorkloadType.EXECUTE_CALLBACK


class RunTrigger(_Workload):
    """Run a trigger."""

    type: str = WorkloadType.RUN_TRIGGER


All = ExecutorWorkload = ExecuteTask | ExecuteCallback | RunTrigger


class ExecutorName(NamedTuple):
    """An executor: its class, its alias and its team."""

    module_path: str
    alias: str | None = None
    team_name: str | None = None


class ExecutorConf:
    """The settings of an executor, optionally those of one team."""

    def __init__(self, team_name: str | None = None) -> None:
        self.team_name = team_name

    def __getattr__(self, name: str) -> Any:
        return getattr(conf, name)


class BaseExecutor(LoggingMixin):
    """Base class of executors: their lists of task instances, and flags for what they support."""

    active_spans: ClassVar[dict[str, Any]] = {}
    supports_ad_hoc_ti_run = False
    supports_multi_team = False
    sentry_integration = ""
    is_local = False
    is_production = True
    is_single_threaded = False
    change_sensor_mode_to_reschedule = False
    serve_logs = False
    job_id: int | str | None = None
    name: ExecutorName | None = None
    callback_sink: Any = None

    def __init__(self, parallelism: int = PARALLELISM, team_name: str | None = None) -> None:
        self.parallelism = parallelism
        self.team_name = team_name
        self.conf = ExecutorConf(team_name)
        self.queued_tasks: dict[Any, Any] = {}
        self.queued_callbacks: dict[Any, Any] = {}
        self.running: set[Any] = set()
        self.event_buffer: dict[Any, EventBufferValueType] = {}
        self.attempts: dict[Any, Any] = {}
        self._task_event_logs: deque[Any] = deque()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(parallelism={self.parallelism})"

    def start(self) -> None:
        """Called once; executors connect here."""

    def sync(self) -> None:
        """Called often; executors check their running tasks here."""

    def end(self) -> None:
        """Called once, at the end."""

    def terminate(self) -> None:
        """Called when the scheduler is killed."""

    def change_state(self, key: Any, state: Any, info: Any = None, remove_running: bool = True) -> None:
        """Record the new state of a task instance."""
        if remove_running:
            self.running.discard(key)
        self.event_buffer[key] = state, info

    def fail(self, key: Any, info: Any = None) -> None:
        """Record that a task instance failed."""
        self.change_state(key, "failed", info)

    def success(self, key: Any, info: Any = None) -> None:
        """Record that a task instance succeeded."""
        self.change_state(key, "success", info)

    def queued(self, key: Any, info: Any = None) -> None:
        """Record that a task instance is queued."""
        self.change_state(key, "queued", info)

    def running_state(self, key: Any, info: Any = None) -> None:
        """Record that a task instance runs."""
        self.change_state(key, "running", info, remove_running=False)

    def get_event_buffer(self, dag_ids: Any = None) -> dict[Any, EventBufferValueType]:
        """Return the recorded states of task instances and remove them from the buffer."""
        found, self.event_buffer = self.event_buffer, {}
        return found

    def has_task(self, task_instance: Any) -> bool:
        """Whether the executor has this task instance."""
        return task_instance.key in self.queued_tasks or task_instance.key in self.running

    @property
    def slots_available(self) -> int:
        """How many more task instances may run."""
        return self.parallelism - len(self.running) - len(self.queued_tasks)

    @property
    def slots_occupied(self) -> int:
        """How many task instances run or are queued."""
        return len(self.running) + len(self.queued_tasks)

    def try_adopt_task_instances(self, tis: Any) -> Any:
        """Adopt no task instances of an executor that has ended. Returns all of them."""
        return tis

    def get_task_log(self, ti: Any, try_number: int) -> tuple[list[str], list[str]]:
        """Return no log: the executor has no log of a running task instance."""
        return [], []

    def log_task_event(self, *, event: str, extra: str, ti_key: Any) -> None:
        """Record an event for the audit log of the task."""
        self._task_event_logs.append((event, extra, ti_key))

    def debug_dump(self) -> None:
        """Write the lists to the log."""
        self.log.info("queued: %d, running: %d", len(self.queued_tasks), len(self.running))

    @staticmethod
    def get_cli_commands() -> list[Any]:
        """The commands that the executor adds to the command line: none."""
        return []


class ExecutorLoader:
    """Airflow's registry of executors."""

    @classmethod
    def get_default_executor_name(cls, team_name: str | None = None) -> ExecutorName:
        """The executor of the settings."""
        return ExecutorName(conf.get("core", "executor", fallback="LocalExecutor"))

    @classmethod
    def load_executor(cls, *_args: Any, **_kwargs: Any) -> Any:
        """Make an executor.

        Raises:
            NotYetSupported: always; Tradewind has its own executors.
        """
        raise NotYetSupported("executors of Airflow do not run here; Tradewind has its own (setting core.executor)")
