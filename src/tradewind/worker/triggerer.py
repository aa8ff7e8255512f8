"""The triggerer: one process, one event loop, many triggers.

The triggerer is forked from the base image (or started in a new interpreter) when the first trigger comes. It ends when there has
been no trigger for a while. It talks only to the worker host, over two sockets: one carries orders and ends of triggers, the other
carries requests of the authors' code. It has no credentials.

A trigger that blocks the event loop delays all others. A watchdog thread notices it and writes a warning with the stack into the
log of the trigger. After `blocked_max` the trigger fails and the process ends; the host starts another one with the other
triggers. The process also writes the key of the trigger whose code runs into a page that the host reads. So the host knows the
trigger even if the process has died, or if the watchdog cannot run because C code does not release the interpreter.
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
"""Characters of one printed line; a longer line is split."""
THREADS = 64
"""Maximum number of threads for `asyncio.to_thread`, for all triggers together."""
FIRST_OP = 1_000_000
"""The numbers of triggers' requests begin here; the requests of attempts have smaller numbers."""

_current_trigger: contextvars.ContextVar[AttemptKey | None] = contextvars.ContextVar("trigger", default=None)
"""The trigger whose code runs in this context."""


class HostConnection:
    """Sends messages to the worker host, as whole frames. Any thread may use it."""

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
    """Sends requests of authors' code and waits for the answers, one at a time. A request in the event loop blocks it."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._reader = FrameReader()
        self._op = FIRST_OP

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        key = _current_trigger.get()
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
    """Passes the records of Python's logging to the log of the task whose trigger wrote them."""

    def __init__(self, say: Callable[[AttemptKey, str, str, str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        key = _current_trigger.get()
        if key is None:
            return
        try:
            text = record.getMessage()
            if record.exc_info:
                text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
            self._say(key, record.levelname.lower(), text, record.name)
        except Exception:
            self.handleError(record)


class _PrintCapture(io.TextIOBase):
    """Passes the printed lines of triggers to the same logs."""

    def __init__(self, say: Callable[[AttemptKey, str, str, str], None]) -> None:
        super().__init__()
        self._say = say
        self._parts: dict[AttemptKey, str] = {}

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        key = _current_trigger.get()
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
        """Log the last line of a trigger that has ended: the line may have no line end."""
        part = self._parts.pop(key, "")
        if part.strip():
            self._say(key, "info", part, "")


class _RecordedCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine of a trigger. Each step records that the trigger's code runs, and `sys.exit()` in it does not end the process."""

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
        self._triggerer.code_started(self._key)
        try:
            return step(*arguments)
        except (SystemExit, KeyboardInterrupt) as error:
            raise RuntimeError(f"a trigger's task raised {type(error).__name__}({error})") from error
        finally:
            self._triggerer.code_ended()


class Triggerer:
    """See the module."""

    def __init__(self, link: socket.socket, questions: socket.socket, page: int, limits: TriggererLimits) -> None:
        self._link = link
        self._host = HostConnection(link)
        self._questions = Questions(questions)
        self._page = Page(page)
        self._limits = limits
        self._running: dict[AttemptKey, asyncio.Task[None]] = {}
        self._made: dict[AttemptKey, BaseTrigger] = {}
        """The running triggers."""
        self._uncommitted_events: dict[str, asyncio.Event] = {}
        """Token of an asset watcher's event that the scheduler has not committed → set when it is committed."""
        self._streams = SharedStreams()
        self._ending_tasks: set[asyncio.Task[None]] = set()
        self._modules = TriggerModules()
        self._maker = ThreadPoolExecutor(1, "maker")
        self._making: tuple[AttemptKey, float] | None = None
        """The trigger that is being created, and since when."""
        self._stepping: AttemptKey | None = None
        self._loop_ran_at = time.monotonic()
        self._last_warned: AttemptKey | None = None
        self._logged: dict[AttemptKey, int] = {}
        """Characters that each trigger has logged so far."""
        self._printed = _PrintCapture(self.say)

    def serve(self) -> None:
        """Run until the host closes the connection."""
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
        threading.Thread(target=self._watchdog, name="watch", daemon=True).start()
        pulse = asyncio.create_task(self._stamp_progress())
        reader = FrameReader()
        while data := await loop.sock_recv(self._link, READ_SIZE):
            for document in reader.feed(data):
                self._take(decode_from_scheduler(document))
        pulse.cancel()
        for task in self._running.values():
            task.cancel()
        await asyncio.wait([pulse, *self._running.values()], timeout=2)
        os._exit(0)  # do not wait for threads of triggers

    def _task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        """Create each task of the loop. Tasks of a trigger, and the tasks that they start, are wrapped in `_RecordedCoroutine`."""
        context = more.get("context")
        key = _current_trigger.get() if context is None else context.get(_current_trigger)
        found = coroutine if key is None or not asyncio.iscoroutine(coroutine) else _RecordedCoroutine(coroutine, key, self)
        return asyncio.Task(found, loop=loop, **more)

    def code_started(self, key: AttemptKey) -> None:
        self._stepping = key
        self._page.code_started(key)

    def code_ended(self) -> None:
        self._stepping = None
        self._page.code_ended()

    # --- orders -----------------------------------------------------------------------------------------------------------

    def _take(self, order: object) -> None:
        if isinstance(order, RunTriggers):
            for one in order.triggers:
                if one.key not in self._running:
                    context = contextvars.copy_context()
                    context.run(_current_trigger.set, one.key)
                    self._running[one.key] = asyncio.create_task(self._run(one), context=context)
        elif isinstance(order, WatcherEventTaken):
            taken = self._uncommitted_events.pop(order.token, None)
            if taken is not None:
                taken.set()
        elif isinstance(order, DropTriggers):
            for key in order.keys:
                self._logged.pop(key, None)
                task = self._running.pop(key, None)
                if task is not None:
                    context = contextvars.copy_context()
                    context.run(_current_trigger.set, key)
                    self._run_in_background(self._cancel_until_done(key, task, self._made.pop(key, None)), context)

    async def _cancel_until_done(self, key: AttemptKey, task: asyncio.Task[None], trigger: BaseTrigger | None) -> None:
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
                self._host.send(TriggerSaid(key, "warning", text, "triggerer"))

    def _run_in_background(self, coroutine: Coroutine[Any, Any, None], context: contextvars.Context) -> None:
        task = asyncio.create_task(coroutine, context=context)
        self._ending_tasks.add(task)
        task.add_done_callback(self._ending_tasks.discard)

    async def _run(self, order: TriggerOrder) -> None:
        """Run one trigger from its creation to its end. Its errors do not reach the other triggers."""
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
        """Report an event of an asset watcher, and wait until it is committed: so at most one event is on its way."""
        token = uuid4().hex
        taken = self._uncommitted_events[token] = asyncio.Event()
        fp("triggerer.before_watcher_event")
        self._host.send(WatcherEvent(key, token, payload))
        try:
            await taken.wait()
        finally:
            self._uncommitted_events.pop(token, None)

    def _make(self, order: TriggerOrder) -> BaseTrigger:
        """Create a trigger. Runs in a thread, because the import of the author's modules may be slow."""
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
            self._ending_tasks.add(task)  # its cleanup still runs
            task.add_done_callback(self._ending_tasks.discard)
            self._printed.finish(key)
            fp("triggerer.before_fired")
            self._host.send(TriggerFired(key, end))

    def say(self, key: AttemptKey, level: str, text: str, logger: str) -> None:
        """Write a text into the log of the trigger's task, up to `log_max`."""
        before = self._logged.get(key, 0)
        if before > self._limits.log_max:
            return
        text = text[:LINE_MAX]
        after = self._logged[key] = before + len(text)
        self._host.send(TriggerSaid(key, level, text, logger))
        if after > self._limits.log_max:
            note = f"The trigger has written {after} characters; the rest of what it writes is left out."
            self._host.send(TriggerSaid(key, "warning", note, "triggerer"))

    # --- the watchdog ---------------------------------------------------------------------------------------------------

    async def _stamp_progress(self) -> None:
        while True:
            self._loop_ran_at = time.monotonic()
            self._page.loop_ran(self._loop_ran_at)
            await asyncio.sleep(min(0.5, self._limits.blocked_shown / 4))

    def _watchdog(self) -> None:
        """The watchdog thread: find the trigger that blocks the event loop, or whose creation takes too long.

        It counts its own rounds instead of seconds: if the whole process was stopped for a while, no trigger has blocked it.
        """
        main = threading.main_thread().ident or 0
        step = min(0.5, self._limits.blocked_shown / 4)
        still: tuple[AttemptKey | None, float] | None = None
        rounds = 0
        while True:
            time.sleep(step)
            making, stepping, turn = self._making, self._stepping, self._loop_ran_at
            blocks = time.monotonic() - turn > 2 * step
            now: tuple[AttemptKey | None, float] | None = (stepping, turn) if blocks else making
            if now is None or now != still:
                still, rounds = now, 0
                self._last_warned = None if now is None else self._last_warned
                continue
            rounds += 1
            if blocks:
                stack = "".join(traceback.format_stack(sys._current_frames().get(main), limit=12)).rstrip()
                self._handle_blocked_loop(now[0], rounds * step, stack)
            else:
                self._handle_slow_creation(now[0], rounds * step)

    def _handle_blocked_loop(self, culprit: AttemptKey | None, blocked: float, stack: str) -> None:
        if blocked > self._limits.blocked_max:
            sentence = f"the trigger blocked the event loop of all triggers for {blocked:.0f} s, and was stopped:\n{stack}"
            self._end_process(culprit, sentence)
        elif blocked >= self._limits.blocked_shown:
            text = f"This trigger holds up all others: no await for {blocked:.0f} s. Use asyncio.to_thread."
            self._warn(culprit, f"{text}\n{stack}")

    def _handle_slow_creation(self, culprit: AttemptKey | None, lasted: float) -> None:
        if lasted > self._limits.blocked_max:
            self._end_process(
                culprit, f"the trigger could not be made within {lasted:.0f} s: its module's import, or its __init__"
            )
        elif lasted >= self._limits.blocked_shown:
            self._warn(culprit, f"This trigger holds up all that are to begin: making it has taken {lasted:.0f} s so far.")

    def _warn(self, culprit: AttemptKey | None, text: str) -> None:
        if culprit is not None and self._last_warned != culprit:
            self._last_warned = culprit
            self._host.send(TriggerSaid(culprit, "warning", text, "triggerer"))

    def _end_process(self, culprit: AttemptKey | None, sentence: str) -> None:
        """End the process. The host starts another one, with the other triggers."""
        if culprit is not None:
            self._host.send(TriggerFired(culprit, TriggerEnd(error=sentence)))
        os._exit(1)


def become_triggerer(link: int, questions: int, page: int, limits: TriggererLimits) -> None:
    """Run triggers until the host is gone, in a fork of the base image or in a separate interpreter."""
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
