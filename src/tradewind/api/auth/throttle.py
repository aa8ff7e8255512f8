"""The throttle of login attempts: it slows down the guessing of passwords without locking out users.

Failures are counted for each pair of address and user name. So nobody can lock out others: neither other users of the same address,
nor the user of that name at another address. After some failures, each attempt has to wait twice as long as the one before. An
attempt counts as a failure before the password is checked, so that parallel attempts have no advantage. A success resets the count.

An attacker with many addresses has many pairs. So when a name has many failures in an hour, an address that is new for this name
gets one attempt without a wait instead of five. One is enough for the user of the name, who comes from one address.

A browser from which the user has logged in before has a count of its own. Guesses from elsewhere, even from the same address, do
not change it.
"""

from __future__ import annotations

import threading

from tradewind.model.moments import HOUR, MINUTE, SECOND
from tradewind.platform.clock import Clock

FREE_ATTEMPTS = 5
"""Attempts of an address and a name before the first wait."""
ATTACKED_AFTER = 50
"""Failures of one name in an hour, from any addresses, after which a new address has one attempt before the first wait."""
_LONGEST_WAIT = 5 * MINUTE
_FORGOTTEN_AFTER = 30 * MINUTE
_KEPT = 4096
"""Maximum of counters. The one with the fewest failures is removed first, so that many other names cannot reset a long wait."""

Key = tuple[str, str]


class _Count:
    __slots__ = ("failures", "free", "last")

    def __init__(self, free: int) -> None:
        self.failures = 0
        self.free = free
        self.last = 0


class Throttle:
    """Counts in memory; a restart resets all counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[Key, _Count] = {}
        self._names: dict[str, tuple[int, int]] = {}
        """Name → (start of its present hour, failures since then)."""

    def admit(self, address: str, name: str, device: str = "") -> int:
        """Count one attempt. Returns 0 if the password may be checked, else the seconds to wait; then it is not counted.

        Args:
            device: the secret of a browser from which this user has logged in before.
        """
        now = self._clock.monotonic()
        with self._lock:
            free = FREE_ATTEMPTS if device or not self._is_attacked(name, now) else 1
            count = self._count(_key(address, name, device), now, free)
            wait = _wait(count) - (now - count.last)
            if wait > 0:
                return -(-wait // SECOND)
            count.failures += 1
            count.last = now
            self._count_name(name[:200], now)
        return 0

    def succeeded(self, address: str, name: str, device: str = "") -> None:
        """Reset the count after a successful login."""
        with self._lock:
            self._counts.pop(_key(address, name, device), None)
            begun, failures = self._names.get(name[:200], (0, 0))
            if failures:
                self._names[name[:200]] = (begun, failures - 1)

    def _is_attacked(self, name: str, now: int) -> bool:
        begun, failures = self._names.get(name[:200], (now, 0))
        return failures >= ATTACKED_AFTER and now - begun < HOUR

    def _count_name(self, name: str, now: int) -> None:
        begun, failures = self._names.get(name, (now, 0))
        if now - begun >= HOUR:
            begun, failures = now, 0
        if name not in self._names and len(self._names) >= _KEPT:
            del self._names[min(self._names, key=lambda one: self._names[one][1])]
        self._names[name] = (begun, failures + 1)

    def _count(self, key: Key, now: int, free: int) -> _Count:
        count = self._counts.get(key)
        if count is None or now - count.last > _FORGOTTEN_AFTER:
            if count is None and len(self._counts) >= _KEPT:
                del self._counts[min(self._counts, key=lambda one: (self._counts[one].failures, self._counts[one].last))]
            count = self._counts[key] = _Count(free)
        return count


def _key(address: str, name: str, device: str) -> Key:
    return f"device {device}" if device else address, name[:200]


def _wait(count: _Count) -> int:
    beyond = count.failures - count.free
    return 0 if beyond < 0 else min(SECOND << min(beyond, 20), _LONGEST_WAIT)
