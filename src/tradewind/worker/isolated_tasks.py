"""Which tasks run isolated: those that were running whenever the base image or a template died.

When a base image or template dies, other tasks lose time, and repeated deaths cost more each time. So a task that was running at
two deaths is forked from a second base image, which only such tasks use. A task that was running by chance also works there.


This module is pure: the host passes the time in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tradewind.model.moments import SECOND

ISOLATED_AFTER = 2
"""A task that was running at this number of deaths is isolated."""
REMEMBERED = 600 * SECOND
"""For how long a death counts, microseconds."""
DEATHS_MAX = 20
"""Maximum number of deaths that are remembered."""

TaskName = tuple[str, str]
"""(DAG id, task id): further tries, runs and mapped instances of an isolated task are isolated too."""


class IsolatedTasks:
    """See the module. Moments are monotonic microseconds."""

    def __init__(self) -> None:
        self._deaths: deque[tuple[int, frozenset[TaskName]]] = deque(maxlen=DEATHS_MAX)

    def died(self, now: int, running: Iterable[TaskName]) -> None:
        """Record that an image died while the code of these tasks was running."""
        there = frozenset(running)
        if there:
            self._deaths.append((now, there))

    def remembers(self, now: int) -> bool:
        """Whether there is a death that still counts."""
        while self._deaths and now - self._deaths[0][0] > REMEMBERED:
            self._deaths.popleft()
        return bool(self._deaths)

    def is_isolated(self, task: TaskName, now: int) -> bool:
        """Whether this task has to run from the isolated base image."""
        return self.remembers(now) and sum(task in there for _, there in self._deaths) >= ISOLATED_AFTER
