"""`airflow.stats`: metrics that user code sends, to the same server as Tradewind's own.

The settings `[metrics]` are read in this process when it sends the first metric. Nothing is loaded while metrics are off, except
the settings.
"""

from __future__ import annotations

import atexit
import os
import random
import re
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tradewind.observe.log import Log
from tradewind.sdk.conf import conf

if TYPE_CHECKING:
    from tradewind.metrics.measurement import Kind
    from tradewind.metrics.meter import Meter

__all__ = [
    "Stats",
    "Timer",
    "decr",
    "gauge",
    "get_stats_factory",
    "incr",
    "initialize",
    "normalize_name_for_stats",
    "timer",
    "timing",
]

log = Log("metrics")
_NO_TAGS: Mapping[str, Any] = {}

_meter: Meter | None = None
_pid = 0
"""The process in which `_meter` was made. A process that it forks makes its own."""


def _current_meter() -> Meter | None:
    """The meter of this process; None: metrics are off, or their settings are wrong."""
    global _meter, _pid
    if _pid != os.getpid():
        _pid, _meter = os.getpid(), None
        try:
            _meter = _make_meter()
        except Exception as error:  # a metric must never end the code that sends it
            log.warning("metrics of user code are not sent", error=f"{type(error).__name__}: {error}")
    return _meter


def _make_meter() -> Meter | None:
    if not any(conf.getboolean("metrics", key) for key in ("statsd_on", "statsd_datadog_enabled", "otel_on")):
        return None
    from tradewind.metrics.config import read_config  # lazy imports: only where metrics are on
    from tradewind.metrics.meter import Meter
    from tradewind.metrics.sender import Sender, resolve

    config = read_config(lambda key: conf.get("metrics", key, None), os.environ)
    if config is None:
        return None
    if config.otel is None:
        return Meter(config, Sender(resolve(config.host, config.port, config.ipv6)))
    meter = Meter(config)
    atexit.register(meter.close)  # the values of a short task are exported at its end
    return meter


def _send(kind: Kind, name: str, value: float, tags: Mapping[str, Any] | None, rate: float = 1) -> None:
    meter = _current_meter()
    if meter is None or (rate < 1 and random.random() > rate):
        return
    try:
        meter.send(kind, name, value, tags or _NO_TAGS, rate)
    except Exception as error:
        log.warning("a metric of user code is not sent", metric=name, error=f"{type(error).__name__}: {error}")


class Timer:
    """Measures a duration: a context manager, a decorator, or a stopwatch with `start` and `stop`.

    Attributes:
        duration: milliseconds between start and stop; None: it was not stopped yet.
    """

    def __init__(self, stat: str | None = None, tags: Mapping[str, Any] | None = None) -> None:
        self.duration: float | None = None
        self._stat = stat
        self._tags = tags
        self._started = 0.0

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with Timer(self._stat, self._tags):
                return function(*args, **kwargs)

        return timed

    def __enter__(self) -> Timer:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> Timer:
        """Begin a measurement."""
        self.duration = None
        self._started = time.perf_counter()
        return self

    def stop(self, send: bool = True) -> None:
        """End the measurement, and send it."""
        self.duration = (time.perf_counter() - self._started) * 1000
        if send and self._stat:
            _send("timing", self._stat, self.duration, self._tags)


class Stats:
    """Sends metrics. Each method takes tags; without a metrics server it does nothing."""

    @classmethod
    def initialize(cls, *_args: Any, **_kwargs: Any) -> None:
        """Do nothing: the first metric reads the settings."""

    @classmethod
    def incr(cls, stat: str, count: int = 1, rate: float = 1, *, tags: Mapping[str, Any] | None = None) -> None:
        """Add to a counter.

        Args:
            rate: the fraction of the calls that send something.
        """
        _send("count", stat, count, tags, rate)

    @classmethod
    def decr(cls, stat: str, count: int = 1, rate: float = 1, *, tags: Mapping[str, Any] | None = None) -> None:
        """Subtract from a counter."""
        _send("count", stat, -count, tags, rate)

    @classmethod
    def gauge(
        cls, stat: str, value: float, rate: float = 1, delta: bool = False, *, tags: Mapping[str, Any] | None = None
    ) -> None:
        """Set a value.

        Args:
            delta: add to the present value.
        """
        _send("change" if delta else "gauge", stat, value, tags, rate)

    @classmethod
    def timing(cls, stat: str, dt: float | timedelta, *, tags: Mapping[str, Any] | None = None) -> None:
        """Record a duration; a number is milliseconds."""
        _send("timing", stat, dt.total_seconds() * 1000 if isinstance(dt, timedelta) else dt, tags)

    @classmethod
    def timer(cls, stat: str | None = None, *_args: Any, tags: Mapping[str, Any] | None = None, **_kwargs: Any) -> Timer:
        """Measure how long a block takes. Without a name nothing is sent, and `duration` has the result."""
        return Timer(stat, tags)


def normalize_name_for_stats(name: str, log_warning: bool = True) -> str:
    """A name with `_` in place of each character that StatsD servers do not accept.

    Args:
        log_warning: log a warning if the name is changed.
    """
    found = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    if log_warning and found != name:
        log.warning("a name has characters that StatsD servers do not accept", name=name, used=found)
    return found


def get_stats_factory(*_args: Any) -> type[Stats]:
    """The class whose objects send metrics. Listeners of packages (openlineage) hand it to `Stats.initialize`."""
    return Stats


initialize, incr, decr, gauge = Stats.initialize, Stats.incr, Stats.decr, Stats.gauge
timing, timer = Stats.timing, Stats.timer
