"""Two clocks, both integer microseconds, never to be mixed.

*Wall* answers "what date is it?": schedules, what people see, rows in the store. It jumps when somebody sets the clock.

*Monotonic* answers "how long has it been?": timers, timeouts, leases. It never jumps. It is the system's
`CLOCK_MONOTONIC`, not `CLOCK_BOOTTIME`: it stands still while the machine is suspended, so a laptop that wakes after a
night has expired no lease and timed out no task, and it is the clock that `select`, `poll` and `epoll` wait on. On
Linux it is the same for every process of one boot, so a value may be kept beside the boot id (`service.boot`) and
compared by another process; a value of another boot means nothing.

What must happen at a date (a cron tick) is therefore due by *wall* and has to be looked at again now and then: a wait
measured on the monotonic clock ends late after a suspend.
"""

from __future__ import annotations

import os
import time
from typing import Protocol

_RANDOM_SPAN_US = 50 * 365 * 24 * 3600 * 1_000_000
"""Fifty years: a manual clock's monotonic start is drawn from here; it never comes near today's wall clock."""


class Clock(Protocol):
    """What reads the time. Parts receive one; none reads `time` by itself."""

    def wall(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        ...

    def monotonic(self) -> int:
        """Microseconds since an unknown moment of this boot; never goes back, never jumps with the wall clock."""
        ...


class SystemClock:
    """The clocks of this machine."""

    __slots__ = ()

    def wall(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1000


class ManualClock:
    """A clock that moves only when told to, for tests and simulations.

    The distance between its two readings is random for each clock, so code that compares a wall moment with a monotonic
    one fails on its first day.

    Args:
        wall: µs since the epoch at the start; 2026-01-01T00:00:00Z unless told.
        monotonic: µs at the start; random unless told (a simulation draws it from its own seed).
    """

    __slots__ = ("_monotonic", "_wall")

    def __init__(self, wall: int = 1_767_225_600_000_000, monotonic: int | None = None) -> None:
        self._wall = wall
        self._monotonic = int.from_bytes(os.urandom(8), "big") % _RANDOM_SPAN_US if monotonic is None else monotonic

    def wall(self) -> int:
        return self._wall

    def monotonic(self) -> int:
        return self._monotonic

    def advance(self, micros: int) -> None:
        """Time goes by: both clocks move.

        Raises:
            ValueError: `micros` is negative; time does not run backwards (use `jump_wall`).
        """
        self.suspend(micros)
        self._monotonic += micros

    def suspend(self, micros: int) -> None:
        """The machine sleeps: only the wall clock has moved when it wakes.

        Raises:
            ValueError: `micros` is negative.
        """
        if micros < 0:
            raise ValueError(f"time does not run backwards: advance({micros}); use jump_wall to set the date back")
        self._wall += micros

    def jump_wall(self, micros: int) -> None:
        """Somebody sets the date, forwards or (negative) backwards: only the wall clock moves."""
        self._wall += micros

    def __repr__(self) -> str:
        return f"ManualClock(wall={self._wall}, monotonic={self._monotonic})"
