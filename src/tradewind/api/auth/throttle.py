"""Guessing passwords must be slow, without locking out whoever knows theirs.

Failures are counted for (address, name) and for the address. Beyond a few, each further attempt has to wait twice as long as the
one before. An attempt is charged before it is tried, so that many at once gain nothing; a success gives it back.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from tradewind.model.moments import MINUTE, SECOND
from tradewind.service.clock import Clock

FREE_FOR_NAME, FREE_FOR_ADDRESS = 5, 20
_LONGEST_WAIT = 5 * MINUTE
_FORGOTTEN_AFTER = 30 * MINUTE
_KEPT = 4096
"""Counters held at most; the oldest goes first."""

Key = tuple[str, ...]


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
        self._counts: OrderedDict[Key, _Count] = OrderedDict()

    def admit(self, address: str, name: str) -> int:
        """Charge one attempt. 0: try it; else the whole seconds to wait, and nothing is charged."""
        now = self._clock.monotonic()
        with self._lock:
            counts = [self._count(key, now) for key in self._keys(address, name)]
            wait = max(
                _wait(count, free) - (now - count.last)
                for count, free in zip(counts, (FREE_FOR_NAME, FREE_FOR_ADDRESS), strict=True)
            )
            if wait > 0:
                return -(-wait // SECOND)
            for count in counts:
                count.failures += 1
                count.last = now
        return 0

    def succeeded(self, address: str, name: str) -> None:
        """The attempt was right: the name starts anew, the address gets this attempt back."""
        with self._lock:
            by_name, by_address = self._keys(address, name)
            self._counts.pop(by_name, None)
            if by_address in self._counts:
                self._counts[by_address].failures -= 1

    @staticmethod
    def _keys(address: str, name: str) -> tuple[Key, Key]:
        return (address, name[:200]), (address,)

    def _count(self, key: Key, now: int) -> _Count:
        count = self._counts.get(key)
        if count is None or now - count.last > _FORGOTTEN_AFTER:
            count = self._counts[key] = _Count()
        self._counts.move_to_end(key)
        while len(self._counts) > _KEPT:
            self._counts.popitem(last=False)
        return count


def _wait(count: _Count, free: int) -> int:
    beyond = count.failures - free
    return 0 if beyond < 0 else min(SECOND << min(beyond, 20), _LONGEST_WAIT)
