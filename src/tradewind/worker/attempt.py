"""One attempt on its worker host: its process, its channel, its log and its timers."""

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
from tradewind.model.phrases import english, phrase
from tradewind.model.secret_names import secrets_in
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
"""Bytes that are still read from the log pipe after the process has ended."""

CHANNEL_PATIENCE = SECOND
"""A process whose channel has closed is usually ending. It gets this long before it is stopped."""


START_AGAIN_MS = (0, 100, 400, 1600, 5000, 5000)
"""Pauses after starts that failed because the forking process died or could not fork. After the last one the attempt is refused."""


RESUMED_AT_LEAST = SECOND
"""An attempt that continues after a wait gets at least this long, even if earlier attempts have used up the execution_timeout."""


class AttemptOwner(Protocol):
    """The owner of attempts: the worker host, or `CallbackProcesses`."""

    config: HostConfig
    clock: Clock
    loop: Loop

    def forked(self, attempt: Attempt) -> None:
        """The process of the attempt exists."""

    def ask_start(self, attempt: Attempt, start: Start) -> None:
        """The process asks for permission to start."""

    def forward(self, attempt: Attempt, request: RunnerRequest) -> None:
        """The process sends a request to the scheduler."""

    def called_back(self, attempt: Attempt, said: CalledBack) -> None:
        """The process has called the callbacks of its task."""

    def verdict(self, attempt: Attempt, report: Report) -> None:
        """The attempt has this result."""

    def end(self, attempt: Attempt, why: str) -> None:
        """No process of the attempt is left."""


