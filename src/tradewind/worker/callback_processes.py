"""Callbacks that the scheduler orders: each runs in a process of its own, forked from the same templates as the tasks.

A callback runs like an attempt (`attempt.Attempt`): forked from the template of its DAG file, with captured output, forwarded
requests and a time limit. It takes no slot and has no row; the scheduler's outbox has an item for it. So an order may come again: a
callback that is running is not started twice, and one that has succeeded is answered from memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from tradewind.model.states import Outcome
from tradewind.platform.exit_codes import signal_name
from tradewind.wire.messages import Accepted, CallbackDone, CallbackOrder, CalledBack, FromRunner, Report, RunnerRequest, Start
from tradewind.worker.attempt import Attempt
from tradewind.worker.host_services import HostServices

REMEMBERED = 1000
"""Number of callbacks whose result is kept: the scheduler may not have received the result."""


class CallbackProcess(Attempt):
    """One running callback."""

    def __init__(self, runs: CallbackProcesses, order: CallbackOrder) -> None:
        super().__init__(runs, order.workload)
        self.order = order


class CallbackProcesses:
    """See the module. Owns its attempts as the worker host owns the attempts of tasks.

    Args:
        launch: lets a template or the base image fork a process for an attempt.
    """

    def __init__(self, host: HostServices, launch: Callable[[Attempt], None]) -> None:
        self.host = host
        self.config = host.config
        self.clock = host.clock
        self.loop = host.loop
        self._launch = launch
        self._runs: dict[int, CallbackProcess] = {}
        """Number in the outbox → the running callback."""
        self._by_pid: dict[int, CallbackProcess] = {}
        self._done: dict[int, CallbackDone] = {}
        """Number in the outbox → the result of a callback that succeeded."""
        self.closed = False

    def take(self, order: CallbackOrder) -> None:
        """Start the callback, unless it is running or has just succeeded."""
        known = self._done.get(order.callback_id)
        if known is not None:
            self.host.send(known)
        elif order.callback_id not in self._runs and not self.closed:
            # a separate key: answers must not reach the task's next attempt, nor come from an earlier try
            work = msgspec.structs.replace(order.workload, fence=-(order.callback_id * 1024 + order.tries % 1024) - 1)
            run = self._make(msgspec.structs.replace(order, workload=work))
            self._runs[order.callback_id] = run
            self._launch(run)

    def _make(self, order: CallbackOrder) -> CallbackProcess:
        return CallbackProcess(self, order)

    def find(self, key: tuple[int, int, int]) -> Attempt | None:
        """The callback that sends requests under this key."""
        return next((run for run in self._runs.values() if run.key == key), None) if key[2] < 0 else None

    def exited(self, pid: int, status: int) -> None:
        """A process ended that belonged to no attempt: it may be that of a callback."""
        run = self._by_pid.pop(pid, None)
        if run is None:
            return
        run.read_remaining_output()
        self.verdict(run, Report(0, Outcome.FAILED, reason=_why(run, status)))
        self.end(run, "")

    def lost(self, pid: int, why: str) -> None:
        """A process ended and its exit code is not known: it may be that of a callback."""
        run = self._by_pid.pop(pid, None)
        if run is not None:
            run.read_remaining_output()
            self.verdict(run, Report(0, Outcome.LOST, reason=why))
            self.end(run, why)

    def close(self) -> None:
        """The host stops: callbacks that have not ended are called again by the next host."""
        self.closed = True
        for run in self._runs.values():
            run.kill()

    # --- attempt.AttemptOwner -----------------------------------------------------------------------------------------------

    def forked(self, attempt: Attempt) -> None:
        assert isinstance(attempt, CallbackProcess)
        self._by_pid[attempt.pid] = attempt
        if attempt.killing is not None or self.closed:
            attempt.kill()

    def ask_start(self, attempt: Attempt, start: Start) -> None:
        """Let the callback start: it needs no permission of the scheduler."""
        attempt.answer(Accepted(start.op))

    def forward(self, attempt: Attempt, request: RunnerRequest) -> None:
        attempt.asked[request.op] = request
        self.host.send(FromRunner(attempt.key, request))

    def called_back(self, attempt: Attempt, said: CalledBack) -> None:
        """Ignore the message: a callback process calls no callbacks of its own."""

    def verdict(self, attempt: Attempt, report: Report) -> None:
        """Record the result. Only the first result counts."""
        assert isinstance(attempt, CallbackProcess)
        if attempt.verdict is not None:
            return
        report = attempt.without_secrets(report)
        attempt.verdict = report
        if not self.closed:
            order = attempt.order
            done = CallbackDone(
                order.callback_id, order.tries, report.outcome is Outcome.SUCCESS, report.reason or "", order.due
            )
            if done.ok:
                self._done[order.callback_id] = done
            while len(self._done) > REMEMBERED:
                del self._done[next(iter(self._done))]
            self.host.send(done)
        if attempt.killing is None:
            attempt.begin_overtime()

    def end(self, attempt: Attempt, why: str) -> None:
        assert isinstance(attempt, CallbackProcess)
        if attempt.ended:
            return
        attempt.close()
        self.host.final_lines.closed(attempt.log)
        self._runs.pop(attempt.order.callback_id, None)


def _why(run: CallbackProcess, status: int) -> str:
    if run.killing is not None:
        return run.kill_reason
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"its process ended with exit code {code} without a result"
    return f"its process was killed by {signal_name(-code)}"
