"""One attempt, as its worker host sees it."""

from __future__ import annotations

import os
import selectors
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from tradewind.client.channel import START_OP
from tradewind.model.moments import SECOND
from tradewind.model.secret_names import told_secrets
from tradewind.model.states import Outcome
from tradewind.platform import HAVE_LINUX
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    Accepted,
    CalledBack,
    Failure,
    MaskSecrets,
    Refused,
    Rendered,
    Report,
    RunnerAnswer,
    RunnerRequest,
    Start,
    Value,
    Workload,
    XComs,
    decode_request,
    encode,
)
from tradewind.worker.config import HostConfig
from tradewind.worker.environment_mask import environment_mask
from tradewind.worker.log_capture import READ_SIZE, LogCapture

HOSTNAME = socket.gethostname()

DRAIN_AT_MOST = 4 * 1024 * 1024
"""Bytes still taken from a log pipe after the process has ended; what is left then was written by nobody alive."""

CHANNEL_PATIENCE = SECOND
"""After its channel has closed, a process that is just ending gets this long before it is stopped."""


START_AGAIN_MS = (0, 100, 400, 1600, 5000, 5000)
"""After each start that came to nothing, because the process that was to fork died or could not: how long until the next one. After
the last one the attempt is refused."""


RESUMED_AT_LEAST = SECOND
"""An attempt that goes on after a wait gets this long, though those before it used up the execution_timeout: to end in order."""


class AttemptOwner(Protocol):
    """Who drives attempts: the worker host, and its desk for callbacks."""

    config: HostConfig
    clock: Clock
    loop: Loop

    def forked(self, attempt: Attempt) -> None:
        """Its process exists."""

    def ask_start(self, attempt: Attempt, start: Start) -> None:
        """Its process wants to begin."""

    def forward(self, attempt: Attempt, request: RunnerRequest) -> None:
        """Its process asks the scheduler something."""

    def called_back(self, attempt: Attempt, said: CalledBack) -> None:
        """Its process is through with the callbacks of its task."""

    def verdict(self, attempt: Attempt, report: Report) -> None:
        """What it came to."""

    def end(self, attempt: Attempt, why: str) -> None:
        """No process of it is left."""


