"""Return memory to the operating system when no run is active: caches of ended runs, and free memory that a burst left."""

from __future__ import annotations

from collections.abc import Callable

from tradewind.platform import HAVE_LINUX
from tradewind.scheduler.core import Scheduler

if HAVE_LINUX:
    from tradewind.platform import linux


def return_free_memory() -> None:
    """Return the free memory of this process to the operating system."""
    if HAVE_LINUX:
        linux.give_back_memory()


class ReleaseMemory:
    """See the module.

    Args:
        give_back: called when the caches are empty; a simulation passes a function that does nothing.
    """

    name = "give_back"

    def __init__(self, scheduler: Scheduler, interval: int, give_back: Callable[[], None] = return_free_memory) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._give_back = give_back

    def run_once(self) -> bool:
        if not self._scheduler.busy and not self._scheduler.active_runs_by_id:
            self._scheduler.release_memory()
            self._give_back()
        return False
