"""`airflow.stats`: metrics that user code sends. They are not collected yet."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["Stats", "decr", "gauge", "get_stats_factory", "incr", "initialize", "timer", "timing"]


class Stats:
    """Accepts metrics and drops them."""

    @classmethod
    def initialize(cls, *_args: Any, **_kwargs: Any) -> None:
        """Do nothing: metrics have no destination."""

    @classmethod
    def incr(cls, *_args: Any, **_kwargs: Any) -> None:
        """Count up."""

    @classmethod
    def decr(cls, *_args: Any, **_kwargs: Any) -> None:
        """Count down."""

    @classmethod
    def gauge(cls, *_args: Any, **_kwargs: Any) -> None:
        """Set a value."""

    @classmethod
    def timing(cls, *_args: Any, **_kwargs: Any) -> None:
        """Record a duration."""

    @classmethod
    def timer(cls, *_args: Any, **_kwargs: Any) -> AbstractContextManager[None]:
        """Record how long a block takes."""
        return nullcontext()


def get_stats_factory(*_args: Any) -> type[Stats]:
    """The class whose objects send metrics. Listeners of packages (openlineage) hand it to `Stats.initialize`."""
    return Stats


initialize, incr, decr, gauge = Stats.initialize, Stats.incr, Stats.decr, Stats.gauge
timing, timer = Stats.timing, Stats.timer
