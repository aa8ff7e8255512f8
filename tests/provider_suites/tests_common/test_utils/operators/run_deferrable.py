"""Runs deferrable operators to their end in this process."""

from __future__ import annotations

import asyncio
import copy
from importlib import import_module
from typing import Any

from tests_common.test_utils.mock_context import mock_context

from tradewind.sdk.exceptions import TaskDeferred

__all__ = ["deferrable_operator", "execute_operator", "mock_context", "run_trigger", "start_from_trigger"]


async def _events(trigger: Any) -> list[Any]:
    return [event async for event in trigger.run()]


def run_trigger(trigger: Any) -> list[Any]:
    """All events of a trigger."""
    return asyncio.run(_events(trigger))


def execute_operator(operator: Any) -> tuple[Any, Any]:
    """The result of an operator, and the events of all triggers that it waited for."""
    return asyncio.run(deferrable_operator(mock_context(task=operator), operator))


def start_from_trigger(context: Any, operator: Any) -> TaskDeferred:
    """The deferral of an operator that starts in the triggerer: its trigger renders the fields that both have."""
    declared = operator.start_trigger_args
    kwargs = declared.trigger_kwargs or {}
    module, _, name = declared.trigger_cls.rpartition(".")
    trigger = getattr(import_module(module), name)(**kwargs)
    trigger.template_fields = tuple(field for field in operator.template_fields if field in kwargs and hasattr(trigger, field))
    trigger.render_template_fields(context=context)
    return TaskDeferred(
        trigger=trigger, method_name=declared.next_method, kwargs=declared.next_kwargs, timeout=declared.timeout
    )


async def deferrable_operator(context: Any, operator: Any) -> tuple[Any, Any]:
    """Execute an operator; wait for each trigger that it defers to, and call the given method."""
    seen: list[Any] = []
    early = start_from_trigger(context, operator) if getattr(operator, "start_from_trigger", False) else None
    operator.render_template_fields(context=context)
    wait: TaskDeferred | None = early
    result = None
    if wait is None:
        try:
            return operator.execute(context=context), seen
        except TaskDeferred as deferred:
            wait = deferred
    while wait is not None:
        events = await _events(wait.trigger)
        if not events:
            break
        seen += copy.deepcopy(events)
        try:
            result, wait = getattr(operator, wait.method_name)(context=context, event=events[0].payload), None
        except TaskDeferred as deferred:
            wait = deferred
    return result, seen
