"""Safety net: ask the worker hosts whether they still have the attempts that run according to the scheduler."""

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
