"""Give memory back to the system when there is nothing to do: caches of what has ended, and the holes that a burst leaves."""

from __future__ import annotations

from tradewind.processes import HAVE_LINUX
from tradewind.scheduler.core import Scheduler

if HAVE_LINUX:
    from tradewind.processes import linux


class GiveBackMemory:
    name = "give_back"

    def __init__(self, scheduler: Scheduler, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler

    def run_once(self) -> bool:
        if HAVE_LINUX and not self._scheduler.busy and not self._scheduler.boxes:
            self._scheduler.release_memory()
            linux.give_back_memory()
        return False
