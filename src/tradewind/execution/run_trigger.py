"""Making a trigger from what travelled, and waiting for what it comes to."""

from __future__ import annotations

import asyncio
import importlib
import traceback
from collections.abc import AsyncGenerator, Callable
from typing import Any

from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.errors import did_you_mean
from tradewind.model.states import Outcome
from tradewind.model.waits import TriggerEnd, TriggerWait
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.trigger import BaseTaskEndEvent, BaseTrigger, TriggerEvent

_ERROR_MAX = 4000
"""Characters kept of why a trigger failed: the end says it."""
EVENT_MAX = 64 * 1024 * 1024
CLEANUP_SECONDS = 30.0


def make_trigger(wait: TriggerWait) -> BaseTrigger:
    """The trigger, of its class, with its arguments. Imports author's code.

    Raises:
        AirflowException: there is no such class, or it is no trigger.
        Exception: whatever the author's code raises.
    """
    module_name, _, name = wait.classpath.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:
        raise AirflowException(f"the trigger {wait.classpath} cannot be imported: {error}") from error
    found = getattr(module, name, None)
    if found is None:
        raise AirflowException(f"{module_name} has no trigger {name!r}.{did_you_mean(name, dir(module))}")
    if not (isinstance(found, type) and callable(getattr(found, "run", None))):
        raise AirflowException(f"{wait.classpath} is {found!r}, which is no trigger: it has no run()")
    return found(**decode_xcom(wait.kwargs))  # type: ignore[no-any-return]


async def wait_for_end(
    trigger: BaseTrigger,
    fired: Callable[[TriggerEnd], None] | None = None,
    *,
    event_max: int = EVENT_MAX,
    cleanup_seconds: float = CLEANUP_SECONDS,
) -> TriggerEnd:
    """Run a trigger to its first event, then let it clean up. What it raises is its end; cancelling this cancels it.

    Args:
        fired: told the end before the trigger cleans up, which may take its time or go wrong: the end counts in any case.
        event_max: bytes of what it fires.
        cleanup_seconds: `cleanup` is cancelled after so long.

    Raises:
        CancelledError: somebody cancelled this.
    """
    events: Any = None
    try:
        try:
            events = trigger.run()
            end = await _first(trigger, events, event_max)
        except asyncio.CancelledError as error:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            end = failed(error)
        except BaseException as error:  # sys.exit() in one trigger is nobody else's end
            end = failed(error)
        if fired is not None:
            fired(end)
        return end
    finally:
        await _tidy(trigger, events, cleanup_seconds)


async def _first(trigger: BaseTrigger, events: Any, event_max: int) -> TriggerEnd:
    if not hasattr(events, "__aiter__"):
        close = getattr(events, "close", None)
        if close is not None:
            close()
        raise AirflowException(
            f"{type(trigger).__name__}.run() gave {type(events).__name__}; it must be an asynchronous generator: "
            "`async def run(self)` with a `yield`"
        )
    async for event in events:
        return end_of(event, event_max)
    return TriggerEnd(error=f"{type(trigger).__name__} ended without an event")


async def _tidy(trigger: BaseTrigger, events: Any, seconds: float) -> None:
    """What a trigger does at its end. Errors are said in its log, and change nothing."""
    try:
        if isinstance(events, AsyncGenerator):
            await asyncio.wait_for(events.aclose(), seconds)
        await asyncio.wait_for(trigger.cleanup(), seconds)
    except asyncio.CancelledError:
        raise
    except TimeoutError:
        trigger.log.warning("The trigger's cleanup took longer than %g seconds, and was stopped.", seconds)
    except BaseException:
        trigger.log.exception("The trigger's cleanup failed.")


def end_of(event: Any, event_max: int = EVENT_MAX) -> TriggerEnd:
    """What an event of a trigger means for its task.

    Raises:
        AirflowException: it is none, is too large, or holds something that cannot be stored.
    """
    if not isinstance(event, TriggerEvent):
        raise AirflowException(f"a trigger fired {event!r}; it must be a TriggerEvent")
    if isinstance(event, BaseTaskEndEvent):
        xcoms = {
            key: _fitting(encode_xcom(value, key), f"XCom {key!r}", event_max) for key, value in (event.xcoms or {}).items()
        }
        said = {Outcome.SUCCESS: "is done", Outcome.SKIPPED: "is to be skipped"}.get(event.outcome, "has failed")
        return TriggerEnd(outcome=event.outcome, xcoms=xcoms, reason=f"its trigger said that the task {said}")
    return TriggerEnd(event=_fitting(encode_xcom(event.payload, "the trigger's event"), "event", event_max))


def _fitting(data: bytes, what: str, limit: int) -> bytes:
    if len(data) > limit:
        raise AirflowException(
            f"the trigger's {what} has {len(data)} bytes, more than core.xcom_max_bytes={limit}: write it to a file or a table "
            "and fire its name, or raise the setting"
        )
    return data


def failed(error: BaseException) -> TriggerEnd:
    """A trigger that raised."""
    text = "".join(traceback.format_exception(error, limit=-20)).rstrip()
    return TriggerEnd(error=text[-_ERROR_MAX:])
