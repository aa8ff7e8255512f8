"""Making a trigger from what travelled, and waiting for what it comes to."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import AsyncGenerator
from typing import Any

from tradewind.authoring.exceptions import AirflowException
from tradewind.authoring.trigger import BaseTaskEndEvent, BaseTrigger, TriggerEvent
from tradewind.authoring.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.errors import did_you_mean
from tradewind.model.states import Outcome
from tradewind.model.waits import TriggerEnd, TriggerWait

_ERROR_MAX = 4000
"""Characters kept of why a trigger failed: the end says it."""


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


async def wait_for_end(trigger: BaseTrigger) -> TriggerEnd:
    """Run a trigger to its first event. Cancelling this cancels it; in any case it may clean up."""
    events: Any = None
    try:
        events = trigger.run()
        async for event in events:
            return end_of(event)
        return TriggerEnd(error=f"{type(trigger).__name__} ended without an event")
    except Exception as error:
        return failed(error)
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
        await trigger.cleanup()


def end_of(event: Any) -> TriggerEnd:
    """What an event of a trigger means for its task.

    Raises:
        AirflowException: it is none, or holds something that cannot be stored.
    """
    if not isinstance(event, TriggerEvent):
        raise AirflowException(f"a trigger fired {event!r}; it must be a TriggerEvent")
    if isinstance(event, BaseTaskEndEvent):
        xcoms = {key: encode_xcom(value, key) for key, value in (event.xcoms or {}).items()}
        said = {Outcome.SUCCESS: "is done", Outcome.SKIPPED: "is to be skipped"}.get(event.outcome, "has failed")
        return TriggerEnd(outcome=event.outcome, xcoms=xcoms, reason=f"its trigger said that the task {said}")
    return TriggerEnd(event=encode_xcom(event.payload, "the trigger's event"))


def failed(error: BaseException) -> TriggerEnd:
    """A trigger that raised."""
    text = "".join(traceback.format_exception(error, limit=-20)).rstrip()
    return TriggerEnd(error=text[-_ERROR_MAX:])
