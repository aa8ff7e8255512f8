"""Decides whether a process is stalled. It only computes; the supervisor has the clock, the pipes and the processes.

The supervisor checks several times within the limit, and only a process that exceeds the limit at two checks in a row is stalled:
after a pause of the whole machine, the first check comes before a process could report progress.
"""

from __future__ import annotations

CHECKS_PER_LIMIT = 6
START_LIMITS = 5
"""Before its first report a process may take this many times the limit, because it may have much to load."""


class Watchdog:
    """Watches one process from its start to its end. All times are microseconds of the monotonic clock.

    Args:
        limit: how long the process may report no progress; a stall is found at most a third later.
        now: time of its start.
    """

    def __init__(self, limit: int, now: int) -> None:
        self._limit = limit
        self._last = now
        self._has_reported = False
        self._suspected = False

    def record_progress(self, now: int) -> None:
        """Note that the process has reported progress."""
        self._last, self._has_reported, self._suspected = now, True, False

    def is_stalled(self, now: int) -> bool:
        """Check the process. Returns True if it is stalled."""
        allowed = self._limit if self._has_reported else START_LIMITS * self._limit
        before, self._suspected = self._suspected, now - self._last > allowed
        return before and self._suspected

    def silent_for(self, now: int) -> int:
        """Microseconds since the last report, or since the start."""
        return now - self._last
