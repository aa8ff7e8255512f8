"""Base classes of triggers and of their events.

    class FileArrived(BaseTrigger):
        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

        def serialize(self) -> tuple[str, dict[str, Any]]:
            return "my_package.triggers.FileArrived", {"path": self.path}

        async def run(self) -> AsyncIterator[TriggerEvent]:
            while not os.path.exists(self.path):
                await asyncio.sleep(5)
            yield TriggerEvent({"path": self.path})

A trigger must not block, because many triggers share one event loop. Calls to Tradewind (`Connection.get`, `Variable.get`) block
until the answer arrives: call them through `asyncio.to_thread`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tradewind.model.states import Outcome
from tradewind.model.waits import Wait
from tradewind.sdk.templater import Templater


class TriggerEvent:
    """The event that a trigger fires. `payload` (any value that an XCom can be) is passed to the task as `event`."""

    def __init__(self, payload: Any = None, **kwargs: Any) -> None:
        self.payload = kwargs or payload

    def __repr__(self) -> str:
        return f"TriggerEvent({self.payload!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.payload == self.payload

    __hash__ = None  # type: ignore[assignment]  # its payload may be a mapping


@dataclass
class StartTriggerArgs:
    """The trigger that an operator with `start_from_trigger = True` waits for first; see `BaseOperator`.

    Attributes:
        trigger_cls: import path of the trigger class.
        next_method: name of the operator's method that is called when the trigger has fired.
        trigger_kwargs: arguments of the trigger; they may contain templates.
        next_kwargs: further arguments of the method.
        timeout: how long to wait; after that the task fails.
    """

    trigger_cls: str
    next_method: str
    trigger_kwargs: dict[str, Any] | None = None
    next_kwargs: dict[str, Any] | None = None
    timeout: timedelta | None = None


class BaseTaskEndEvent(TriggerEvent):
    """An event that ends the task without another attempt.

    Args:
        xcoms: XComs of the task to push, by key.
    """

    outcome: Outcome

    def __init__(self, *, xcoms: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(str(self.outcome), **kwargs)
        self.xcoms = xcoms


class TaskSuccessEvent(BaseTaskEndEvent):
    """The task succeeds."""

    outcome = Outcome.SUCCESS


class TaskFailedEvent(BaseTaskEndEvent):
    """The task fails; it is retried if retries are left."""

    outcome = Outcome.FAILED


class TaskSkippedEvent(BaseTaskEndEvent):
    """The task is skipped."""

    outcome = Outcome.SKIPPED


class BaseTrigger(Templater):
    """Base class of triggers. The triggerer makes the trigger again from `serialize()` and iterates over `run()`."""

    supports_triggerer_queue = True
    task_id: str | None = None
    trigger_id: Any = None
    _task_instance: Any = None

    def __init__(self, **kwargs: Any) -> None:
        """Keyword arguments that a subclass passes on are ignored, as in Airflow."""

    @property
    def task_instance(self) -> Any:
        """The task instance that waits for the trigger, or None."""
        return self._task_instance

    @task_instance.setter
    def task_instance(self, value: Any) -> None:
        self._task_instance = value
        self.task_id = getattr(value, "task_id", None)
        task = self.task
        if task is not None:
            self.template_ext = task.template_ext
            arguments = getattr(getattr(task, "start_trigger_args", None), "trigger_kwargs", None) or {}
            self.template_fields = tuple(name for name in task.template_fields if name in arguments and hasattr(self, name))

    @property
    def task(self) -> Any:
        """The task that waits for the trigger, or None."""
        return getattr(self._task_instance, "task", None)

    def get_dag(self) -> Any:
        """The DAG whose folder, macros and filters the templates use, or None."""
        return self.task.get_dag() if self.task is not None else None

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        """Replace the attributes that are templated arguments of the waiting task with their rendered values."""
        self._do_render_template_fields(self, self.template_fields, context, jinja_env or self.get_template_env(), set())

    @property
    def log(self) -> logging.Logger:
        """A logger that writes to the log of the task."""
        return logging.getLogger(f"tradewind.task.trigger.{type(self).__name__}")

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """(import path of the class, keyword arguments)."""
        raise NotImplementedError(f"{type(self).__name__} does not define serialize()")

    def run(self) -> AsyncIterator[TriggerEvent]:
        """An asynchronous generator of events. The first event ends the wait of the task."""
        raise NotImplementedError(f"{type(self).__name__} does not define run()")

    async def on_kill(self) -> None:
        """Called before `cleanup` if the waiting task was cleared, marked or stopped: cancel the external job that it waits for."""

    async def cleanup(self) -> None:
        """Called when the trigger ends: after its event, after a failure, or because no task waits for it any more."""

    def as_wait(self) -> Wait | None:
        """A wait that the scheduler can do itself instead of running this trigger; None: the trigger has to run."""
        return None

    def __repr__(self) -> str:
        try:
            classpath, kwargs = self.serialize()
        except Exception:
            return f"<{type(self).__name__}>"
        return f"<{classpath} {', '.join(f'{name}={value!r}' for name, value in kwargs.items())}>"


class BaseEventTrigger(BaseTrigger):
    """Base class of triggers that watch assets (`AssetWatcher`). Unlike other triggers, such a trigger continues after an event.

    Watchers whose triggers have the same `shared_stream_key` share one stream of raw events: `open_shared_stream` is called
    once for all of them, and `filter_shared_stream` of each trigger makes its own events of the raw ones.
    """

    supports_triggerer_queue = False
    asset_state_store: Any = None
    """None: triggers have no access to the state store of assets yet."""

    def shared_stream_key(self) -> Hashable | None:
        """The stream that this trigger shares with others; None: it has its own, `run()`."""
        return None

    @classmethod
    def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Any]:
        """An asynchronous generator of raw events for all triggers with the same key. `kwargs`: the arguments of one of them."""
        raise NotImplementedError(f"{cls.__name__} has a shared_stream_key, but does not define open_shared_stream()")

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> Any:
        """Airflow's stream with acknowledgements; see `execution.shared_streams`."""
        raise NotImplementedError(f"{cls.__name__} does not define create_shared_stream_producer()")

    def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """An asynchronous generator of this trigger's events, made of the raw events."""
        raise NotImplementedError(f"{type(self).__name__} has a shared_stream_key, but does not define filter_shared_stream()")

    @staticmethod
    def hash(classpath: str, kwargs: dict[str, Any]) -> int:
        """A number for the class and its arguments."""
        return hash((classpath, repr(sorted(kwargs.items()))))
