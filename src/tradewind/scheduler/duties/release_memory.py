"""Give memory back to the system when there is nothing to do: caches of what has ended, and the holes that a burst leaves."""

from __future__ import annotations

from collections.abc import Callable

from tradewind.platform import HAVE_LINUX
from tradewind.scheduler.core import Scheduler

if HAVE_LINUX:
    from tradewind.platform import linux


def to_the_system() -> None:
    """What is free in this process."""
    if HAVE_LINUX:
        linux.give_back_memory()


class ReleaseMemory:
    """`give_back` is called when caches are empty: a simulation has no process of its own that could give anything back."""

    name = "give_back"

    def __init__(self, scheduler: Scheduler, interval: int, give_back: Callable[[], None] = to_the_system) -> None:
        self.interval = interval
        self._scheduler = scheduler
        self._give_back = give_back

    def run_once(self) -> bool:
        if not self._scheduler.busy and not self._scheduler.active_runs_by_id:
            self._scheduler.release_memory()
            self._give_back()
        return False
