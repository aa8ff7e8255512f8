"""Notice that the file of the open database was deleted or replaced.

SQLite continues to use the open file, although the file has no name any more. All data written to it is lost when the process
ends, and the next start would find no database, or another one.
"""

from __future__ import annotations

from collections.abc import Callable

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log

log = Log("scheduler")

EVERY = 5 * SECOND
"""One check costs one `stat`, about 2 microseconds."""


class WatchDatabase:
    """See the module.

    Args:
        replaced: returns a sentence if the open file is not the file at its path any more, otherwise None.
        stop: stops the scheduler.
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
