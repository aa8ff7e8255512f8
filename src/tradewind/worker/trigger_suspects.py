"""Which trigger ends the process of all, when nobody's code was on record: one of its threads did it, or a library's.

Found by halving: after some such ends only half of the triggers that ran are begun again. If the process ends once more it was one
of them; if it lives long enough it is one of those that are held back. Pure; the keeper has the clock.
"""

from __future__ import annotations

from collections.abc import Collection

from tradewind.model.moments import SECOND
from tradewind.wire.messages import AttemptKey

ENDS_MAX = 3
"""After so many ends in a row the halving begins."""
LIVED_WELL = 600 * SECOND
"""A process that lived so long begins a new row."""
PROBATION = 10 * SECOND
"""At least so long has a half to live to be cleared; and twice as long as the longest life of the row that was no good one."""


class Suspects:
    """See the module. `held`: those that are not to be begun for now."""

    def __init__(self) -> None:
        self.held: frozenset[AttemptKey] = frozenset()
        self._suspects: list[AttemptKey] = []
        self._ends = 0
        self._longest = 0

    @property
    def probation(self) -> int | None:
        """Microseconds after which `survived` is to be called; None: nobody is held."""
        return max(PROBATION, 2 * self._longest) if self.held or self._suspects else None

    def ended(self, ran: Collection[AttemptKey], lived: int) -> AttemptKey | None:
        """The process ended and nobody's code was on record; whose fault that was, if it is known by now.

        Args:
            ran: triggers that had been begun and had not fired.
            lived: microseconds of the process.
        """
        if lived >= LIVED_WELL:
            self.clear()
        else:
            self._longest = max(self._longest, lived)
        self._ends += 1
        if self._suspects:
            self._suspects = [key for key in self._suspects if key in ran and key not in self.held]
            if not self._suspects:  # it is one that came since
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
        """Those that were begun are cleared: it is one of the others, which are looked at next, or nobody."""
        self._suspects = [key for key in self._suspects if key in self.held]
        if not self._suspects:
            self.clear()
        else:
            self._halve()

    def clear(self) -> None:
        """Begin anew."""
        self.held, self._suspects, self._ends, self._longest = frozenset(), [], 0, 0

    def _halve(self) -> None:
        self.held = frozenset(self._suspects[(len(self._suspects) + 1) // 2 :])