class Attempt:
    """waiting → forked → started → verdict → ended. The host drives it; this keeps its descriptors and timers."""

    def __init__(self, host: AttemptOwner, workload: Workload) -> None:
        self.host = host
        self.workload = workload
        self.key = workload.key
        self.pid = 0
        self.pidfd = -1
        self.started = False
        self.starts_lost = 0
        """Starts that came to nothing before there was a process."""
        self._start: Start | None = None
        self.verdict: Report | None = None
        self.rendered = b""
        """What its templated fields came to (see `Rendered`)."""
        self.called_back = False
        """Its process has called the callbacks of its task, or the scheduler knows that it did not come to that."""
        self.ended = False
        self.killing: str | None = None
        """Why it is being stopped: `timeout`, `mute`, `cancelled`, `stopping`, `overtime`, `refused`."""
        self.kill_reason = ""
        self.asked: dict[int, RunnerRequest] = {}
        """Questions without an answer yet, by op: said again to a scheduler that comes back."""
        self.channel: Connection | None = None
        self._line_problem = ""
        """Why the channel was closed from this side."""
        self._their_ends: list[int] = []
        self._log_read = -1
        self._timer: TimerHandle | None = None
        self.log = LogCapture(
            Path(host.config.log_folder) / workload.log,
            host.clock.wall,
            host.config.log_max,
            host.config.log_line_max,
            environment_mask(),
        )

    @property
    def nonce(self) -> str:
        """Names its process in everything that is said of it; empty: none was forked."""
        return "" if self._start is None else self._start.nonce

    # --- being started (templates.PendingAttempt) -------------------------------------------------------------------------

    def descriptors(self) -> list[int]:
        """Make the channel and the log pipe; the ends for the process."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._log_read, log_write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._log_read, False)
        self._their_ends = [theirs.detach(), log_write]
        loop = self.host.loop
        self.channel = Connection(ours, loop, self._heard, self._channel_closed)
        loop.watch(self._log_read, selectors.EVENT_READ, self._log_ready)
        return self._their_ends

    def handed_over(self) -> None:
        for descriptor in self._their_ends:
            os.close(descriptor)
        self._their_ends = []

    def forked(self, pid: int) -> None:
        self.pid = pid
        if HAVE_LINUX:
            try:
                self.pidfd = os.pidfd_open(pid)
            except OSError:
                self.pidfd = -1
        self._start = Start(START_OP, os.urandom(8).hex(), pid, HOSTNAME)
        self.host.forked(self)
        self._ask_start()

    def _ask_start(self) -> None:
        """Ask on behalf of the process, which waits for the answer, until there is one."""
        if self._start is None or self.started or self.ended or self.verdict is not None or self.killing is not None:
            return
        self.host.ask_start(self, self._start)
        if not self.started:  # a callback is answered at once, and its time limit counts
            self._set_timer(self.host.config.start_retry, self._ask_start)

    def could_not_start(self, why: str, *, file_broken: bool) -> None:
        self.handed_over()
        if file_broken:
            self.log.note("error", f"The DAG file {self.workload.file} cannot be imported:\n{why}")
            last = why.strip().splitlines()[-1] if why.strip() else "unknown error"
            there = os.path.exists(os.path.join(self.workload.folder, self.workload.file))
            outcome = Outcome.FAILED if there else Outcome.MISSING  # it was renamed, and the scheduler will know
            self.host.verdict(self, Report(0, outcome, reason=f"{self.workload.file} cannot be imported: {last}"))
        else:
            self.host.verdict(self, Report(0, Outcome.REFUSED, reason=why))
        self.host.end(self, "it was never started")

    def order_lost(self, why: str) -> int | None:
        """No process was made, or it was killed before anybody had heard of it: begin anew, with lines of its own.

        As long as nobody has asked for its start, no code of the task can have run.
        """
        if self.ended:
            return None
        if self.killing is not None or self.starts_lost >= len(START_AGAIN_MS):
            self.could_not_start(why, file_broken=False)
            return None
        delay = START_AGAIN_MS[self.starts_lost]
        self.starts_lost += 1
        self.handed_over()
        self._close_lines()
        return delay * 1000

    # --- the channel ------------------------------------------------------------------------------------------------

    def _heard(self, channel: Connection, document: bytes) -> None:
        try:
            request: RunnerRequest = decode_request(document)
        except msgspec.MsgspecError as error:
            self.log.note("warning", f"a message of the task cannot be read: {error}")
            return
        if isinstance(request, Report):
            self.host.verdict(self, request)
        elif isinstance(request, CalledBack):
            self.host.called_back(self, request)
        elif isinstance(request, Rendered):
            self.rendered = request.fields
        elif isinstance(request, MaskSecrets):
            self.log.mask(request.values)
            channel.send(encode(Value(request.op, True)))
        elif isinstance(request, Start):
            self.log.note("warning", "the task asked for a start of its own; its worker has done that")
        else:
            self.host.forward(self, request)

    def answer(self, answer: RunnerAnswer) -> None:
        """Pass the scheduler's answer on; secrets are masked in the log from here on."""
        if isinstance(answer, Accepted | Refused) and not self._is_meant(answer):
            return
        self.asked.pop(answer.op, None)
        if answer.op == START_OP and self.started:
            return  # the start was asked for again, and both are answered
        if isinstance(answer, Refused):
            self.killing = self.killing or "refused"
        elif isinstance(answer, Accepted) and not self.started:
            self.started = True
            self._clear_timer()
            self._begin_timeout()
        elif isinstance(answer, Value):
            self.log.mask(told_secrets(answer.value, answer.secret))
        elif isinstance(answer, Failure | XComs):
            pass
        if self.channel is not None:
            self.channel.send(encode(answer))

    def _is_meant(self, answer: Accepted | Refused) -> bool:
        """Does it answer the start of this process? Not one that came late, for a verdict or another process of this attempt."""
        if answer.op != START_OP or self._start is None:
            return False
        return answer.nonce in ("", self._start.nonce)

    def without_secrets(self, report: Report) -> Report:
        """What is kept and shown of a verdict must not tell secrets that the task had asked for."""
        if not self.log.knows_secrets:
            return report
        return msgspec.structs.replace(
            report,
            reason=None if report.reason is None else self.log.masked(report.reason),
            rendered=self.log.masked_json(report.rendered),
        )

    def _channel_closed(self, channel: Connection) -> None:
        """Nothing can be heard from it any more: what it does from now on would be in vain."""
        if channel is not self.channel:
            return
        self.channel, self._line_problem = None, channel.problem
        if self.verdict is None and not self.ended and self.killing is None:
            self._set_timer(CHANNEL_PATIENCE, self._is_mute)

    def _is_mute(self) -> None:
        if self.verdict is None and not self.ended:
            how = self._line_problem or "it closed it, or wrote into it"
            self.stop("mute", f"its line to the worker broke: {how}", self.host.config.kill_grace)

    # --- its log ----------------------------------------------------------------------------------------------------

    def _log_ready(self, events: int) -> None:
        self.read_log()

    def read_log(self) -> bool:
        """Take what the pipe has; whether there was something."""
        if self._log_read < 0:
            return False
        try:
            data = os.read(self._log_read, READ_SIZE)
        except BlockingIOError:
            return False
        if not data:
            self.host.loop.unwatch(self._log_read)
            os.close(self._log_read)
            self._log_read = -1
            return False
        self.log.feed(data)
        return True

    # --- its end ----------------------------------------------------------------------------------------------------

    def _begin_timeout(self) -> None:
        timeout = self.workload.execution_timeout
        if timeout:
            limit = "its execution_timeout" if self.workload.call is None else "scheduler.callback_timeout"
            reason = f"it ran longer than {limit} of {timeout / 1e6:g} s"
            before = self.workload.resumption
            left = timeout if before is None else max(RESUMED_AT_LEAST, timeout - before.active)
            self._set_timer(left, lambda: self.stop("timeout", reason, self.host.config.kill_grace))

    def _term(self) -> int:
        """The signal that asks it to end. Its code may catch its own time limit (AirflowTaskTimeout), so that is another one."""
        return signal.SIGXCPU if self.killing == "timeout" and self.workload.call is None else signal.SIGTERM

    def begin_overtime(self) -> None:
        """The verdict is known; the process has this long to end by itself."""
        self._set_timer(self.host.config.overtime, lambda: self.stop("overtime", "it lived on after its result", 0))

    def stop(self, kind: str, reason: str, grace: int) -> None:
        """TERM now (so that `on_kill` runs), KILL after the grace. A second call only shortens the grace."""
        if self.ended:
            return
        if self.killing is None:
            self.killing, self.kill_reason = kind, reason
            self.log.note("warning", f"The task is stopped: {reason}.")
            if grace > 0:
                self.signal(self._term())
        if grace > 0:
            self._set_timer(grace, self.kill)
        else:
            self.kill()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        if not self.pid:
            return
        try:
            if self.pidfd >= 0:
                signal.pidfd_send_signal(self.pidfd, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def _set_timer(self, delay: int, call: Callable[[], None]) -> None:
        self._clear_timer()
        self._timer = self.host.loop.call_later(delay, call)

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def take_last_words(self) -> None:
        """The process is gone: read what it had sent and printed before."""
        if self.channel is not None:
            self.channel.drain()
        taken = 0
        while taken < DRAIN_AT_MOST and self.read_log():
            taken += READ_SIZE

    def close(self) -> None:
        """Release everything."""
        self.ended = True
        self._clear_timer()
        self._close_lines()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        self.handed_over()
        self.log.close()

    def _close_lines(self) -> None:
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.close()
        if self._log_read >= 0:
            self.host.loop.unwatch(self._log_read)
            os.close(self._log_read)
            self._log_read = -1
