"""Attempts on this machine: everything goes to the one worker host that has said hello."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tradewind.observe.failpoints import drop
from tradewind.wire.messages import (
    AttemptKey,
    Cancel,
    DropTriggers,
    EndLog,
    FromScheduler,
    LastLine,
    Reconcile,
    RunTriggers,
    Submit,
    ToRunner,
    TriggerOrder,
    Workload,
)

Port = Callable[[FromScheduler], None]
"""Sends one message to the worker host."""

SUBMIT_AT_MOST = 100
"""Workloads in one message."""


class LocalExecutor:
    """Processes on this machine, `parallelism` at a time (0: as many as become ready)."""

    name = "LocalExecutor"

    def __init__(self, parallelism: int) -> None:
        self.parallelism = parallelism
        self._port: Port | None = None

    def attach(self, port: Port | None) -> None:
        """The worker host is there, or has gone. What was not delivered is asked for again when it says hello."""
        self._port = port

    @property
    def ready(self) -> bool:
        return self._port is not None

    def submit(self, workloads: Sequence[Workload]) -> None:
        workloads = [workload for workload in workloads if not drop("submit", workload.key)]
        for start in range(0, len(workloads), SUBMIT_AT_MOST):
            self._send(Submit(tuple(workloads[start : start + SUBMIT_AT_MOST])))

    def cancel(self, attempt: AttemptKey, reason: str, grace: int) -> None:
        self._send(Cancel(attempt, reason, grace))

    def reconcile(self, attempts: Mapping[AttemptKey, str]) -> None:
        if attempts:
            self._send(Reconcile(tuple(attempts), tuple(attempts.values())))

    def end_log(self, line: LastLine) -> None:
        self._send(EndLog(line))

    def run_triggers(self, triggers: Sequence[TriggerOrder]) -> None:
        if triggers:
            self._send(RunTriggers(tuple(triggers)))

    def drop_triggers(self, keys: Sequence[AttemptKey]) -> None:
        if keys:
            self._send(DropTriggers(tuple(keys)))

    def answer(self, answer: ToRunner) -> None:
        if not drop("accept", (answer.attempt, answer.body.op)):
            self._send(answer)

    def _send(self, message: FromScheduler) -> None:
        if self._port is not None:
            self._port(message)
