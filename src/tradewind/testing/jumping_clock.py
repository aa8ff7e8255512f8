"""A clock on which nobody has to wait."""

from __future__ import annotations

from tradewind.platform.clock import Clock, SystemClock


class JumpingClock:
    """The system's clocks, and a lead over them that grows with every `jump_to`.

    Work takes as long as it takes; waiting takes no time. A retry in five minutes comes at once, and everything that reads
    this clock finds that five minutes have gone by.
    """

    def __init__(self, real: Clock | None = None) -> None:
        self._real = real if real is not None else SystemClock()
        self._lead = 0

    @property
    def lead(self) -> int:
        """Microseconds by which it is ahead of the system's clocks."""
        return self._lead

    def wall(self) -> int:
        return self._real.wall() + self._lead

    def monotonic(self) -> int:
        return self._real.monotonic() + self._lead

    def jump_to(self, moment: int) -> None:
        """It is `moment` by the wall clock, unless it is later already."""
        self._lead += max(0, moment - self.wall())
