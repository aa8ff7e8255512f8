"""Parse children: the zygote's life, who is being read, time limits, and what each child came to.

One job is one file in one child. When the zygote itself dies, every file that was being read is a suspect: each is read again
alone, and the one under which the zygote dies a second time is told so.
"""

from __future__ import annotations

import os
import random
import selectors
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.parser import orders, problems
from tradewind.parser.config import ParserConfig
from tradewind.parser.environment import without_credentials
from tradewind.parser.lookups import AskScheduler, Conversation
from tradewind.parser.parse_result import ChildReport, Problem, told
from tradewind.platform.backoff import Backoff
from tradewind.platform.clock import Clock
from tradewind.platform.fork_server import ROOM_FOR_TITLE, Answer, Exited, Forked, decode_answer, encode, send_order
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion

log = Log("parse")

OUTPUT_KEPT = 8 * 1024
PACKET = 1 << 16
KILL_AFTER = SECOND // 4
"""Between the signal that leaves a note and the one that cannot be caught."""
FIRST_RETRY, LONGEST_RETRY = SECOND // 20, 10 * SECOND
FORK_RETRY = SECOND


class Read(msgspec.Struct, frozen=True):
    """What one reading of a file came to."""

    report: ChildReport
    duration: int
    output: str
    unanswered: bool = False
    """It asked for a variable or connection while nobody could answer: what it came to says nothing."""


@dataclass(eq=False)
class Job:
    """One file to be read."""

    file: str
    done: Callable[[Read], None]
    ask: TimetableQuestion | None = None
    plugins: bool = False
    alone: bool = False
    pid: int = 0
    memory: int = -1
    pipe: int = -1
    lookups: Conversation | None = None
    output: bytearray = field(default_factory=bytearray)
    began: int = 0
    timer: TimerHandle | None = None
    timed_out: bool = False


