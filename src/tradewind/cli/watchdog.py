"""When is a process that stands still to be ended? Pure: the supervisor has the clock, the pipes and the processes.

It is looked at several times within the limit, and only what was found still at two looks in a row is ended: after a pause of the
whole machine, the first look comes before anybody could say a word.
"""

from __future__ import annotations

LOOKS_PER_LIMIT = 6
START_LIMITS = 5
"""A process that has not said a word since its start may take so many times the limit: it may have much to read."""


class Watchdog:
    """One life of one process. Moments and `limit` are microseconds of the monotonic clock.

    Args:
        limit: how long it may say nothing; it is ended at most a third later.
        now: when it was started.
    """

    def __init__(self, limit: int, now: int) -> None:
        self._limit = limit
        self._last = now
        self._heard = False
        self._suspected = False

    def heard(self, now: int) -> None:
        """It said that its loop turns."""
        self._last, self._heard, self._suspected = now, True, False

    def is_stuck(self, now: int) -> bool:
        """One look: is it to be ended?"""
        allowed = self._limit if self._heard else START_LIMITS * self._limit
        before, self._suspected = self._suspected, now - self._last > allowed
        return before and self._suspected

    def silent_for(self, now: int) -> int:
        """Microseconds since its last word, or its start."""
        return now - self._last
