"""The worker host's side of triggers: which are wanted, what they came to, and the process that runs them.

What is wanted and what has fired live here, so a triggerer that dies costs nothing but time: the next one gets the same orders. An
end is said to the scheduler again and again until it drops the trigger.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tradewind.model.moments import SECOND
from tradewind.model.secret_names import secret_texts
from tradewind.model.waits import TriggerEnd
from tradewind.observe.log import Log
from tradewind.processes import HAVE_LINUX
from tradewind.runner.log_capture import LogCapture
from tradewind.runner.orders import BecomeTriggerer, TriggerAsks, TriggerSaid, decode_from_triggerer, encode_order
from tradewind.runner.templates import TASKS_MARK
from tradewind.service.loop import TimerHandle
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    AttemptKey,
    DropTriggers,
    FromRunner,
    RunnerAnswer,
    RunTriggers,
    TriggerFired,
    TriggerOrder,
    Value,
    encode,
)

if TYPE_CHECKING:
    from tradewind.runner.host import WorkerHost

log = Log("triggers")

IDLE = 60 * SECOND
"""A triggerer without triggers ends after so long."""
RESTART_AFTER_MS = (50, 200, 1000, 5000, 15000)


class TriggerKeeper:
    """See the module. An errand of `Templates.run_beside`."""

    def __init__(self, host: WorkerHost) -> None:
        self._host = host
        self.wanted: dict[AttemptKey, TriggerOrder] = {}
        self.fired: dict[AttemptKey, TriggerEnd] = {}
        """Of wanted ones: what they came to."""
        self.pid = 0
        self._state = "none"
        """none → asked → up → none."""
        self._line: Connection | None = None
        self._questions: Connection | None = None
        self._ours: tuple[socket.socket, socket.socket] | None = None
        self._theirs: list[int] = []
        self._logs: dict[AttemptKey, LogCapture] = {}
        self._asked: set[tuple[AttemptKey, int]] = set()
        self._deaths = 0
        self._idle: TimerHandle | None = None
        self._process: subprocess.Popen[bytes] | None = None

    # --- what the scheduler says ------------------------------------------------------------------------------------

    def run(self, orders: Sequence[TriggerOrder]) -> None:
        """Run these; what is known is not begun again, but what it came to is said again."""
        new = [order for order in orders if order.key not in self.wanted]
        for order in orders:
            if order.key in self.fired:
                self._host.send(TriggerFired(order.key, self.fired[order.key]))
        if not new or self._host.stopping:
            return
        self.wanted.update((order.key, order) for order in new)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._line is not None:
            self._line.send(encode(RunTriggers(tuple(new))))
        elif self._state == "none":
            self._start()

    def drop(self, keys: Sequence[AttemptKey]) -> None:
        """Nobody waits for these any more."""
        gone = [key for key in keys if self.wanted.pop(key, None) is not None]
        for key in gone:
            self.fired.pop(key, None)
            capture = self._logs.pop(key, None)
            if capture is not None:
                capture.close()
        if gone and self._line is not None:
            self._line.send(encode(DropTriggers(tuple(gone))))
        if not self.wanted and self._state != "none" and self._idle is None:
            self._idle = self._host.loop.call_later(IDLE, self._end_idle)

    def resend(self) -> None:
        """A safety net: what was not acknowledged is said again."""
        for key, end in self.fired.items():
            self._host.send(TriggerFired(key, end))

    def answered(self, key: AttemptKey, answer: RunnerAnswer) -> bool:
        """Was this the answer to a question of a trigger?"""
        if (key, answer.op) not in self._asked:
            return False
        self._asked.discard((key, answer.op))
        if isinstance(answer, Value) and answer.secret:
            self._log_of(key).mask(secret_texts(answer.value))
        if self._questions is not None:
            self._questions.send(encode(answer))
        return True

    # --- the process --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._state = "asked"
        if HAVE_LINUX and self._host.config.task_start == "template":
            self._host.templates.run_beside(self, encode_order(BecomeTriggerer()))
            return
        line, questions = self.descriptors()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tradewind.runner.triggerer", str(line), str(questions), str(os.getpid())],
                pass_fds=[line, questions],
                stdin=subprocess.DEVNULL,
                env=dict(os.environ, **{TASKS_MARK: self._host.config.home_mark}),
            )
        except OSError as error:
            self.could_not_start(f"an interpreter could not be started: {error.strerror}", file_broken=False)
            return
        self.handed_over()
        self.forked(self._process.pid)

    def descriptors(self) -> list[int]:
        """(orders, questions): the ends of the triggerer."""
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(2)]
        self._ours = pairs[0][0], pairs[1][0]
        self._theirs = [pair[1].detach() for pair in pairs]
        return self._theirs

    def handed_over(self) -> None:
        for descriptor in self._theirs:
            os.close(descriptor)
        self._theirs = []

    def forked(self, pid: int) -> None:
        assert self._ours is not None
        self.pid, self._state = pid, "up"
        line, questions = self._ours
        self._ours = None
        self._line = Connection(line, self._host.loop, self._heard, lambda _: None)
        self._questions = Connection(questions, self._host.loop, self._asks, lambda _: None)
        waiting = tuple(order for key, order in self.wanted.items() if key not in self.fired)
        if waiting:
            self._line.send(encode(RunTriggers(waiting)))

    def could_not_start(self, why: str, *, file_broken: bool) -> None:
        self.handed_over()
        log.warning("the triggerer could not be started; it is tried again", why=why)
        self._gone()

    def exited(self, pid: int) -> bool:
        """A process ended: was it the triggerer?"""
        if pid != self.pid or not pid:
            return False
        if self._line is not None:
            self._line.drain()
        if self.wanted and not self._host.stopping:
            log.warning("the triggerer ended; another one is started", triggers=len(self.wanted))
        self._gone()
        return True

    def poll(self) -> None:
        """SIGCHLD: did a triggerer end that was not forked from the image?"""
        if self._process is not None and self._process.poll() is not None:
            pid, self._process = self._process.pid, None
            self.exited(pid)

    def own_children(self) -> set[int]:
        return {self._process.pid} if self._process is not None else set()

    def _gone(self) -> None:
        self.pid, self._state = 0, "none"
        for connection in (self._line, self._questions):
            if connection is not None:
                connection.close()
        for ours in self._ours or ():
            ours.close()
        self._line = self._questions = self._ours = None
        self._asked.clear()
        if any(key not in self.fired for key in self.wanted) and not self._host.stopping:
            wait = RESTART_AFTER_MS[min(self._deaths, len(RESTART_AFTER_MS) - 1)]
            self._deaths += 1
            self._state = "asked"
            self._host.loop.call_later(wait * 1000, self._start_again)

    def _start_again(self) -> None:
        if self._state == "asked" and self.pid == 0 and not self._host.stopping:
            self._start()

    def _end_idle(self) -> None:
        self._idle = None
        if not self.wanted:
            self.stop()

    def stop(self) -> None:
        """End the process: it ends when its line is closed; KILL makes sure."""
        if self.pid:
            if self._line is not None:
                self._line.close()
                self._line = None
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # --- what triggers say ----------------------------------------------------------------------------------------------

    def _heard(self, line: Connection, document: bytes) -> None:
        try:
            message = decode_from_triggerer(document)
        except msgspec.MsgspecError as error:
            log.error("a message of the triggerer cannot be read", error=str(error))
            return
        if isinstance(message, TriggerFired) and message.key in self.wanted and message.key not in self.fired:
            self._deaths = 0
            if message.end.error is not None:
                self._log_of(message.key).note("error", f"The trigger failed: {message.end.error}")
            self.fired[message.key] = message.end
            self._host.send(message)
        elif isinstance(message, TriggerSaid) and message.key in self.wanted:
            self._log_of(message.key).note(message.level, message.event, message.logger or None)

    def _asks(self, line: Connection, document: bytes) -> None:
        try:
            message = decode_from_triggerer(document)
        except msgspec.MsgspecError as error:
            log.error("a question of a trigger cannot be read", error=str(error))
            return
        if isinstance(message, TriggerAsks):
            self._asked.add((message.key, message.question.op))
            self._host.send(FromRunner(message.key, message.question))

    def _log_of(self, key: AttemptKey) -> LogCapture:
        capture = self._logs.get(key)
        if capture is None:
            config, order = self._host.config, self.wanted.get(key)
            path = Path(config.log_folder) / (order.log if order is not None and order.log else "triggers.log")
            capture = LogCapture(path, self._host.clock.wall, config.log_max, config.log_line_max)
            if order is not None:
                self._logs[key] = capture
        return capture
