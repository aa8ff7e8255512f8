"""The triggerer: one process, one event loop, many triggers.

Forked from the base image (or started anew) when the first trigger comes, ended when none was wanted for a while. It speaks to the
worker host alone, over two sockets: orders and ends on one, questions of author's code on the other. It holds no credentials.

A trigger that blocks the loop holds all others up. A watch on a thread of its own sees that: it tells what the loop is doing, and
after `BLOCKED_MAX` the trigger that does it fails and the process ends; the host starts another one with the others.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback

import msgspec

from tradewind.authoring.trigger_run import failed, make_trigger, wait_for_end
from tradewind.model.errors import Unreachable
from tradewind.model.waits import TriggerEnd
from tradewind.processes import HAVE_LINUX
from tradewind.runner.orders import TriggerAsks, TriggerSaid
from tradewind.wire import runtime
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import (
    AttemptKey,
    DropTriggers,
    RunnerAnswer,
    RunTriggers,
    TriggerFired,
    TriggerOrder,
    decode_answer,
    decode_from_scheduler,
    encode,
)

if HAVE_LINUX:
    from tradewind.processes import linux

READ_SIZE = 64 * 1024
ASK_TIMEOUT_SECONDS = 60.0
BLOCKED_SHOWN = 5.0
"""Seconds without a turn of the loop after which the triggers' logs say who holds it up."""
BLOCKED_MAX = 60.0
"""Seconds after which that trigger fails."""
FIRST_OP = 1_000_000
"""Questions of triggers are numbered from here: an attempt has asked under lower numbers."""

_of: contextvars.ContextVar[AttemptKey | None] = contextvars.ContextVar("trigger", default=None)
"""Whose trigger runs here."""


class Line:
    """The way of ends and messages to the host; whole frames, from any thread."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lock = threading.Lock()

    def send(self, message: object) -> None:
        data = frame(encode(message))
        with self._lock:
            view = memoryview(data)
            while view:
                try:
                    view = view[self._link.send(view) :]
                except BlockingIOError:  # the event loop has made it non-blocking
                    select.select([], [self._link], [], 1.0)


class Questions:
    """What author's code asks while it waits: one question at a time, answered while the loop goes on, or stands meanwhile."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._reader = FrameReader()
        self._op = FIRST_OP

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        key = _of.get()
        if key is None:
            raise runtime.NoRuntime("variables and connections can be read in a trigger's own code only")
        with self._lock:
            self._op += 1
            self._link.sendall(frame(encode(TriggerAsks(key, msgspec.structs.replace(question, op=self._op)))))
            return self._wait(self._op)

    def _wait(self, op: int) -> RunnerAnswer:
        deadline = time.monotonic() + ASK_TIMEOUT_SECONDS
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._link], [], [], left)[0]:
                raise Unreachable(f"the scheduler did not answer a trigger within {ASK_TIMEOUT_SECONDS:.0f} s; is it running?")
            data = self._link.recv(READ_SIZE)
            if not data:
                raise Unreachable("the worker host is gone")
            for document in self._reader.feed(data):
                answer: RunnerAnswer = decode_answer(document)
                if answer.op == op:
                    return answer

    def read_spill(self, name: str) -> bytes:
        raise runtime.NoRuntime("a trigger cannot read XComs")


class _Log(logging.Handler):
    """Python's logging into the logs of the tasks whose triggers speak."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        key = _of.get()
        if key is None:
            return
        try:
            text = record.getMessage()
            if record.exc_info:
                text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
            self._line.send(TriggerSaid(key, record.levelname.lower(), text, record.name))
        except Exception:
            self.handleError(record)


class _Printed:
    """What triggers print, line by line, into the same logs."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def write(self, text: str) -> int:
        key = _of.get()
        if key is not None and text.strip():
            self._line.send(TriggerSaid(key, "info", text.rstrip("\n"), ""))
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


