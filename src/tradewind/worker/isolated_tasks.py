"""Which tasks are run apart: those that were running at several deaths of the base image or of a template.

The death of an image costs other tasks time, and one that keeps dying costs them more each time. So a task that was there twice is
forked from a base image that only such tasks use. A task that was there by chance runs as well from that one.

Pure: the host has the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tradewind.model.moments import SECOND

SUSPECT_AFTER = 2
"""Deaths at which a task was running."""
REMEMBERED = 600 * SECOND
"""Each death counts for so long."""
DEATHS_MAX = 20
"""So many deaths are remembered at most."""

TaskName = tuple[str, str]
"""(DAG id, task id): a further try, run or mapped instance of a suspect is a suspect too."""


class ImageSuspects:
    """See the module. Moments are monotonic microseconds."""

    def __init__(self) -> None:
        self._deaths: deque[tuple[int, frozenset[TaskName]]] = deque(maxlen=DEATHS_MAX)

    def died(self, now: int, running: Iterable[TaskName]) -> None:
        """An image died while the code of these tasks was running."""
        there = frozenset(running)
        if there:
            self._deaths.append((now, there))

    def remembers(self, now: int) -> bool:
        """Is there a death that still counts?"""
        while self._deaths and now - self._deaths[0][0] > REMEMBERED:
            self._deaths.popleft()
        return bool(self._deaths)

    def is_suspect(self, task: TaskName, now: int) -> bool:
        """Is this task to be run apart?"""
        return self.remembers(now) and sum(task in there for _, there in self._deaths) >= SUSPECT_AFTER
