"""`airflow.utils.decorators` of Airflow 1 and 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["apply_defaults"]

F = TypeVar("F", bound=Callable[..., object])


def apply_defaults(function: F) -> F:
    """Return a function unchanged: `default_args` fill the arguments of every operator without a decorator."""
    return function
