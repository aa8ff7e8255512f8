"""`airflow.executors`: the base class and the messages of executors in provider packages.

Tradewind has its own executors. An executor of a package can be imported and tested, but no service of Tradewind uses it.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, NamedTuple

from tradewind.airflow.compat import stats
from tradewind.airflow.compat.logging_mixin import LoggingMixin
from tradewind.airflow.compat.module_loading import import_string
from tradewind.airflow.compat.workloads import CallbackKey, CallbackState, ExecuteCallback, ExecuteTask
from tradewind.execution.task_instance import TaskInstanceKey
from tradewind.model.errors import NotYetSupported
from tradewind.model.states import TaskState
from tradewind.sdk.conf import conf

__all__ = [
    "PARALLELISM",
    "BaseExecutor",
    "EventBufferValueType",
    "ExecutorConf",
    "ExecutorLoader",
    "ExecutorName",
]

PARALLELISM = 32
EventBufferValueType = tuple[str | None, Any]
CommandType = list[str]
QueuedTaskInstanceType = tuple[CommandType, int, str | None, Any]
"""(command, priority, queue, task instance)."""
TaskTuple = tuple[Any, CommandType, str | None, Any]
"""(key of the task instance, command, queue, configuration)."""


class ExecutorName(NamedTuple):
    """An executor: its class, its alias and its team."""

    module_path: str
    alias: str | None = None
    team_name: str | None = None


class TaskEvent(NamedTuple):
    """An event for the audit log, which nobody writes here: Tradewind has its own executors."""

    event: str
    extra: str
    dag_id: str
    task_id: str
    run_id: str
    try_number: int
    map_index: int


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
    supports_callbacks = False
    supports_connection_test = False
    pre_assigns_external_executor_id = False
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
        if parallelism <= 0:
            raise ValueError(f"the parallelism of an executor is {parallelism}; it must be 1 or more")
        self.parallelism = parallelism
        self.team_name = team_name
        self.conf = ExecutorConf(team_name)
        self.queued_tasks: dict[Any, Any] = {}
        self.queued_callbacks: dict[Any, Any] = {}
        self.running: set[Any] = set()
        self.event_buffer: dict[Any, EventBufferValueType] = {}
        self.attempts: dict[Any, Any] = {}
        self._task_event_logs: deque[TaskEvent] = deque()

    def __repr__(self) -> str:
        team = f", team_name={self.team_name!r}" if self.team_name else ""
        return f"{type(self).__name__}(parallelism={self.parallelism}{team})"

    def start(self) -> None:
        """Called once; executors connect here."""

    def queue_workload(self, workload: Any, session: Any = None) -> None:
        """Keep a workload until the next heartbeat.

        Raises:
            NotImplementedError: it is a callback, and the executor does not support callbacks.
            ValueError: the executor does not know this kind of workload.
        """
        match workload:
            case ExecuteTask():
                self.queued_tasks[workload.ti.key] = workload
            case ExecuteCallback() if self.supports_callbacks:
                self.queued_callbacks[workload.key] = workload
            case ExecuteCallback():
                raise NotImplementedError(f"{type(self).__name__} does not support ExecuteCallback workloads")
            case _:
                raise ValueError(f"Un-handled workload type {type(workload).__name__!r} in {type(self).__name__}")

    def order_queued_tasks_by_priority(self) -> list[tuple[Any, Any]]:
        """The queued task instances with their keys, the highest priority first."""
        return sorted(self.queued_tasks.items(), key=lambda item: item[1].ti.priority_weight, reverse=True)

    def _get_workloads_to_schedule(self, open_slots: int) -> list[tuple[Any, Any]]:
        """The next workloads with their keys: callbacks first, then task instances by priority."""
        return [*self.queued_callbacks.items(), *self.order_queued_tasks_by_priority()][: max(open_slots, 0)]

    def trigger_tasks(self, open_slots: int) -> None:
        """Start the next workloads."""
        chosen = self._get_workloads_to_schedule(open_slots)
        for key, _workload in chosen:
            self.attempts.pop(key, None)
        if chosen:
            self._process_workloads([workload for _key, workload in chosen])

    def _process_workloads(self, workloads: Any) -> None:
        """Start these workloads. Executors have it."""
        raise NotImplementedError(f"{type(self).__name__} has no _process_workloads()")

    def heartbeat(self) -> None:
        """Called often: report the free slots, start workloads, then `sync`."""
        open_slots = self.parallelism - len(self.running)
        counts = {"open_slots": open_slots, "queued_tasks": len(self.queued_tasks) + len(self.queued_callbacks)}
        counts["running_tasks"] = len(self.running)
        for name, count in counts.items():
            tags = {"status": name.partition("_")[0], "executor_class_name": type(self).__name__, "team_name": self.team_name}
            stats.gauge(f"executor.{name}", value=count, tags={key: text for key, text in tags.items() if text is not None})
        self.trigger_tasks(open_slots)
        self.sync()

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
        self.change_state(key, _state_of(key, "failed"), info)

    def success(self, key: Any, info: Any = None) -> None:
        """Record that a task instance succeeded."""
        self.change_state(key, _state_of(key, "success"), info)

    def queued(self, key: Any, info: Any = None) -> None:
        """Record that a task instance is queued."""
        self.change_state(key, _state_of(key, "queued"), info)

    def running_state(self, key: Any, info: Any = None) -> None:
        """Record that a task instance runs."""
        self.change_state(key, _state_of(key, "running"), info, remove_running=False)

    def get_event_buffer(self, dag_ids: Any = None) -> dict[Any, EventBufferValueType]:
        """Return the recorded states of the workloads of these DAGs, or of all, and remove them from the buffer."""
        events = self.event_buffer
        found = {
            key: value for key, value in events.items() if dag_ids is None or getattr(key, "dag_id", None) in (None, *dag_ids)
        }
        self.event_buffer = {key: value for key, value in events.items() if key not in found}
        return found

    def has_task(self, task_instance: Any) -> bool:
        """Whether the executor has this task instance."""
        return task_instance.key in self.queued_tasks or task_instance.key in self.running

    @property
    def slots_available(self) -> int:
        """How many more task instances may run."""
        return self.parallelism - self.slots_occupied

    @property
    def slots_occupied(self) -> int:
        """How many task instances run or are queued."""
        return len(self.running) + len(self.queued_tasks) + len(self.queued_callbacks)

    def try_adopt_task_instances(self, tis: Any) -> Any:
        """Adopt no task instances of an executor that has ended. Returns all of them."""
        return tis

    def get_task_log(self, ti: Any, try_number: int) -> tuple[list[str], list[str]]:
        """Return no log: the executor has no log of a running task instance."""
        return [], []

    def log_task_event(self, *, event: str, extra: str, ti_key: Any) -> None:
        """Record an event of a task instance. Events of callbacks are left out."""
        if isinstance(ti_key, TaskInstanceKey):
            self._task_event_logs.append(TaskEvent(event, extra, *ti_key))

    def debug_dump(self) -> None:
        """Write the lists to the log."""
        self.log.info("queued: %d, running: %d", len(self.queued_tasks), len(self.running))

    @staticmethod
    def run_workload(*_args: Any, **_kwargs: Any) -> int:
        """Run a workload in Airflow's supervisor.

        Raises:
            NotYetSupported: always; Tradewind has its own executors.
        """
        raise NotYetSupported("executors of Airflow do not run here; Tradewind has its own (setting core.executor)")

    @staticmethod
    def get_cli_commands() -> list[Any]:
        """The commands that the executor adds to the command line: none."""
        return []


def _state_of(key: Any, state: str) -> Any:
    return CallbackState(state) if isinstance(key, CallbackKey) else TaskState(state)


_CELERY, _KUBERNETES = "airflow.providers.celery.executors", "airflow.providers.cncf.kubernetes.executors"
_CLASSES = {
    "LocalExecutor": "airflow.executors.local_executor.LocalExecutor",
    "SequentialExecutor": "airflow.executors.sequential_executor.SequentialExecutor",
    "CeleryExecutor": f"{_CELERY}.celery_executor.CeleryExecutor",
    "CeleryKubernetesExecutor": f"{_CELERY}.celery_kubernetes_executor.CeleryKubernetesExecutor",
    "KubernetesExecutor": f"{_KUBERNETES}.kubernetes_executor.KubernetesExecutor",
    "LocalKubernetesExecutor": f"{_KUBERNETES}.local_kubernetes_executor.LocalKubernetesExecutor",
}
"""Airflow's own name of an executor → its class."""


