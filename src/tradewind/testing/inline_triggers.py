"""Runs triggers to their end in this process, in real time, without a triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tradewind.execution.run_trigger import failed, make_trigger, trigger_end, wait_for_end
from tradewind.model.moments import SECOND
from tradewind.model.waits import TIMEOUT, Deferral, TriggerEnd
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.waits.wait_index import WaitResult
from tradewind.sdk.trigger import TriggerEvent
from tradewind.store.memory import MemoryStore
from tradewind.testing.inline_runtime import InlineRuntime
from tradewind.wire.messages import TriggerOrder
from tradewind.wire.runtime import installed

Answer = Callable[[Deferral], TriggerEnd]
"""Returns the result of a wait, as given by a test."""


def wait_inline(scheduler: Scheduler, order: TriggerOrder, at_most: float | None = None) -> WaitResult:
    """Run a trigger to its end, but not longer than its task may wait.

    Args:
        at_most: real seconds; after them the trigger fails.
    """
    waiting = scheduler.waits.open.get(order.key[:2])
    until = None if waiting is None else waiting.deferral.timeout_at
    left = None if until is None else max(0.0, (until - scheduler.clock.wall()) / SECOND)
    store = scheduler.store
    assert isinstance(store, MemoryStore), "a run in this process has its store in memory"
    with installed(InlineRuntime(store, scheduler.clock, order.key)):
        if left is None or (at_most is not None and at_most < left):
            end = run_trigger(order, at_most)
            if end.error == TIMEOUT:
                sentence = f"its trigger did not fire within {at_most:g} s of real time; pass its event: run_task(…, event=…)"
                end = TriggerEnd(error=sentence)
        else:
            end = run_trigger(order, left)
    return WaitResult(*order.key, end)


def run_trigger(order: TriggerOrder, seconds: float | None = None) -> TriggerEnd:
    """Run a trigger to its end; with `seconds`, return the error `TIMEOUT` after this time."""

    async def to_its_end() -> TriggerEnd:
        try:
            return await asyncio.wait_for(wait_for_end(trigger), seconds)
        except TimeoutError:
            return TriggerEnd(error=TIMEOUT)

    try:
        trigger = make_trigger(order.wait)
    except Exception as error:
        return failed(error)
    return asyncio.run(to_its_end())


def answer_with(event: Any) -> Answer:
    """Give every wait this result: a payload, a TriggerEvent, or an exception, as if the trigger had raised it.

    TimeoutError stands for a timeout of the wait.
    """

    def answer(deferral: Deferral) -> TriggerEnd:
        if isinstance(event, TimeoutError):
            return TriggerEnd(error=TIMEOUT)
        if isinstance(event, BaseException):
            return failed(event)
        return trigger_end(event if isinstance(event, TriggerEvent) else TriggerEvent(event))

    return answer
