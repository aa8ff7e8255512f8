"""A clock that does not move by itself: time passes only when code waits, or when the test moves the clock.

While it is active, `time.time`, `time.monotonic` (and their `_ns` variants), `time.sleep`, the waiting of sensors, and the name
`datetime` in modules outside of Python's standard library use this clock; `sleep` moves it. Libraries that ran `from time import …`
before, or that read the clock in C, use the real clock.
"""

from __future__ import annotations

import datetime as dates
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from types import ModuleType
from typing import Any
from unittest.mock import patch

from tradewind.model.moments import SECOND, from_micros, to_micros
from tradewind.platform.clock import ManualClock
from tradewind.sensors import base as sensors


class FrozenClock(ManualClock):
    """A clock that stands still; see the module's docstring. A `datetime` without a time zone is in UTC. Numbers are seconds."""

    __slots__ = ()

    lead = 0
    """Microseconds by which this clock is ahead of the clock that tasks read: 0, because tasks read this clock."""

    @property
    def now(self) -> datetime:
        """The present, in UTC."""
        return from_micros(self.wall())

    def tick(self, duration: timedelta | float) -> None:
        """Move the clock forward. Raises ValueError for a negative duration."""
        seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
        self.advance(round(seconds * SECOND))

    def move_to(self, moment: datetime) -> None:
        """Set the clock, forward or backward."""
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        self.jump_wall(to_micros(aware) - self.wall())

    def jump_to(self, moment: int) -> None:
        """Move the clock forward to `moment` (µs). Do nothing if it is later already."""
        self.advance(max(0, moment - self.wall()))


_clocks: list[FrozenClock] = []


def frozen_now() -> FrozenClock | None:
    """The active frozen clock, or None."""
    return _clocks[-1] if _clocks else None


@contextmanager
def frozen(at: datetime | FrozenClock | None = None) -> Iterator[FrozenClock]:
    """Freeze the time inside this block: `with frozen(datetime(2026, 1, 31)) as clock: …`.

    Args:
        at: a datetime (UTC if it has no zone), or the clock to use. Default: 2026-01-01.
    """
    clock = at if isinstance(at, FrozenClock) else FrozenClock()
    if isinstance(at, datetime):
        clock.move_to(at)
    with ExitStack() as stack:
        if not _clocks:
            for owner, name, value in _replacements():
                stack.enter_context(patch.object(owner, name, value))
        _clocks.append(clock)
        try:
            yield clock
        finally:
            _clocks.pop()


def _wall() -> float:
    return _clocks[-1].wall() / SECOND


def _wall_ns() -> int:
    return _clocks[-1].wall() * 1000


def _monotonic() -> float:
    return _clocks[-1].monotonic() / SECOND


def _monotonic_ns() -> int:
    return _clocks[-1].monotonic() * 1000


def _sleep(seconds: float) -> None:
    _clocks[-1].tick(seconds)


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """(module, name, replacement) of everything that reads the clock."""
    yield time, "time", _wall
    yield time, "time_ns", _wall_ns
    yield time, "monotonic", _monotonic
    yield time, "monotonic_ns", _monotonic_ns
    yield time, "sleep", _sleep
    yield sensors, "_sleep", _sleep
    yield sensors, "_now", _wall
    yield sensors, "_elapsed", _monotonic
    for module in _modules():
        if vars(module).get("datetime") is datetime:
            yield module, "datetime", _FrozenDatetime


def _modules() -> list[ModuleType]:
    """All modules of users, and Tradewind's operators and sensors."""
    foreign = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    batteries = ("tradewind.operators.", "tradewind.sensors.")
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        users = bool(file) and not file.startswith(foreign) and not name.startswith(("tradewind.", "pytest", "_pytest"))
        if isinstance(module, ModuleType) and (users or name.startswith(batteries)):
            found.append(module)
    return found


class _Kind(type(datetime)):  # type: ignore[misc]  # the metaclass of a builtin
    """The metaclass of the replacement: real datetimes are instances of the replacement, too."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, datetime)


class _FrozenDatetime(dates.datetime, metaclass=_Kind):
    """A `datetime` class whose `now()` reads the frozen clock. It creates plain datetimes."""

    def __new__(cls, *args: Any, **kwargs: Any) -> datetime:  # type: ignore[misc]
        return datetime(*args, **kwargs)  # noqa: DTZ001

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(_wall(), tz)

    @classmethod
    def today(cls) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(_wall())  # noqa: DTZ006

    @classmethod
    def utcnow(cls) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(_wall(), UTC).replace(tzinfo=None)