class Attempt:
    """waiting → forked → started → verdict → ended. The owner decides; this object holds descriptors and timers."""

    def __init__(self, host: AttemptOwner, workload: Workload) -> None:
        self.host = host
        self.workload = workload
        self.key = workload.key
        self.pid = 0
        self.pidfd = -1
        self.started = False
        self.starts_lost = 0
        """How many starts failed before there was a process."""
        self._start: Start | None = None
        self.verdict: Report | None = None
        self.rendered = b""
        """The rendered template fields, as JSON (see `Rendered`)."""
        self.called_back = False
        """The process has called the callbacks of its task, or the scheduler knows that it did not."""
        self.ended = False
        self.killing: str | None = None
        """Why it is being stopped: `timeout`, `mute`, `cancelled`, `stopping`, `overtime`, `refused`."""
        self.kill_reason = ""
        self.asked: dict[int, RunnerRequest] = {}
        """Requests without an answer, by op. They are sent again when the scheduler is back."""
        self.channel: Connection | None = None
        self._channel_problem = ""
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
        """The nonce of its process, which stands in all messages about it; empty: no process was forked."""
        return "" if self._start is None else self._start.nonce

    # --- being started (templates.PendingAttempt) -------------------------------------------------------------------------

    def descriptors(self) -> list[int]:
        """Create the channel and the log pipe, and return the ends for the process."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._log_read, log_write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._log_read, False)
        self._their_ends = [theirs.detach(), log_write]
        loop = self.host.loop
        self.channel = Connection(ours, loop, self._on_document, self._channel_closed)
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
        """Ask for permission to start until there is an answer. The process waits for it."""
        if self._start is None or self.started or self.ended or self.verdict is not None or self.killing is not None:
            return
        self.host.ask_start(self, self._start)
        if not self.started:  # a callback is answered at once; its timer is its time limit
            self._set_timer(self.host.config.start_retry, self._ask_start)

    def could_not_start(self, why: str, *, file_broken: bool) -> None:
        self.handed_over()
        if file_broken:
            self.log.note("error", f"The DAG file {self.workload.file} cannot be imported:\n{why}")
            last = why.strip().splitlines()[-1] if why.strip() else "unknown error"
            there = os.path.exists(os.path.join(self.workload.folder, self.workload.file))
            outcome = Outcome.FAILED if there else Outcome.MISSING  # renamed: the scheduler will learn the new name
            self.host.verdict(
                self, Report(0, outcome, reason=english(phrase("cause_import", file=self.workload.file, problem=last)))
            )
        else:
            self.host.verdict(self, Report(0, Outcome.REFUSED, reason=why))
        self.host.end(self, "it was never started")

    def order_lost(self, why: str) -> int | None:
        """No process was created, or it was killed before it was announced: start again with a new channel.

        As long as nobody has asked for the start, no code of the task can have run. Returns microseconds until the next start;
        None: there is none.
        """
        if self.ended:
            return None
        if self.killing is not None or self.starts_lost >= len(START_AGAIN_MS):
            self.could_not_start(why, file_broken=False)
            return None
        delay = START_AGAIN_MS[self.starts_lost]
        self.starts_lost += 1
        self.handed_over()
        self._close_channel()
        return delay * 1000

    # --- the channel ------------------------------------------------------------------------------------------------

    def _on_document(self, channel: Connection, document: bytes) -> None:
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
            self.log.note("warning", "the task asked for a start itself, but its worker does that")
        else:
            self.host.forward(self, request)

    def answer(self, answer: RunnerAnswer) -> None:
        """Pass the scheduler's answer to the process. Secrets in it are masked in the log from now on."""
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
            self.log.mask(secrets_in(answer.value, answer.secret))
        elif isinstance(answer, Failure | XComs):
            pass
        if self.channel is not None:
            self.channel.send(encode(answer))

    def _is_meant(self, answer: Accepted | Refused) -> bool:
        """Whether this is the answer to the start of this process, and not to a report or to another process of the attempt."""
        if answer.op != START_OP or self._start is None:
            return False
        return answer.nonce in ("", self._start.nonce)

    def without_secrets(self, report: Report) -> Report:
        """The report without the secrets that the task had requested: parts of it are stored and shown."""
        if not self.log.knows_secrets:
            return report
        return msgspec.structs.replace(
            report,
            reason=None if report.reason is None else self.log.masked(report.reason),
            rendered=self.log.masked_json(report.rendered),
        )

    def _channel_closed(self, channel: Connection) -> None:
        """The process can report nothing any more, so what it does from now on would be lost."""
        if channel is not self.channel:
            return
        self.channel, self._channel_problem = None, channel.problem
        if self.verdict is None and not self.ended and self.killing is None:
            self._set_timer(CHANNEL_PATIENCE, self._stop_disconnected)

    def _stop_disconnected(self) -> None:
        if self.verdict is None and not self.ended:
            how = self._channel_problem or "the process closed it, or wrote into it"
            self.stop("mute", f"its connection to the worker host broke: {how}", self.host.config.kill_grace)

    # --- its log ----------------------------------------------------------------------------------------------------

    def _log_ready(self, events: int) -> None:
        self.read_log()

    def read_log(self) -> bool:
        """Read from the log pipe; return whether there was something."""
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
            seconds = f"{timeout / 1e6:g}"
            of_task = phrase("cause_timeout", seconds=seconds)
            reason = english(of_task if self.workload.call is None else phrase("cause_callback_timeout", seconds=seconds))
            before = self.workload.resumption
            left = timeout if before is None else max(RESUMED_AT_LEAST, timeout - before.active)
            self._set_timer(left, lambda: self.stop("timeout", reason, self.host.config.kill_grace))

    def _term(self) -> int:
        """The signal that asks the process to end. A time limit has its own signal, because code may catch AirflowTaskTimeout."""
        return signal.SIGXCPU if self.killing == "timeout" and self.workload.call is None else signal.SIGTERM

    def begin_overtime(self) -> None:
        """The result is known. The process has `overtime` to end by itself."""
        self._set_timer(self.host.config.overtime, lambda: self.stop("overtime", "it went on after its result", 0))

    def stop(self, kind: str, reason: str, grace: int) -> None:
        """Send TERM now, so that `on_kill` runs, and KILL after `grace` microseconds. A second call only shortens the grace."""
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

    def read_remaining_output(self) -> None:
        """The process is gone: read what it sent and printed before."""
        if self.channel is not None:
            self.channel.drain()
        taken = 0
        while taken < DRAIN_AT_MOST and self.read_log():
            taken += READ_SIZE

    def close(self) -> None:
        """Close all descriptors and cancel all timers."""
        self.ended = True
        self._clear_timer()
        self._close_channel()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        self.handed_over()
        self.log.close()

    def _close_channel(self) -> None:
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.close()
        if self._log_read >= 0:
            self.host.loop.unwatch(self._log_read)
            os.close(self._log_read)
            self._log_read = -1
