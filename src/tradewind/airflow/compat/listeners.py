"""`airflow.listeners`: the mark of listener functions. Listeners are accepted and not called yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["hookimpl"]

F = TypeVar("F", bound=Callable[..., object])


def hookimpl(function: F) -> F:
    """Mark a listener function."""
    return function
