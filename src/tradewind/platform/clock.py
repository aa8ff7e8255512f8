"""Two clocks, both in integer microseconds. Their values must never be mixed.

The *wall* clock is for dates: schedules, output, rows in the store. It jumps when somebody sets the clock.

The *monotonic* clock is for durations: timers, timeouts, leases. It never jumps. It is the system's `CLOCK_MONOTONIC`, not
`CLOCK_BOOTTIME`: it stops while the machine is suspended, so that no lease expires and no task times out when a laptop sleeps for a
night, and it is the clock of `select`, `poll` and `epoll`. On Linux it is the same for all processes of one boot, so a value can be
stored with the boot id (`platform.boot`) and compared by another process; a value of another boot is meaningless.

Something that is due at a date, such as a cron tick, is due by the *wall* clock and must be checked again from time to time: a wait
on the monotonic clock ends too late after a suspend.
"""

from __future__ import annotations

import os
import time
from typing import Protocol

_RANDOM_SPAN_US = 50 * 365 * 24 * 3600 * 1_000_000
"""Fifty years: the range of the random monotonic start of a manual clock, which is far from today's wall clock."""


class Clock(Protocol):
    """Reads the time. Parts get a clock as an argument and never use the module `time` directly."""

    def wall(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        ...

    def monotonic(self) -> int:
        """Microseconds since an arbitrary moment of this boot; never goes back and does not jump with the wall clock."""
        ...


class SystemClock:
    """The clocks of this machine."""

    __slots__ = ()

    def wall(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1000


class ManualClock:
    """A clock for tests and simulations, which moves only when a method is called.

    The difference between its two values is random, so code that compares wall time with monotonic time fails at once.

    Args:
        wall: µs since the epoch at the start; default: 2026-01-01T00:00:00Z.
        monotonic: µs at the start; default: random (a simulation takes it from its own seed).
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
        """Let time pass: both clocks move forward.

        Raises:
            ValueError: `micros` is negative (use `jump_wall`).
        """
        self.suspend(micros)
        self._monotonic += micros

    def suspend(self, micros: int) -> None:
        """Suspend the machine: only the wall clock moves.

        Raises:
            ValueError: `micros` is negative.
        """
        if micros < 0:
            raise ValueError(f"time cannot go backwards: advance({micros}); use jump_wall to set the date back")
        self._wall += micros

    def jump_wall(self, micros: int) -> None:
        """Set the date forwards or (negative) backwards: only the wall clock moves."""
        self._wall += micros

    def __repr__(self) -> str:
        return f"ManualClock(wall={self._wall}, monotonic={self._monotonic})"
