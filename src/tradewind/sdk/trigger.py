"""What every trigger is.

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

A trigger must not block: many share one event loop. Whatever it asks of Tradewind (a connection, a variable) it asks through
`asyncio.to_thread`, or it holds the others up for the moment of the answer.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tradewind.model.states import Outcome
from tradewind.model.waits import Wait


class TriggerEvent:
    """What a trigger fires: `payload` (whatever an XCom can be) is the `event` with which the task goes on."""

    def __init__(self, payload: Any = None, **kwargs: Any) -> None:
        self.payload = kwargs or payload

    def __repr__(self) -> str:
        return f"TriggerEvent({self.payload!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.payload == self.payload

    __hash__ = None  # type: ignore[assignment]  # its payload may be a mapping


@dataclass
class StartTriggerArgs:
    """What an operator with `start_from_trigger = True` waits for before anything else; see `BaseOperator`.

    Attributes:
        trigger_cls: import path of the trigger's class.
        next_method: of the operator, called when it has fired.
        trigger_kwargs: its arguments; templates.
        next_kwargs: more arguments of the method.
        timeout: after so long the task fails.
    """

    trigger_cls: str
    next_method: str
    trigger_kwargs: dict[str, Any] | None = None
    next_kwargs: dict[str, Any] | None = None
    timeout: timedelta | None = None


class BaseTaskEndEvent(TriggerEvent):
    """Ends the task without another attempt.

    Args:
        xcoms: key → value, pushed for the task.
    """

    outcome: Outcome

    def __init__(self, *, xcoms: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(str(self.outcome), **kwargs)
        self.xcoms = xcoms


class TaskSuccessEvent(BaseTaskEndEvent):
    """The task is done."""

    outcome = Outcome.SUCCESS


class TaskFailedEvent(BaseTaskEndEvent):
    """The task failed; it is retried while it has tries left."""

    outcome = Outcome.FAILED


class TaskSkippedEvent(BaseTaskEndEvent):
    """The task is skipped."""

    outcome = Outcome.SKIPPED


class BaseTrigger:
    """Base of triggers. `serialize` gives what makes the trigger again in the triggerer; `run` waits there."""

    def __init__(self, **kwargs: Any) -> None:
        self.task_instance: Any = None
        self.trigger_id: Any = None

    @property
    def log(self) -> logging.Logger:
        """Its messages go to the task's log."""
        return logging.getLogger(f"tradewind.task.trigger.{type(self).__name__}")

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """(import path of the class, keyword arguments)."""
        raise NotImplementedError(f"{type(self).__name__} does not define serialize()")

    def run(self) -> AsyncIterator[TriggerEvent]:
        """An asynchronous generator. Its first event is what the task hears."""
        raise NotImplementedError(f"{type(self).__name__} does not define run()")

    async def on_kill(self) -> None:
        """Called before `cleanup` when its task was cleared, marked or ended by its run while it waited: stop what it watches."""

    async def cleanup(self) -> None:
        """Called when the trigger ends, whatever the reason: it fired, failed, or nobody waits any more."""

    def as_wait(self) -> Wait | None:
        """What the scheduler can wait for in its place, without running it; None: it has to run."""
        return None

    def __repr__(self) -> str:
        try:
            classpath, kwargs = self.serialize()
        except Exception:
            return f"<{type(self).__name__}>"
        return f"<{classpath} {', '.join(f'{name}={value!r}' for name, value in kwargs.items())}>"


class BaseEventTrigger(BaseTrigger):
    """Base of triggers that assets are watched with."""

    shared_stream_key: Any = None