class ParseChildren:
    """Reads files, `config.processes` at a time.

    Args:
        sweep: called when the zygote is dead, to end what it left behind. The parser's own process is a subreaper and passes
            one; inside another process, strays of a dead zygote are left to whoever adopts them.
    """

    def __init__(self, config: ParserConfig, loop: Loop, clock: Clock, sweep: Callable[[], None] | None = None) -> None:
        self.config = config
        self.loop = loop
        self.clock = clock
        self.deaths = 0
        self.last_end = clock.monotonic()
        """When a job was done last."""
        self.look_up: AskScheduler | None = None
        """Answers what files ask while they are imported; None: they are told that nobody can."""
        self._sweep = sweep
        self._waits = Backoff(FIRST_RETRY, LONGEST_RETRY, random.random)
        self._queue: deque[Job] = deque()
        self._ordered: deque[Job] = deque()
        self._living: dict[int, Job] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._ready = False
        self._mourning = False
        """It died, and is started again in a moment."""
        self._closed = False

    # --- jobs -----------------------------------------------------------------------------------------------------------

    def read(self, file: str, done: Callable[[Read], None], *, first: bool = False) -> None:
        """Have a file (relative path) read; `done` is called from the loop.

        Args:
            first: before those that wait already: somebody has just saved it.
        """
        job = Job(file, done)
        (self._queue.appendleft if first else self._queue.append)(job)
        self._go_on()

    def ask(self, ask: TimetableQuestion, done: Callable[[TimetableAnswer], None]) -> None:
        """Have a custom timetable asked; `done` is called from the loop. Before files that wait: runs depend on it."""
        self._queue.appendleft(Job(ask.file, lambda read: done(told(ask, read.report)), ask))
        self._go_on()

    def read_plugins(self, done: Callable[[Read], None]) -> None:
        """Have the plugins loaded, to learn what they are."""
        self._queue.append(Job(".", done, plugins=True))
        self._go_on()

    def busy(self) -> int:
        """Jobs not done yet."""
        return len(self._queue) + len(self._ordered) + len(self._living)

    def start(self) -> None:
        """Exec the zygote."""
        if self._process is not None or self._closed:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tradewind.parser.base_image", str(theirs.fileno()), str(os.getpid()), ROOM_FOR_TITLE],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            # a set of texts that a file walks through must come in the same order each time, or each time is a new version
            env={**without_credentials(os.environ), "PYTHONHASHSEED": "0"},
        )
        theirs.close()
        ours.setblocking(False)
        self._link = ours
        self.loop.watch(ours, selectors.EVENT_READ, lambda events: self._hear())

    @property
    def resting(self) -> bool:
        """Is there no zygote, because nothing is to be read?"""
        return self._process is None and not self._mourning

    def rest(self) -> None:
        """End the zygote while nothing is to be read: it is a ninth of what an idle installation holds. The next job starts one."""
        if self.busy() or not self._ready:
            return
        self._ready = False
        self._end_zygote()

    def close(self) -> None:
        """Kill what runs. No job is told anything any more."""
        self._closed = True
        self._queue.clear()
        for job in [*self._ordered, *self._living.values()]:
            self._let_go(job)
        self._ordered.clear()
        self._living.clear()
        self._end_zygote()

    def _end_zygote(self) -> int:
        """What is left of it; its exit code, as Popen's."""
        if self._link is not None:
            self.loop.unwatch(self._link)
            self._link.close()
            self._link = None
        if self._process is None:
            return 0
        self._process.kill()  # its children have asked to die with it
        code = self._process.wait()
        self._process = None
        if self._sweep is not None:
            self._sweep()
        return code

    def _go_on(self) -> None:
        if self._process is None and self._queue and not self._mourning:
            self.start()
        if not self._ready or self._link is None:
            return
        while True:
            running = [*self._ordered, *self._living.values()]
            job = self._next(sum(job.ask is not None for job in running))
            if job is None:
                return
            alone = job.alone or any(job.alone for job in running)
            if len(running) >= (1 if alone else self.config.processes):
                return
            self._queue.remove(job)
            if not self._order(self._link, job):
                return

    def _next(self, asking: int) -> Job | None:
        """Whose turn it is. Timetables that hang must not keep files from being read: one place is left for these."""
        most = max(1, self.config.processes - 1)
        return next((job for job in self._queue if job.ask is None or asking < most), None)

    def _order(self, link: socket.socket, job: Job) -> bool:
        config = self.config
        order = orders.ParseOrder(
            self._folder(job),
            job.file,
            config.memory_limit,
            max(1, -(-config.timeout // SECOND)) + 1,
            config.max_tasks_per_dag,
            config.defaults,
            config.user_settings,
            job.ask,
            job.plugins,
        )
        job.memory = os.memfd_create("report", os.MFD_CLOEXEC)
        job.pipe, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(theirs, True)
        job.began = self.clock.monotonic()
        given = [theirs]
        if self.look_up is not None:
            ours, line = socket.socketpair()
            job.lookups = Conversation(ours, self.loop, self.look_up)
            given.append(line.detach())
        try:
            send_order(link, encode(order), [job.memory, *given])
        except OSError:
            # the zygote is dying, and its end is heard next
            self._let_go(job)
            self._queue.appendleft(job)
            return False
        finally:
            for descriptor in given:
                os.close(descriptor)
        self._ordered.append(job)
        self.loop.watch(job.pipe, selectors.EVENT_READ, lambda events: self._drain(job))
        return True

    def _drain(self, job: Job, at_most: int = 16) -> None:
        """Take what the file printed, and keep its end. Bounded: a file that prints without end must not hold the loop."""
        for _ in range(at_most):
            if job.pipe < 0:  # let go in this very turn of the loop
                return
            try:
                data = os.read(job.pipe, PACKET)
            except BlockingIOError:
                return
            if not data:
                self.loop.unwatch(job.pipe)
                return
            job.output += data
            del job.output[:-OUTPUT_KEPT]

    def _let_go(self, job: Job) -> None:
        if job.timer is not None:
            job.timer.cancel()
        if job.pipe >= 0:
            self.loop.unwatch(job.pipe)
            os.close(job.pipe)
        if job.memory >= 0:
            os.close(job.memory)
        if job.lookups is not None:
            job.lookups.close()
        job.pid, job.pipe, job.memory, job.timer, job.lookups = 0, -1, -1, None, None

    # --- what the zygote says -----------------------------------------------------------------------------------------

    def _hear(self) -> None:
        while self._link is not None:
            try:
                data = self._link.recv(PACKET)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self._zygote_died()
                break
            self._take(decode_answer(data))
        self._go_on()

    def _take(self, answer: Answer) -> None:
        if isinstance(answer, Forked):
            self._forked(answer)
        elif isinstance(answer, Exited):
            job = self._living.pop(answer.pid, None)
            if job is not None:
                self._finished(job, answer.status)
        else:
            self._ready = True
            self._waits.succeeded()

    def _forked(self, answer: Forked) -> None:
        job = self._ordered.popleft()
        if not answer.pid:
            log.error("a parse child cannot be forked; trying again", why=answer.problem)
            self._let_go(job)
            self.loop.call_later(FORK_RETRY, lambda: self._again(job))
            return
        job.pid = answer.pid
        self._living[answer.pid] = job
        job.timer = self.loop.call_later(self.config.timeout, lambda: self._too_slow(job))

    def _again(self, job: Job) -> None:
        if not self._closed:
            self._queue.append(job)
            self._go_on()

    def _too_slow(self, job: Job) -> None:
        job.timed_out = True
        self._signal(job, signal.SIGXCPU)
        job.timer = self.loop.call_later(KILL_AFTER, lambda: self._signal(job, signal.SIGKILL))

    def _signal(self, job: Job, number: int) -> None:
        # the zygote waits for it, so its number cannot have gone to another process before `Exited` is on its way
        if self._living.get(job.pid) is job:
            try:
                os.kill(job.pid, number)
            except ProcessLookupError:
                pass

    def _finished(self, job: Job, status: int) -> None:
        self._drain(job, at_most=1 << 10)
        memory, path = _read_all(job.memory), self._path(job)
        if job.timed_out:
            report = _failed(problems.too_slow(job.file, self.config.timeout, _text(memory), path))
        elif memory.startswith(orders.REPORT):
            report = orders.decode_report(memoryview(memory)[len(orders.REPORT) :])
        else:
            cpu_seconds = max(1, -(-self.config.timeout // SECOND)) + 1
            report = _failed(problems.from_status(status, _text(memory), path, cpu_seconds))
        self._tell(job, report)

    def _folder(self, job: Job) -> str:
        if job.plugins:
            return self.config.plugins_folder
        return self.config.folder if job.ask is None else job.ask.folder

    def _path(self, job: Job) -> str:
        return os.path.join(self._folder(job), job.file)

    def _tell(self, job: Job, report: ChildReport) -> None:
        output = _text(bytes(job.output))
        if report.problems:
            first, *others = report.problems
            report = msgspec.structs.replace(report, problems=(problems.with_output(first, output), *others))
        unanswered = False
        if job.lookups is not None:
            report, output = job.lookups.without_secrets(report), job.lookups.masked(output)
            unanswered = job.lookups.unanswered(job.timed_out)
        self.last_end = self.clock.monotonic()
        duration = self.last_end - job.began
        self._let_go(job)
        job.done(Read(report, duration, output, unanswered))

    # --- its death ------------------------------------------------------------------------------------------------------

    def _zygote_died(self) -> None:
        self._ready, self._mourning = False, True
        code = self._end_zygote()
        self.deaths += 1
        suspects = [*self._living.values(), *self._ordered]
        self._living.clear()
        self._ordered.clear()
        wait = self._waits.failed()
        log.error("the process that reads DAG files died and is started again", exit_code=code, reading=len(suspects))
        for job in reversed(suspects):
            if job.alone:
                status = -code if code < 0 else code << 8
                path = self._path(job)
                self._tell(job, _failed(problems.from_status(status, "", path, 0, zygote_died=True)))
            else:
                self._let_go(job)
                job.alone, job.timed_out, job.output = True, False, bytearray()
                self._queue.appendleft(job)
        self.loop.call_later(wait, self._start_again)

    def _start_again(self) -> None:
        self._mourning = False
        self.start()


def _failed(problem: Problem) -> ChildReport:
    return ChildReport(problems=(problem,))


def _read_all(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    parts, position = [], 0
    while position < size:
        part = os.pread(descriptor, size - position, position)
        if not part:
            break
        parts.append(part)
        position += len(part)
    return b"".join(parts)


def _text(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", "")
