"""Find the trigger that ends the triggerer, when no trigger's code was recorded as running: one of its threads, or a library.

The search is by halving: after some such ends only half of the triggers that ran are started again. If the process ends once more,
the culprit is among them; if it lives long enough, the culprit is among those that are held back. Pure; the caller has the clock.
"""

from __future__ import annotations

from collections.abc import Collection

from tradewind.model.moments import SECOND
from tradewind.wire.messages import AttemptKey

ENDS_MAX = 3
"""Number of ends in a row after which the search begins."""
LIVED_WELL = 600 * SECOND
"""After a process that lived for this time, the ends are counted from zero."""
PROBATION = 10 * SECOND
"""A half is cleared after at least this time, and after twice the longest lifetime in the row of ends."""


class Suspects:
    """See the module. `held`: triggers that are not started for now."""

    def __init__(self) -> None:
        self.held: frozenset[AttemptKey] = frozenset()
        self._suspects: list[AttemptKey] = []
        self._ends = 0
        self._longest = 0

    @property
    def probation(self) -> int | None:
        """Microseconds after which `survived` is to be called; None: no trigger is held back."""
        return max(PROBATION, 2 * self._longest) if self.held or self._suspects else None

    def ended(self, ran: Collection[AttemptKey], lived: int) -> AttemptKey | None:
        """The process ended while no trigger's code was recorded as running. Returns the culprit, if it is known by now.

        Args:
            ran: triggers that had been started and had not fired.
            lived: lifetime of the process, microseconds.
        """
        if lived >= LIVED_WELL:
            self.clear()
        else:
            self._longest = max(self._longest, lived)
        self._ends += 1
        if self._suspects:
            self._suspects = [key for key in self._suspects if key in ran and key not in self.held]
            if not self._suspects:  # the culprit is a trigger that came later
                self.clear()
                return None
        elif self._ends < ENDS_MAX:
            return None
        else:
            self._suspects = list(ran)
        if len(self._suspects) == 1:
            found = self._suspects[0]
            self.clear()
            return found
        self._halve()
        return None

    def survived(self) -> None:
        """The started triggers are cleared. The culprit is one of the held ones, which are examined next, or none."""
        self._suspects = [key for key in self._suspects if key in self.held]
        if not self._suspects:
            self.clear()
        else:
            self._halve()

    def clear(self) -> None:
        """Forget all suspects."""
        self.held, self._suspects, self._ends, self._longest = frozenset(), [], 0, 0

    def _halve(self) -> None:
        self.held = frozenset(self._suspects[(len(self._suspects) + 1) // 2 :])
