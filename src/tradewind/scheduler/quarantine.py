"""What failed while it was decided: set aside, and tried again after a wait that doubles with each failure in a row."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from tradewind.model.moments import MINUTE, SECOND

FIRST_WAIT = 30 * SECOND
LONGEST_WAIT = 30 * MINUTE


class HeldBack(NamedTuple):
    """Something besides a run that failed and waits."""

    until: int
    """When it is tried again."""
    why: str


class Quarantine:
    """Runs that are set aside, other things that are held back, and how long whatever failed has to wait.

    Failures are in a row when each came within twice the wait that the one before it had earned; nobody has to tell of successes.
    """

    def __init__(self) -> None:
        self._runs: dict[int, int] = {}
        """Run → when it is tried again."""
        self._held: dict[Hashable, HeldBack] = {}
        self._failures: dict[Hashable, tuple[int, int, int]] = {}
        """What failed → failures in a row, the moment of the last one, and the wait that it earned."""

    def failed(self, what: Hashable, now: int) -> int:
        """One more failure of a run, or of something else; when it is to be tried again."""
        count, last, wait = self._failures.get(what, (0, 0, 0))
        count = count + 1 if now - last <= 2 * wait else 1
        wait = min(FIRST_WAIT << min(count - 1, 16), LONGEST_WAIT)
        if len(self._failures) > 1000:
            self._failures = {key: one for key, one in self._failures.items() if now - one[1] <= 2 * one[2]}
        self._failures[what] = (count, now, wait)
        return now + wait

    def quarantine_run(self, run: int, now: int) -> int:
        """This run is left alone from now on; until when."""
        self._runs[run] = due = self.failed(run, now)
        return due

    def hold_back(self, what: Hashable, why: str, now: int) -> int:
        """This failed and is not tried before its wait is over; until when."""
        due = self.failed(what, now)
        self._held[what] = HeldBack(due, why)
        return due

    def held_back(self, what: Hashable, now: int) -> HeldBack | None:
        """Until when, and why; None where it may be tried now."""
        found = self._held.get(what)
        return found if found is not None and found.until > now else None

    def release(self, what: Hashable) -> bool:
        """Nothing holds it back any more, because its wait is over or a person changed something; whether something did."""
        return self._held.pop(what, None) is not None

    def __contains__(self, run: int) -> bool:
        return run in self._runs

    def is_over(self, run: int, now: int) -> bool:
        """Is it set aside, and has it waited long enough?"""
        return run in self._runs and self._runs[run] <= now

    def failures(self, what: Hashable) -> int:
        return self._failures.get(what, (0, 0, 0))[0]

    def until(self, run: int) -> int:
        """When it is tried again; 0 for a run that is not set aside."""
        return self._runs.get(run, 0)

    def discard(self, run: int) -> None:
        """It is tried again now. Its failures are remembered."""
        self._runs.pop(run, None)

    def clear(self) -> None:
        """Everything is read anew, and tried again with it."""
        self._runs.clear()
        self._held.clear()
