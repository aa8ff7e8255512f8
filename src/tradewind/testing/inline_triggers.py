"""Triggers without a triggerer: run to their end in this process, in real time."""

from __future__ import annotations

import asyncio

from tradewind.authoring.trigger_run import failed, make_trigger, wait_for_end
from tradewind.model.waits import TriggerEnd
from tradewind.wire.messages import TriggerOrder


def run_trigger(order: TriggerOrder) -> TriggerEnd:
    """Wait for what a trigger comes to."""
    try:
        trigger = make_trigger(order.wait)
    except Exception as error:
        return failed(error)
    return asyncio.run(wait_for_end(trigger))
