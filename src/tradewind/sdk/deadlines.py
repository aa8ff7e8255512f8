"""Deadlines of DAG runs: `DAG(deadline=DeadlineAlert(…))`. The names are Airflow's.

    DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(minutes=30),
        callback=AsyncCallback(page, kwargs={"team": "ops"}),
    )

A run misses its deadline if it has not succeeded `interval` after the reference time. The miss is recorded, and the callback is
called once, with `kwargs` and with `context`, whose `dag_run` and `deadline` describe the miss. Every callback runs in a process of
its own, both `AsyncCallback` and `SyncCallback`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, NamedTuple

from tradewind.execution.task_instance import micros_of
from tradewind.model.definition import DeadlineDefinition
from tradewind.model.errors import DefinitionError, NotYetSupported
from tradewind.model.moments import duration_micros
from tradewind.sdk.dag_warnings import callback_name


class Reference(NamedTuple):
    """The reference time of a deadline."""

    kind: str
    """`logical_date`, `queued_at`, `fixed` or `average`."""
    at: int | None = None
    max_runs: int = 0
    min_runs: int = 0


class DagRunLogicalDateDeadline(Reference):
    """The logical date."""

    def __new__(cls) -> DagRunLogicalDateDeadline:
        return super().__new__(cls, "logical_date")


class DagRunQueuedAtDeadline(Reference):
    """When the run was created or cleared."""

    def __new__(cls) -> DagRunQueuedAtDeadline:
        return super().__new__(cls, "queued_at")


class FixedDatetimeDeadline(Reference):
    """A date and time."""

    def __new__(cls, _datetime: datetime) -> FixedDatetimeDeadline:
        return super().__new__(cls, "fixed", at=micros_of(_datetime))


class AverageRuntimeDeadline(Reference):
    """When the run was created, plus the average duration of earlier runs.

    Raises:
        DefinitionError: the numbers do not fit.
    """

    def __new__(cls, max_runs: int, min_runs: int | None = None) -> AverageRuntimeDeadline:
        least = max_runs if min_runs is None else min_runs
        if max_runs < 1 or least < 1 or least > max_runs:
            raise DefinitionError(f"AVERAGE_RUNTIME(max_runs={max_runs}, min_runs={min_runs}): need 1 ≤ min_runs ≤ max_runs")
        return super().__new__(cls, "average", max_runs=max_runs, min_runs=least)


class DeadlineReference:
    """Airflow's names of the reference times.

    DAGRUN_LOGICAL_DATE: the logical date; a run without a logical date has no such deadline.
    DAGRUN_QUEUED_AT: when the run was created or cleared.
    FIXED_DATETIME(date): this date and time.
    AVERAGE_RUNTIME(max_runs=10, min_runs=None): when the run was created, plus the average duration of the last `max_runs` runs.
        There is no deadline while fewer than `min_runs` runs have ended. Default of `min_runs`: `max_runs`.
    """

    DAGRUN_LOGICAL_DATE = DagRunLogicalDateDeadline()
    DAGRUN_QUEUED_AT = DagRunQueuedAtDeadline()

    @staticmethod
    def FIXED_DATETIME(date: datetime) -> Reference:
        return FixedDatetimeDeadline(date)

    @staticmethod
    def AVERAGE_RUNTIME(max_runs: int = 10, min_runs: int | None = None) -> Reference:
        return AverageRuntimeDeadline(max_runs, min_runs)


class Callback:
    """A function to call, and its arguments.

    Args:
        callback_callable: a function, a notifier class, or the import path of one (`package.module.name`).
        kwargs: keyword arguments for it. A function with a parameter `context` also gets the context.
    """

    def __init__(
        self,
        callback_callable: Callable[..., Any] | str,
        kwargs: Mapping[str, Any] | None = None,
        executor: str | None = None,
    ) -> None:
        if not callable(callback_callable) and not isinstance(callback_callable, str):
            raise DefinitionError(
                f"the callback of a deadline is {callback_callable!r}; it must be a function or its import path"
            )
        self.target = callback_callable
        self.kwargs = dict(kwargs or {})
        self.executor = executor

    @property
    def path(self) -> str:
        """The name of the callback for people."""
        return self.target if isinstance(self.target, str) else callback_name(self.target)

    def load(self) -> Callable[..., Any]:
        """Import the function or class."""
        if not isinstance(self.target, str):
            return self.target
        module, _, name = self.target.rpartition(".")
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found


class AsyncCallback(Callback):
    """Airflow runs this callback in the triggerer, so there it must be an `async` function. Here it need not be."""

    def __init__(self, callback_callable: Callable[..., Any] | str, kwargs: Mapping[str, Any] | None = None) -> None:
        super().__init__(callback_callable, kwargs)


class SyncCallback(Callback):
    """Airflow runs this callback on the named executor. Here the executor has no effect."""


class DeadlineAlert:
    """One deadline for the runs of a DAG; see the module's docstring."""

    def __init__(self, reference: Reference, interval: timedelta, callback: Callback, name: str | None = None) -> None:
        if not isinstance(reference, Reference):
            raise NotYetSupported(
                f"the reference of a deadline is {reference!r}; custom references are not supported, use one of DeadlineReference"
            )
        if not isinstance(interval, timedelta):
            raise NotYetSupported(
                f"the interval of a deadline is {interval!r}; it must be a timedelta (a Variable is not supported here)"
            )
        if not isinstance(callback, Callback):
            raise DefinitionError(f"the callback of a deadline is {callback!r}; wrap it in AsyncCallback(…) or SyncCallback(…)")
        self.reference = reference
        self.interval = interval
        self.callback = callback
        self.name = name

    def definition(self) -> DeadlineDefinition:
        """The deadline as plain values, for the scheduler."""
        reference = self.reference
        return DeadlineDefinition(
            reference.kind,
            duration_micros(self.interval),
            reference.at,
            reference.max_runs,
            reference.min_runs,
            self.name,
            self.callback.path,
        )


def read(value: Any) -> list[DeadlineAlert]:
    """Check the argument `deadline` of a DAG: one alert or a list."""
    found = list(value) if isinstance(value, Sequence) else [value] if value else []
    for one in found:
        if not isinstance(one, DeadlineAlert):
            raise DefinitionError(f"deadline has {one!r}; it must be a DeadlineAlert, or a list of them")
    return found
