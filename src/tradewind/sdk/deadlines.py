"""Deadlines of runs: `DAG(deadline=DeadlineAlert(…))`, with Airflow's names.

    DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(minutes=30),
        callback=AsyncCallback(page, kwargs={"team": "ops"}),
    )

A run that has not succeeded `interval` after its reference has missed its deadline: that is written down, and the callback is
called once, with `kwargs` and with `context`, in which `dag_run` and `deadline` say which. It runs in a process of its own, whether
it is an `AsyncCallback` or a `SyncCallback`.
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
    """From where a deadline counts."""

    kind: str
    """`logical_date`, `queued_at`, `fixed` or `average`."""
    at: int | None = None
    max_runs: int = 0
    min_runs: int = 0


class DeadlineReference:
    """Airflow's names for the references.

    DAGRUN_LOGICAL_DATE: the logical date; a run without one has no such deadline.
    DAGRUN_QUEUED_AT: when the run was made, or cleared.
    FIXED_DATETIME(date): this moment.
    AVERAGE_RUNTIME(max_runs=10, min_runs=None): when the run was made, and as long again as the latest runs took on average; none
        while fewer than `min_runs` (unless given: `max_runs`) have ended.
    """

    DAGRUN_LOGICAL_DATE = Reference("logical_date")
    DAGRUN_QUEUED_AT = Reference("queued_at")

    @staticmethod
    def FIXED_DATETIME(date: datetime) -> Reference:
        return Reference("fixed", at=micros_of(date))

    @staticmethod
    def AVERAGE_RUNTIME(max_runs: int = 10, min_runs: int | None = None) -> Reference:
        least = max_runs if min_runs is None else min_runs
        if max_runs < 1 or least < 1 or least > max_runs:
            raise DefinitionError(f"AVERAGE_RUNTIME(max_runs={max_runs}, min_runs={min_runs}): 1 ≤ min_runs ≤ max_runs")
        return Reference("average", max_runs=max_runs, min_runs=least)


class Callback:
    """What to call, with which arguments.

    Args:
        callback_callable: a function or a notifier class, or where it can be imported from (`package.module.name`).
        kwargs: its arguments; a function that takes `context` gets that too.
    """

    def __init__(
        self,
        callback_callable: Callable[..., Any] | str,
        kwargs: Mapping[str, Any] | None = None,
        executor: str | None = None,
    ) -> None:
        if not callable(callback_callable) and not isinstance(callback_callable, str):
            raise DefinitionError(f"a deadline's callback is {callback_callable!r}; it must be a function or where it stands")
        self.target = callback_callable
        self.kwargs = dict(kwargs or {})
        self.executor = executor

    @property
    def path(self) -> str:
        """How people know it."""
        return self.target if isinstance(self.target, str) else callback_name(self.target)

    def find(self) -> Callable[..., Any]:
        """The function or class."""
        if not isinstance(self.target, str):
            return self.target
        module, _, name = self.target.rpartition(".")
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found


class AsyncCallback(Callback):
    """Airflow runs it in its triggerer, so there it must be `async`."""

    def __init__(self, callback_callable: Callable[..., Any] | str, kwargs: Mapping[str, Any] | None = None) -> None:
        super().__init__(callback_callable, kwargs)


class SyncCallback(Callback):
    """Airflow runs it on an executor, which may be named; here there is one place for all."""


class DeadlineAlert:
    """One deadline of a DAG's runs; see the module."""

    def __init__(self, reference: Reference, interval: timedelta, callback: Callback, name: str | None = None) -> None:
        if not isinstance(reference, Reference):
            raise NotYetSupported(
                f"the reference of a deadline is {reference!r}: those of one's own would run user code whenever a run is made, "
                "which nobody does here; take one of DeadlineReference"
            )
        if not isinstance(interval, timedelta):
            raise NotYetSupported(
                f"the interval of a deadline is {interval!r}: it must be a timedelta, for whoever makes the run reads no variables"
            )
        if not isinstance(callback, Callback):
            raise DefinitionError(f"the callback of a deadline is {callback!r}; wrap it in AsyncCallback(…) or SyncCallback(…)")
        self.reference = reference
        self.interval = interval
        self.callback = callback
        self.name = name

    def definition(self) -> DeadlineDefinition:
        """What the scheduler has to know of it."""
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
    """The argument `deadline` of a DAG: one alert or several."""
    found = list(value) if isinstance(value, Sequence) else [value] if value else []
    for one in found:
        if not isinstance(one, DeadlineAlert):
            raise DefinitionError(f"deadline has {one!r}; it must be a DeadlineAlert, or a list of them")
    return found
