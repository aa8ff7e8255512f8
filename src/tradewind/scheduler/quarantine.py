"""Runs and steps that failed: they are ignored and tried again after a pause that doubles with each failure in a row."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from tradewind.model.moments import MINUTE, SECOND

FIRST_WAIT = 30 * SECOND
LONGEST_WAIT = 30 * MINUTE


class HeldBack(NamedTuple):
    """A step (not a run) that failed."""

    until: int
    """The moment at which it is tried again."""
    why: str


class Quarantine:
    """Quarantined runs, held back steps, and the pauses of both.

    A failure counts as one in a row if it comes within twice the pause of the previous failure. So successes need not be
    reported.
    """

    def __init__(self) -> None:
        self._runs: dict[int, int] = {}
        """Run → the moment at which it is tried again."""
        self._held: dict[Hashable, HeldBack] = {}
        self._failures: dict[Hashable, tuple[int, int, int]] = {}
        """Failed run or step → failures in a row, the moment of the last one, and its pause."""

    def failed(self, what: Hashable, now: int) -> int:
        """Count a failure of a run or step, and return the moment at which it is to be tried again."""
        count, last, wait = self._failures.get(what, (0, 0, 0))
        count = count + 1 if now - last <= 2 * wait else 1
        wait = min(FIRST_WAIT << min(count - 1, 16), LONGEST_WAIT)
        if len(self._failures) > 1000:
            self._failures = {key: one for key, one in self._failures.items() if now - one[1] <= 2 * one[2]}
        self._failures[what] = (count, now, wait)
        return now + wait

    def quarantine_run(self, run: int, now: int) -> int:
        """Quarantine a run, and return the moment at which it is tried again."""
        self._runs[run] = due = self.failed(run, now)
        return due

    def hold_back(self, what: Hashable, why: str, now: int) -> int:
        """Hold back a step that failed, and return the moment at which it is tried again."""
        due = self.failed(what, now)
        self._held[what] = HeldBack(due, why)
        return due

    def held_back(self, what: Hashable, now: int) -> HeldBack | None:
        """Return until when a step is held back, and why; None: it may be tried now."""
        found = self._held.get(what)
        return found if found is not None and found.until > now else None

    def release(self, what: Hashable) -> bool:
        """Stop holding back a step, because its pause is over or a person changed something. Return whether it was held back."""
        return self._held.pop(what, None) is not None

    def __contains__(self, run: int) -> bool:
        return run in self._runs

    def is_over(self, run: int, now: int) -> bool:
        """Return whether the run is quarantined and its pause is over."""
        return run in self._runs and self._runs[run] <= now

    def failures(self, what: Hashable) -> int:
        """Return the number of failures in a row."""
        return self._failures.get(what, (0, 0, 0))[0]

    def until(self, run: int) -> int:
        """Return the moment at which a run is tried again; 0 for a run that is not quarantined."""
        return self._runs.get(run, 0)

    def discard(self, run: int) -> None:
        """Release a run from quarantine. Its failures stay counted."""
        self._runs.pop(run, None)

    def clear(self) -> None:
        """Release everything: it is loaded from the store and tried again."""
        self._runs.clear()
        self._held.clear()
