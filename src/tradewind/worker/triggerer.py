"""The triggerer: one process, one event loop, many triggers.

Forked from the base image (or started anew) when the first trigger comes, ended when none was wanted for a while. It speaks to the
worker host alone, over two sockets: orders and ends on one, questions of author's code on the other. It holds no credentials.

A trigger that blocks the loop holds all others up. A watch on a thread of its own sees that: it tells what the loop is doing, and
after `blocked_max` the trigger that does it fails and the process ends; the host starts another one with the others. Whose code
runs stands in a page that the host reads, too: where the watch itself cannot run (C code that keeps the interpreter), or where the
process died, the host knows who did it.
"""

from __future__ import annotations

import asyncio
import contextvars
import io
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import uuid4

import msgspec

from tradewind.execution.run_trigger import failed, wait_for_end, watch
from tradewind.execution.shared_streams import SharedStreams
from tradewind.model.errors import Unreachable
from tradewind.model.waits import TriggerEnd
from tradewind.observe.failpoints import fp
from tradewind.platform import HAVE_LINUX
from tradewind.sdk.trigger import BaseTrigger
from tradewind.wire import runtime
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import (
    AttemptKey,
    DropTriggers,
    RunnerAnswer,
    RunTriggers,
    TriggerFired,
    TriggerOrder,
    WatcherEvent,
    WatcherEventTaken,
    decode_answer,
    decode_from_scheduler,
    encode,
)
from tradewind.worker.orders import TriggerAsks, TriggererLimits, TriggerSaid, decode_triggerer_limits
from tradewind.worker.trigger_heartbeat import Page
from tradewind.worker.trigger_modules import TriggerModules

if HAVE_LINUX:
    from tradewind.platform import linux

