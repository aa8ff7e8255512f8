"""The throttle of login attempts: it slows down the guessing of passwords without locking out users.

Failures are counted for each pair of address and user name. So nobody can lock out others: neither other users of the same address,
nor the user of that name at another address. After some failures, each attempt has to wait twice as long as the one before. An
attempt counts as a failure before the password is checked, so that parallel attempts have no advantage. A success resets the count.
"""

from __future__ import annotations

import threading

from tradewind.model.moments import MINUTE, SECOND
from tradewind.platform.clock import Clock

FREE = 5
_LONGEST_WAIT = 5 * MINUTE
_FORGOTTEN_AFTER = 30 * MINUTE
_KEPT = 4096
"""Maximum of counters. The one with the fewest failures is removed first, so that many other names cannot reset a long wait."""

Key = tuple[str, str]


class _Count:
    __slots__ = ("failures", "last")

    def __init__(self) -> None:
        self.failures = 0
        self.last = 0


class Throttle:
    """Counts in memory; a restart resets all counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[Key, _Count] = {}

    def admit(self, address: str, name: str) -> int:
        """Count one attempt. Returns 0 if the password may be checked, else the seconds to wait; then it is not counted."""
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
        """Reset the count after a successful login."""
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
