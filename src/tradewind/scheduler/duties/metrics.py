"""Send the gauges of the scheduler, and a heartbeat."""

from __future__ import annotations

from tradewind.scheduler.core import Scheduler


class SendMetrics:
    """The duty; see `SchedulerMetrics.measure`.

    Args:
        interval: between two measurements of pools and executors, microseconds.
        tasks_interval: between two measurements of the task instances of each task, microseconds.
    """

    name = "metrics"

    def __init__(self, scheduler: Scheduler, interval: int, tasks_interval: int) -> None:
        self._scheduler = scheduler
        self._tasks_interval = tasks_interval
        self._tasks_due = 0
        self.interval = interval

    def run_once(self) -> bool:
        metrics = self._scheduler.metrics
        if metrics is not None and not self._scheduler.paused:
            now = self._scheduler.clock.wall()
            tasks = now >= self._tasks_due
            if tasks:
                self._tasks_due = now + self._tasks_interval
            metrics.measure(self._scheduler.state, tasks=tasks)
        return False
