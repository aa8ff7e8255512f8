"""Notice that the file of the open database was deleted or replaced.

SQLite works on in the file that it has open, though nobody can find that file any more. What is written there is lost with the
process, and the next start would find no database, or another one.
"""

from __future__ import annotations

from collections.abc import Callable

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log

log = Log("scheduler")

EVERY = 5 * SECOND
"""One look costs one `stat`: some 2 microseconds."""


class WatchDatabase:
    """Args:
    replaced: a sentence when the open file is not the one at its path any more, else None.
    stop: ends the scheduler.
    """

    name = "watch database"
    interval = EVERY

    def __init__(self, replaced: Callable[[], str | None], stop: Callable[[], None]) -> None:
        self._replaced = replaced
        self._stop = stop
        self.problem: str | None = None

    def run_once(self) -> bool:
        problem = self._replaced()
        if problem is not None and self.problem is None:
            self.problem = problem
            log.error("the scheduler stops", why=problem)
            self._stop()
        return False