class ExecutorLoader:
    """Airflow's registry of executors."""

    @classmethod
    def get_default_executor_name(cls, team_name: str | None = None) -> ExecutorName:
        """The first executor of the setting core.executor."""
        return cls.get_executor_names()[0]._replace(team_name=team_name)

    @classmethod
    def get_executor_names(cls, *_args: Any, **_kwargs: Any) -> list[ExecutorName]:
        """The executors of the setting core.executor: `CeleryExecutor,mine:our.module.Executor`."""
        found = []
        for text in str(conf.get("core", "executor", fallback="") or "LocalExecutor").split(","):
            alias, _, path = text.strip().rpartition(":")
            if path in _CLASSES:
                alias, path = alias or path, _CLASSES[path]
            found.append(ExecutorName(path, alias or None))
        return found

    @classmethod
    def import_executor_cls(cls, executor_name: ExecutorName, *_args: Any) -> tuple[Any, str]:
        """The class of an executor, and where it was found.

        Raises:
            ImportError: there is no such class.
        """
        return import_string(executor_name.module_path), "module"

    @classmethod
    def load_executor(cls, *_args: Any, **_kwargs: Any) -> Any:
        """Make an executor.

        Raises:
            NotYetSupported: always; Tradewind has its own executors.
        """
        raise NotYetSupported("executors of Airflow do not run here; Tradewind has its own (setting core.executor)")
