"""Safety net: ask the hosts whether they still hold what we believe to run."""

from __future__ import annotations

from tradewind.scheduler.core import Scheduler


class ReconcileHosts:
    name = "reconcile"

    def __init__(self, scheduler: Scheduler, interval: int) -> None:
        self.interval = interval
        self._scheduler = scheduler

    def run_once(self) -> bool:
        if self._scheduler.executor.ready:
            self._scheduler.hosts.reconcile()
        return False
