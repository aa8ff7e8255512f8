"""Guessing passwords must be slow, without locking out whoever knows theirs.

Failures are counted for an address and a name together, so that nobody can lock out others: not those behind the same address, and
not the owner of the name elsewhere. Beyond a few, each further attempt has to wait twice as long as the one before. An attempt is
charged before it is tried, so that many at once gain nothing; a success starts the count anew.
"""

from __future__ import annotations

import threading

from tradewind.model.moments import MINUTE, SECOND
from tradewind.platform.clock import Clock

FREE = 5
_LONGEST_WAIT = 5 * MINUTE
_FORGOTTEN_AFTER = 30 * MINUTE
_KEPT = 4096
"""Counters held at most; one with the fewest failures goes first, so that a flood of names frees none that waits."""

Key = tuple[str, str]


class _Count:
    __slots__ = ("failures", "last")

    def __init__(self) -> None:
        self.failures = 0
        self.last = 0


class Throttle:
    """Counts in memory; a restart forgets."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[Key, _Count] = {}

    def admit(self, address: str, name: str) -> int:
        """Charge one attempt. 0: try it; else the whole seconds to wait, and nothing is charged."""
        now = self._clock.monotonic()
        with self._lock:
            count = self._count(_key(address, name), now)
            wait = _wait(count) - (now - count.last)
            if wait > 0:
                return -(-wait // SECOND)
            count.failures += 1
            count.last = now
        return 0

    def succeeded(self, address: str, name: str) -> None:
        """The attempt was right: the count starts anew."""
        with self._lock:
            self._counts.pop(_key(address, name), None)

    def _count(self, key: Key, now: int) -> _Count:
        count = self._counts.get(key)
        if count is None or now - count.last > _FORGOTTEN_AFTER:
            if count is None and len(self._counts) >= _KEPT:
                del self._counts[min(self._counts, key=lambda one: (self._counts[one].failures, self._counts[one].last))]
            count = self._counts[key] = _Count()
        return count


def _key(address: str, name: str) -> Key:
    return address, name[:200]


def _wait(count: _Count) -> int:
    beyond = count.failures - FREE
    return 0 if beyond < 0 else min(SECOND << min(beyond, 20), _LONGEST_WAIT)