READ_SIZE = 64 * 1024
ASK_TIMEOUT_SECONDS = 60.0
LINE_MAX = 64 * 1024
"""Characters of one printed line; a longer one is cut into several."""
THREADS = 64
"""For `asyncio.to_thread`: blocking calls of all triggers together."""
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

    def __init__(self, say: Callable[[AttemptKey, str, str, str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        key = _of.get()
        if key is None:
            return
        try:
            text = record.getMessage()
            if record.exc_info:
                text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
            self._say(key, record.levelname.lower(), text, record.name)
        except Exception:
            self.handleError(record)


class _Printed(io.TextIOBase):
    """What triggers print, line by line, into the same logs."""

    def __init__(self, say: Callable[[AttemptKey, str, str, str], None]) -> None:
        super().__init__()
        self._say = say
        self._parts: dict[AttemptKey, str] = {}

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        key = _of.get()
        if key is not None:
            *lines, part = (self._parts.pop(key, "") + text).split("\n")
            while len(part) > LINE_MAX:
                lines.append(part[:LINE_MAX])
                part = part[LINE_MAX:]
            if part:
                self._parts[key] = part
            for line in lines:
                if line.strip():
                    self._say(key, "info", line, "")
        return len(text)

    def finish(self, key: AttemptKey) -> None:
        """A trigger ended: its last line need not have an end."""
        part = self._parts.pop(key, "")
        if part.strip():
            self._say(key, "info", part, "")


class _Steps(Coroutine[Any, Any, Any]):
    """A coroutine of a trigger; each of its steps is on record, and cannot end the process with `sys.exit()`."""

    def __init__(self, inner: Coroutine[Any, Any, Any], key: AttemptKey, triggerer: Triggerer) -> None:
        self._inner = inner
        self._key = key
        self._triggerer = triggerer

    def send(self, value: Any) -> Any:
        return self._step(self._inner.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._inner.throw, *error)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()

    def _step(self, step: Callable[..., Any], *arguments: Any) -> Any:
        self._triggerer.begins(self._key)
        try:
            return step(*arguments)
        except (SystemExit, KeyboardInterrupt) as error:
            raise RuntimeError(f"a trigger's task raised {type(error).__name__}({error})") from error
        finally:
            self._triggerer.rests()


class Triggerer:
    """See the module."""

    def __init__(self, link: socket.socket, questions: socket.socket, page: int, limits: TriggererLimits) -> None:
        self._link = link
        self._line = Line(link)
        self._questions = Questions(questions)
        self._page = Page(page)
        self._limits = limits
        self._running: dict[AttemptKey, asyncio.Task[None]] = {}
        self._made: dict[AttemptKey, BaseTrigger] = {}
        """Of the running ones."""
        self._untaken: dict[str, asyncio.Event] = {}
        """Token of an asset watcher's event that the scheduler has not taken → set when it has."""
        self._streams = SharedStreams()
        self._leaving: set[asyncio.Task[None]] = set()
        self._modules = TriggerModules()
        self._maker = ThreadPoolExecutor(1, "maker")
        self._making: tuple[AttemptKey, float] | None = None
        """Whose trigger is being made, since when."""
        self._stepping: AttemptKey | None = None
        self._turn = time.monotonic()
        self._told_of: AttemptKey | None = None
        self._said: dict[AttemptKey, int] = {}
        """Bytes of log so far."""
        self._printed = _Printed(self.say)

    def serve(self) -> None:
        """Until the host closes the line."""
        runtime.install(self._questions)
        root = logging.getLogger()
        root.handlers[:] = [_Log(self.say)]
        root.setLevel(logging.INFO)
        sys.stdout = sys.stderr = self._printed
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(THREADS, "trigger"))
        loop.set_task_factory(self._task)
        self._link.setblocking(False)
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        pulse = asyncio.create_task(self._pulse())
        reader = FrameReader()
        while data := await loop.sock_recv(self._link, READ_SIZE):
            for document in reader.feed(data):
                self._take(decode_from_scheduler(document))
        pulse.cancel()
        for task in self._running.values():
            task.cancel()
        await asyncio.wait([pulse, *self._running.values()], timeout=2)
        os._exit(0)  # threads of triggers, whatever they do, are not waited for

    def _task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        """Every task of the loop: those of a trigger, and of what it started, are on record."""
        context = more.get("context")
        key = _of.get() if context is None else context.get(_of)
        found = coroutine if key is None or not asyncio.iscoroutine(coroutine) else _Steps(coroutine, key, self)
        return asyncio.Task(found, loop=loop, **more)

    def begins(self, key: AttemptKey) -> None:
        self._stepping = key
        self._page.begins(key)

    def rests(self) -> None:
        self._stepping = None
        self._page.rests()

    # --- orders -----------------------------------------------------------------------------------------------------------

    def _take(self, order: object) -> None:
        if isinstance(order, RunTriggers):
            for one in order.triggers:
                if one.key not in self._running:
                    context = contextvars.copy_context()
                    context.run(_of.set, one.key)
                    self._running[one.key] = asyncio.create_task(self._run(one), context=context)
        elif isinstance(order, WatcherEventTaken):
            taken = self._untaken.pop(order.token, None)
            if taken is not None:
                taken.set()
        elif isinstance(order, DropTriggers):
            for key in order.keys:
                self._said.pop(key, None)
                task = self._running.pop(key, None)
                if task is not None:
                    context = contextvars.copy_context()
                    context.run(_of.set, key)
                    self._aside(self._see_off(key, task, self._made.pop(key, None)), context)

    async def _see_off(self, key: AttemptKey, task: asyncio.Task[None], trigger: BaseTrigger | None) -> None:
        """Cancel a trigger whose task no longer waits. A trigger that ignores the cancellation is cancelled again."""
        if trigger is not None and hasattr(trigger, "on_kill"):
            try:
                await asyncio.wait_for(trigger.on_kill(), self._limits.end_within)
            except Exception:
                trigger.log.exception("The trigger's on_kill failed.")
        begun = time.monotonic()
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=self._limits.end_within)
            if not task.done():
                lasted = time.monotonic() - begun
                text = f"a trigger goes on {lasted:.0f} s after nobody waits for it: it catches CancelledError"
                self._line.send(TriggerSaid(key, "warning", text, "triggerer"))

    def _aside(self, coroutine: Coroutine[Any, Any, None], context: contextvars.Context) -> None:
        task = asyncio.create_task(coroutine, context=context)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _run(self, order: TriggerOrder) -> None:
        """One trigger, from its making to its end. Nothing it throws reaches the others."""
        key, me = order.key, asyncio.current_task()
        try:
            context = contextvars.copy_context()
            loop = asyncio.get_running_loop()
            trigger = await loop.run_in_executor(self._maker, context.run, self._make, order)
        except Exception as error:
            self._fired(key, me, failed(error))
            return
        limits = self._limits
        self._made[key] = trigger
        try:
            bounds: dict[str, Any] = {"event_max": limits.event_max, "cleanup_seconds": limits.end_within}
            if order.watches:
                events = partial(self._streams.events, trigger, order.wait)
                await watch(trigger, partial(self._emit, key), lambda end: self._fired(key, me, end), events=events, **bounds)
            else:
                await wait_for_end(trigger, lambda end: self._fired(key, me, end), **bounds)
        finally:
            self._printed.finish(key)

    async def _emit(self, key: AttemptKey, payload: bytes) -> None:
        """Report an event of an asset watcher, and wait until it is committed: so at most one is on the way."""
        token = uuid4().hex
        taken = self._untaken[token] = asyncio.Event()
        fp("triggerer.before_watcher_event")
        self._line.send(WatcherEvent(key, token, payload))
        try:
            await taken.wait()
        finally:
            self._untaken.pop(token, None)

    def _make(self, order: TriggerOrder) -> BaseTrigger:
        """On the maker's thread: authors' modules may be slow to import."""
        if order.key not in self._running:
            raise RuntimeError("nobody waits for it any more")
        self._making = (order.key, time.monotonic())
        try:
            return self._modules.make(order)
        except (SystemExit, KeyboardInterrupt) as error:
            raise RuntimeError(f"{order.wait.classpath} raised {type(error).__name__}({error}) while it was made") from error
        finally:
            self._making = None

    def _fired(self, key: AttemptKey, task: asyncio.Task[Any] | None, end: TriggerEnd) -> None:
        if self._running.get(key) is task and task is not None:
            del self._running[key]
            self._made.pop(key, None)
            self._leaving.add(task)  # it cleans up
            task.add_done_callback(self._leaving.discard)
            self._printed.finish(key)
            fp("triggerer.before_fired")
            self._line.send(TriggerFired(key, end))

    def say(self, key: AttemptKey, level: str, text: str, logger: str) -> None:
        """Into the log of the task; not without end."""
        before = self._said.get(key, 0)
        if before > self._limits.log_max:
            return
        text = text[:LINE_MAX]
        after = self._said[key] = before + len(text)
        self._line.send(TriggerSaid(key, level, text, logger))
        if after > self._limits.log_max:
            note = f"The trigger has written {after} characters; the rest of what it writes is left out."
            self._line.send(TriggerSaid(key, "warning", note, "triggerer"))

    # --- the watch ------------------------------------------------------------------------------------------------------

    async def _pulse(self) -> None:
        while True:
            self._turn = time.monotonic()
            self._page.turned(self._turn)
            await asyncio.sleep(min(0.5, self._limits.blocked_shown / 4))

    def _watch(self) -> None:
        """On its own thread: does the loop still turn, does the maker get on? If not, whose code holds it up?

        Time counts in this thread's own rounds: a process that was stopped as a whole has not been blocked by anybody.
        """
        main = threading.main_thread().ident or 0
        step = min(0.5, self._limits.blocked_shown / 4)
        still: tuple[AttemptKey | None, float] | None = None
        rounds = 0
        while True:
            time.sleep(step)
            making, stepping, turn = self._making, self._stepping, self._turn
            blocks = time.monotonic() - turn > 2 * step
            now: tuple[AttemptKey | None, float] | None = (stepping, turn) if blocks else making
            if now is None or now != still:
                still, rounds = now, 0
                self._told_of = None if now is None else self._told_of
                continue
            rounds += 1
            if blocks:
                stack = "".join(traceback.format_stack(sys._current_frames().get(main), limit=12)).rstrip()
                self._blocks(now[0], rounds * step, stack)
            else:
                self._is_slow_to_make(now[0], rounds * step)

    def _blocks(self, culprit: AttemptKey | None, blocked: float, stack: str) -> None:
        if blocked > self._limits.blocked_max:
            sentence = f"the trigger blocked the event loop of all triggers for {blocked:.0f} s, and was stopped:\n{stack}"
            self._end_process(culprit, sentence)
        elif blocked >= self._limits.blocked_shown:
            text = f"This trigger holds up all others: no await for {blocked:.0f} s. Use asyncio.to_thread."
            self._warn(culprit, f"{text}\n{stack}")

    def _is_slow_to_make(self, culprit: AttemptKey | None, lasted: float) -> None:
        if lasted > self._limits.blocked_max:
            self._end_process(
                culprit, f"the trigger could not be made within {lasted:.0f} s: its module's import, or its __init__"
            )
        elif lasted >= self._limits.blocked_shown:
            self._warn(culprit, f"This trigger holds up all that are to begin: making it has taken {lasted:.0f} s so far.")

    def _warn(self, culprit: AttemptKey | None, text: str) -> None:
        if culprit is not None and self._told_of != culprit:
            self._told_of = culprit
            self._line.send(TriggerSaid(culprit, "warning", text, "triggerer"))

    def _end_process(self, culprit: AttemptKey | None, sentence: str) -> None:
        """The host starts another one, with the other triggers."""
        if culprit is not None:
            self._line.send(TriggerFired(culprit, TriggerEnd(error=sentence)))
        os._exit(1)


def become_triggerer(link: int, questions: int, page: int, limits: TriggererLimits) -> None:
    """In a fork of the base image, or in an interpreter of its own: serve until the host is gone."""
    if HAVE_LINUX:
        linux.set_name("tw-triggerer")
        linux.set_title("tradewind triggerer")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Triggerer(socket.socket(fileno=link), socket.socket(fileno=questions), page, limits).serve()
    os._exit(0)


if __name__ == "__main__":
    if HAVE_LINUX:
        linux.die_with_parent(int(sys.argv[4]))
    become_triggerer(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), decode_triggerer_limits(sys.argv[5]))