class Triggerer:
    """See the module."""

    def __init__(self, link: socket.socket, questions: socket.socket) -> None:
        self._link = link
        self._line = Line(link)
        self._questions = Questions(questions)
        self._running: dict[AttemptKey, asyncio.Task[None]] = {}
        self._turn = time.monotonic()
        self._told_of: AttemptKey | None = None

    def serve(self) -> None:
        """Until the host closes the line."""
        runtime.install(self._questions)
        root = logging.getLogger()
        root.handlers[:] = [_Log(self._line)]
        root.setLevel(logging.INFO)
        sys.stdout = sys.stderr = _Printed(self._line)
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        self._link.setblocking(False)
        watch = threading.Thread(target=self._watch, args=(loop,), name="watch", daemon=True)
        watch.start()
        pulse = asyncio.create_task(self._pulse())
        reader = FrameReader()
        while data := await loop.sock_recv(self._link, READ_SIZE):
            for document in reader.feed(data):
                self._take(decode_from_scheduler(document))
        pulse.cancel()
        for task in self._running.values():
            task.cancel()
        await asyncio.wait([pulse, *self._running.values()], timeout=2)

    def _take(self, order: object) -> None:
        if isinstance(order, RunTriggers):
            for one in order.triggers:
                if one.key not in self._running:
                    self._running[one.key] = asyncio.create_task(self._run(one))
        elif isinstance(order, DropTriggers):
            for key in order.keys:
                task = self._running.pop(key, None)
                if task is not None:
                    task.cancel()

    async def _run(self, order: TriggerOrder) -> None:
        """One trigger, from its making to its end. Nothing it throws reaches the others."""
        _of.set(order.key)
        if order.bundle and order.bundle not in sys.path:
            sys.path.append(order.bundle)
        try:
            trigger = await asyncio.to_thread(make_trigger, order.wait)
            end = await wait_for_end(trigger)
        except Exception as error:
            end = failed(error)
        if self._running.pop(order.key, None) is not None:
            self._line.send(TriggerFired(order.key, end))

    # --- the watch ------------------------------------------------------------------------------------------------------

    async def _pulse(self) -> None:
        while True:
            self._turn = time.monotonic()
            await asyncio.sleep(0.5)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """On its own thread: does the loop still turn? If not, whose code holds it up?"""
        main = threading.main_thread().ident
        while True:
            time.sleep(0.5)
            blocked = time.monotonic() - self._turn
            if blocked < BLOCKED_SHOWN:
                self._told_of = None
                continue
            culprit = self._culprit(loop)
            if culprit is None:
                continue
            stack = "".join(traceback.format_stack(sys._current_frames().get(main or 0), limit=12)).rstrip()
            if self._told_of != culprit:
                self._told_of = culprit
                text = f"This trigger holds up all others: no await for {blocked:.0f} s. Use asyncio.to_thread."
                self._line.send(TriggerSaid(culprit, "warning", f"{text}\n{stack}", "triggerer"))
            if blocked > BLOCKED_MAX:
                sentence = f"the trigger blocked the event loop of all triggers for {blocked:.0f} s, and was stopped:\n{stack}"
                self._line.send(TriggerFired(culprit, TriggerEnd(error=sentence)))
                os._exit(1)

    def _culprit(self, loop: asyncio.AbstractEventLoop) -> AttemptKey | None:
        current = asyncio.current_task(loop)
        return next((key for key, task in list(self._running.items()) if task is current), None)


def become_triggerer(link: int, questions: int) -> None:
    """In a fork of the base image, or in an interpreter of its own: serve until the host is gone."""
    if HAVE_LINUX:
        linux.set_name("tw-triggerer")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Triggerer(socket.socket(fileno=link), socket.socket(fileno=questions)).serve()
    os._exit(0)


if __name__ == "__main__":
    if HAVE_LINUX:
        linux.die_with_parent(int(sys.argv[3]))
    become_triggerer(int(sys.argv[1]), int(sys.argv[2]))
