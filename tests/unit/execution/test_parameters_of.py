"""Reading the parameters of a function from its code object gives the same result as `inspect`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tradewind.execution import call_arguments


def f1() -> None: ...
def f2(a, b=1, /, c=2, *, d, e=3): ...  # type: ignore[no-untyped-def]
def f3(a, *args, b=1, **kwargs): ...  # type: ignore[no-untyped-def]
def f4(*, x, **k): ...  # type: ignore[no-untyped-def]
def f5(a, b, /, *rest): ...  # type: ignore[no-untyped-def]
def f6(partition_key=None, conf=None, *, partition_date=None, x=None): ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize("function", [f1, f2, f3, f4, f5, f6, lambda x, y=2: None])
def test_parameters_are_those_of_inspect(function: Callable[..., Any]) -> None:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> None: ...

    assert inspect.signature(wrapped) == inspect.signature(function)
    # `wrapped` has a __dict__ and goes through inspect, `function` through its code
    assert call_arguments._parameters_of.__wrapped__(function) == call_arguments._parameters_of.__wrapped__(wrapped)


def test_variables_of_partitions_are_passed_over_none() -> None:
    """As in Airflow 3. `conf` is the configuration in older files, and a name of an argument in others."""
    context = {"partition_key": "eu", "partition_date": "2026-01-01", "conf": "of Airflow"}
    assert call_arguments.arguments_for(f6, (), {}, context) == {"partition_key": "eu", "partition_date": "2026-01-01"}
    assert call_arguments.arguments_for(lambda partition_key="own": None, (), {}, context) == {}
    assert call_arguments.arguments_for(f6, ("mine",), {}, context) == {"partition_date": "2026-01-01"}
