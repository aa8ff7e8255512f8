"""Creating a trigger from a stored wait, and running it until its first event."""

from __future__ import annotations

import asyncio
import importlib
import traceback
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from typing import Any

import msgspec

from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.errors import did_you_mean
from tradewind.model.states import Outcome
from tradewind.model.waits import TriggerEnd, TriggerWait
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.trigger import BaseTaskEndEvent, BaseTrigger, TriggerEvent

_ERROR_MAX = 4000
"""Maximum number of characters of an error; the end of the text is kept."""
EVENT_MAX = 64 * 1024 * 1024
CLEANUP_SECONDS = 30.0


def make_trigger(wait: TriggerWait) -> BaseTrigger:
    """Create the trigger from its import path and arguments. Imports the author's code.

    Raises:
        AirflowException: there is no such class, or it is not a trigger.
        Exception: any exception of the author's code.
    """
    module_name, _, name = wait.classpath.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:
        raise AirflowException(f"cannot import the trigger {wait.classpath}: {error}") from error
    found = getattr(module, name, None)
    if found is None:
        raise AirflowException(f"{module_name} has no trigger {name!r}.{did_you_mean(name, dir(module))}")
    if not (isinstance(found, type) and callable(getattr(found, "run", None))):
        raise AirflowException(f"{wait.classpath} is {found!r}, which is not a trigger: it has no method run()")
    return found(**decode_xcom(wait.kwargs))  # type: ignore[no-any-return]


async def wait_for_end(
    trigger: BaseTrigger,
    on_end: Callable[[TriggerEnd], None] | None = None,
    *,
    event_max: int = EVENT_MAX,
    cleanup_seconds: float = CLEANUP_SECONDS,
) -> TriggerEnd:
    """Run a trigger until its first event, then clean up. An exception of the trigger is also an end. Cancelling this cancels the
    trigger.

    Args:
        on_end: called with the end before the trigger cleans up, because a slow or failing cleanup must not delay or change the
            end.
        event_max: maximum size of the event in bytes.
        cleanup_seconds: time limit of `cleanup`; after that it is cancelled.

    Raises:
        CancelledError: this call was cancelled.
    """

    async def first_event(events: Any) -> TriggerEnd:
        return await _first_event(trigger, events, event_max)

    return await _run_to_end(trigger, trigger.run, first_event, on_end, cleanup_seconds)


async def watch(
    trigger: BaseTrigger,
    emit: Callable[[bytes], Awaitable[None]],
    on_end: Callable[[TriggerEnd], None] | None = None,
    *,
    events: Callable[[], Any] | None = None,
    event_max: int = EVENT_MAX,
    cleanup_seconds: float = CLEANUP_SECONDS,
) -> TriggerEnd:
    """Run the trigger of an asset watcher until it ends, then clean up. An end without an error is normal.

    Args:
        emit: called with the payload of each event (JSON). The trigger continues when this call returns.
        events: returns the events; used instead of the trigger's `run`.

    Other arguments and exceptions: see `wait_for_end`.
    """

    async def all_events(events: Any) -> TriggerEnd:
        async for event in _iterable(trigger, events):
            await emit(watcher_payload(event, event_max))
        return TriggerEnd()

    return await _run_to_end(trigger, events or trigger.run, all_events, on_end, cleanup_seconds)


async def _run_to_end(
    trigger: BaseTrigger,
    run: Callable[[], Any],
    follow: Callable[[Any], Awaitable[TriggerEnd]],
    on_end: Callable[[TriggerEnd], None] | None,
    cleanup_seconds: float,
) -> TriggerEnd:
    events: Any = None
    try:
        try:
            events = run()
            end = await follow(events)
        except asyncio.CancelledError as error:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            end = failed(error)
        except BaseException as error:  # sys.exit() in one trigger must not end the others
            end = failed(error)
        if on_end is not None:
            on_end(end)
        return end
    finally:
        await _clean_up(trigger, events, cleanup_seconds)


def _iterable(trigger: BaseTrigger, events: Any) -> AsyncIterable[Any]:
    if not hasattr(events, "__aiter__"):
        close = getattr(events, "close", None)
        if close is not None:
            close()
        raise AirflowException(
            f"{type(trigger).__name__}.run() returned a {type(events).__name__}; it must be an asynchronous generator: "
            "`async def run(self)` with a `yield`"
        )
    return events  # type: ignore[no-any-return]


async def _first_event(trigger: BaseTrigger, events: Any, event_max: int) -> TriggerEnd:
    async for event in _iterable(trigger, events):
        return trigger_end(event, event_max)
    return TriggerEnd(error=f"{type(trigger).__name__} ended without an event")


async def _clean_up(trigger: BaseTrigger, events: Any, seconds: float) -> None:
    """Close the generator and call `cleanup`. Errors are written to the trigger's log and have no other effect."""
    try:
        if isinstance(events, AsyncGenerator):
            await asyncio.wait_for(events.aclose(), seconds)
        await asyncio.wait_for(trigger.cleanup(), seconds)
    except asyncio.CancelledError:
        raise
    except TimeoutError:
        trigger.log.warning("The trigger's cleanup took longer than %g seconds and was cancelled.", seconds)
    except BaseException:
        trigger.log.exception("The trigger's cleanup failed.")


def trigger_end(event: Any, event_max: int = EVENT_MAX) -> TriggerEnd:
    """Return the effect of a trigger's event on its task.

    Raises:
        AirflowException: it is not an event, is too large, or has a value that cannot be stored.
    """
    if not isinstance(event, TriggerEvent):
        raise AirflowException(f"a trigger fired {event!r}; it must be a TriggerEvent")
    if isinstance(event, BaseTaskEndEvent):
        xcoms = {
            key: _check_size(encode_xcom(value, key), f"XCom {key!r}", event_max) for key, value in (event.xcoms or {}).items()
        }
        effect = {Outcome.SUCCESS: "succeeded", Outcome.SKIPPED: "is skipped"}.get(event.outcome, "failed")
        return TriggerEnd(outcome=event.outcome, xcoms=xcoms, reason=f"its trigger reported that the task {effect}")
    return TriggerEnd(event=_check_size(encode_xcom(event.payload, "the trigger's event"), "event", event_max))


def watcher_payload(event: Any, event_max: int = EVENT_MAX) -> bytes:
    """Return the payload of an asset watcher's event, as JSON.

    Raises:
        AirflowException: it is not an event, is too large, or has a payload that cannot be written as JSON.
    """
    if not isinstance(event, TriggerEvent):
        raise AirflowException(f"a trigger fired {event!r}; it must be a TriggerEvent")
    try:
        data = msgspec.json.encode(event.payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise AirflowException(
            f"the payload of the trigger's event is {event.payload!r:.200}, which JSON cannot hold ({error}); the extra of an "
            "asset event is JSON, so fire a mapping of strings and numbers"
        ) from error
    return _check_size(data, "event", event_max)


def _check_size(data: bytes, what: str, limit: int) -> bytes:
    if len(data) > limit:
        raise AirflowException(
            f"the trigger's {what} has {len(data)} bytes, more than core.xcom_max_bytes={limit}: write the data to a file or a "
            "table and fire its name, or increase the setting"
        )
    return data


def failed(error: BaseException) -> TriggerEnd:
    """The end of a trigger that raised an exception."""
    text = "".join(traceback.format_exception(error, limit=-20)).rstrip()
    return TriggerEnd(error=text[-_ERROR_MAX:])
