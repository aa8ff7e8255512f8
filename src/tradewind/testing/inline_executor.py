"""An executor without processes: it executes one attempt in this process at each call of `step`.

It uses the protocol of a worker host: it requests the start, waits until the start is accepted, and then sends the report. So the
scheduler receives the same messages as in production, one attempt at a time, and no message can get lost.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from tradewind.executors.single import SingleWorker
from tradewind.kernel.events import AttemptVanished
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.inbox import FromWorker, RunEvent
from tradewind.testing.inline_triggers import wait_inline
from tradewind.wire.messages import Accepted, AttemptKey, LastLine, Report, Start, ToRunner, TriggerOrder, Workload

HOST = "this process"
NAME = "InlineExecutor"
"""Recorded as the executor of each attempt."""

Perform = Callable[[Workload], Report]
"""Executes one attempt and returns its report."""


class InlineExecutor(SingleWorker):
    """Attempts wait here in the order of their dispatch until `step` executes the next one."""

    def __init__(self, perform: Perform) -> None:
        self._perform = perform
        self._waiting: OrderedDict[AttemptKey, Workload] = OrderedDict()
        self._started: AttemptKey | None = None
        self._answer: ToRunner | None = None
        self._gone: list[RunEvent] = []
        self._triggers: OrderedDict[AttemptKey, TriggerOrder] = OrderedDict()

    # --- calls of the scheduler -------------------------------------------------------------------------------------

    def submit(self, workloads: Sequence[Workload]) -> None:
        for workload in workloads:
            if workload.key != self._started:
                self._waiting.setdefault(workload.key, workload)

    def cancel(self, attempt: AttemptKey, reason: str, grace: int, worker: str | None = None) -> None:
        self._waiting.pop(attempt, None)
        self._vanished(attempt, reason)

    def reconcile(self, worker: str, attempts: Mapping[AttemptKey, str], *, complete: bool = False) -> None:
        for attempt in attempts:
            if attempt not in self._waiting and attempt != self._started:
                self._vanished(attempt, "")

    def answer(self, host: str, answer: ToRunner) -> None:
        self._answer = answer

    def end_log(self, line: LastLine, worker: str | None = None) -> None:
        """Does nothing: there are no log files."""

    def run_triggers(self, triggers: Sequence[TriggerOrder]) -> None:
        for order in triggers:
            if order.watches:
                continue
            self._triggers.setdefault(order.key, order)

    def trigger_worker(self, key: AttemptKey) -> str | None:
        """None: asset watchers do not run here."""
        return None

    def take_watcher_event(self, key: AttemptKey, token: str) -> None:
        """Does nothing: asset watchers do not run here."""

    def drop_triggers(self, keys: Sequence[AttemptKey], worker: str | None = None) -> None:
        for key in keys:
            self._triggers.pop(key, None)

    def _vanished(self, attempt: AttemptKey, reason: str) -> None:
        run, slot, fence = attempt
        self._gone.append(RunEvent(run, AttemptVanished(slot, fence, 0, reason)))

    # --- calls of the driver ----------------------------------------------------------------------------------------

    def step(self, scheduler: Scheduler) -> bool:
        """Execute the attempt that has waited longest, and send its report to the scheduler. False: no attempt waits."""
        gone, self._gone = self._gone, []
        for event in gone:
            scheduler.push(event)
        if not self._waiting and self._triggers:
            key, order = next(iter(self._triggers.items()))
            scheduler.push(wait_inline(scheduler, order))
            self._triggers.pop(key, None)
            return True
        if not self._waiting:
            return bool(gone)
        key, workload = self._waiting.popitem(last=False)
        self._started = key
        try:
            nonce = f"{HOST}, attempt {key}"
            if self._send(scheduler, FromWorker(key, HOST, Start(1, nonce, os.getpid(), HOST))):
                report = self._perform(workload)
                self._send(scheduler, FromWorker(key, HOST, report))
        finally:
            self._started = None
        return True

    def _send(self, scheduler: Scheduler, item: FromWorker) -> bool:
        """Send a message to the scheduler. True if the scheduler accepts it."""
        self._answer = None
        scheduler.push(item)
        scheduler.process()
        answer: ToRunner | None = self._answer
        return answer is not None and isinstance(answer.body, Accepted)
