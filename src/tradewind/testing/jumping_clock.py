"""A clock that jumps forward instead of waiting."""

from __future__ import annotations

from tradewind.platform.clock import Clock, SystemClock


class JumpingClock:
    """The system clocks plus a lead that grows with every `jump_to`.

    Work takes its real time; waiting takes no time. A retry in five minutes starts at once, and for all code that reads this
    clock, five minutes have passed.
    """

    def __init__(self, real: Clock | None = None) -> None:
        self._real = real if real is not None else SystemClock()
        self._lead = 0

    @property
    def lead(self) -> int:
        """Microseconds by which this clock is ahead of the system clocks."""
        return self._lead

    def wall(self) -> int:
        return self._real.wall() + self._lead

    def monotonic(self) -> int:
        return self._real.monotonic() + self._lead

    def jump_to(self, moment: int) -> None:
        """Move the wall clock forward to `moment` (µs). Do nothing if it is later already."""
        self._lead += max(0, moment - self.wall())
