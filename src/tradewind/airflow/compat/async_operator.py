"""`airflow.sdk.bases.operator.BaseAsyncOperator`, and the runners of task functions that yield asset events."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

from tradewind.execution.asset_events import Metadata, OutletEventAccessors
from tradewind.execution.context import current_context
from tradewind.sdk.operator import BaseOperator

__all__ = [
    "AsyncExecutionCallableRunner",
    "BaseAsyncOperator",
    "ExecutionCallableRunner",
    "context_get_outlet_events",
    "create_async_executable_runner",
    "create_executable_runner",
    "is_async_callable",
    "set_current_context",
]

log = logging.getLogger("tradewind.task")


class BaseAsyncOperator(BaseOperator):
    """An operator whose work is a coroutine: subclasses define `aexecute(context)`. It runs in the task's process."""

    @property
    def is_async(self) -> bool:
        """Whether the task runs `aexecute`."""
        return True

    async def aexecute(self, context: Any) -> Any:
        """Do the work.

        Raises:
            NotImplementedError: a subclass must define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define aexecute(context)")

    def execute(self, context: Any) -> Any:
        """Run `aexecute` in a new event loop, for at most `execution_timeout`."""
        limit = self.execution_timeout.total_seconds() if self.execution_timeout else None

        async def bounded() -> Any:
            return await asyncio.wait_for(self.aexecute(context), limit)

        return asyncio.run(bounded())


def is_async_callable(func: Any) -> bool:
    """Whether an object is a coroutine function, a `functools.partial` of one, or has a coroutine `__call__`."""
    while isinstance(func, functools.partial):
        func = func.func
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(getattr(func, "__call__", None))  # noqa: B004


set_current_context = current_context
"""Airflow's name of `current_context`."""


def context_get_outlet_events(context: Any) -> OutletEventAccessors:
    """The `outlet_events` of a context."""
    try:
        found: OutletEventAccessors = context["outlet_events"]
    except KeyError:
        return OutletEventAccessors(())
    return found


def _add_metadata(value: Any, outlet_events: Any, logger: Any) -> None:
    if not isinstance(value, Metadata):
        logger.warning("Ignoring unknown data of %r received from task", type(value))
        return
    outlet_events[value.asset].extra.update(value.extra)
    if value.alias:
        outlet_events[value.alias].add(value.asset, extra=value.extra)


class ExecutionCallableRunner:
    """Runs a function. The `Metadata` that the function yields becomes asset events; its return value is the result."""

    def __init__(self, func: Callable[..., Any], outlet_events: Any, *, logger: Any = log) -> None:
        self.func, self.outlet_events, self.logger = func, outlet_events, logger

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if not inspect.isgeneratorfunction(self.func):
            return self.func(*args, **kwargs)
        generator = self.func(*args, **kwargs)
        while True:
            try:
                value = next(generator)
            except StopIteration as end:
                return end.value
            _add_metadata(value, self.outlet_events, self.logger)


class AsyncExecutionCallableRunner(ExecutionCallableRunner):
    """Runs an async function or generator; a generator's result is the list of what it yielded."""

    async def run(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if not inspect.isasyncgenfunction(self.func):
            return await self.func(*args, **kwargs)
        results = []
        async for value in self.func(*args, **kwargs):
            if isinstance(value, Metadata):
                _add_metadata(value, self.outlet_events, self.logger)
            results.append(value)
        return results


create_executable_runner = ExecutionCallableRunner
create_async_executable_runner = AsyncExecutionCallableRunner
