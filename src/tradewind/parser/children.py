"""Parse children: the zygote process, the queue of jobs, time limits, and the result of each child.

One job is one file in one child. If the zygote itself dies, every file that was being read may be the cause: each of them is read
again alone. If the zygote dies again during such a reading, the file gets a problem.
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
from typing import TYPE_CHECKING

import msgspec

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.parser import orders, problems
from tradewind.parser.config import ParserConfig
from tradewind.parser.environment import without_credentials
from tradewind.parser.lookups import ChildLookups, SendLookup
from tradewind.parser.parse_result import ChildReport, Problem, timetable_answer
from tradewind.platform.backoff import Backoff
from tradewind.platform.clock import Clock
from tradewind.platform.fork_server import ROOM_FOR_TITLE, Answer, Exited, Forked, decode_answer, encode, send_order
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.messages import AssetsChanged, TimetableAnswer, TimetableQuestion

if TYPE_CHECKING:
    from tradewind.parser.metrics import ParserMetrics  # loaded only if metrics are on

log = Log("parse")

OUTPUT_KEPT = 8 * 1024
PACKET = 1 << 16
KILL_AFTER = SECOND // 4
"""Time between the signal that writes a crash note and SIGKILL."""
FIRST_RETRY, LONGEST_RETRY = SECOND // 20, 10 * SECOND
FORK_RETRY = SECOND


class ReadResult(msgspec.Struct, frozen=True):
    """The result of reading one file."""

    report: ChildReport
    duration: int
    output: str
    unanswered: bool = False
    """True if a lookup had no answer because the scheduler was not reachable; the result is then meaningless."""


class Job(msgspec.Struct, eq=False):
    """One request to a child process, usually to read a file."""

    file: str
    folder: str
    done: Callable[[ReadResult], None]
    ask: TimetableQuestion | None = None
    plugins: bool = False
    import_error: tuple[str, str, str] | None = None
    changed_assets: AssetsChanged | None = None
    alone: bool = False
    pid: int = 0
    memory: int = -1
    pipe: int = -1
    lookups: ChildLookups | None = None
    output: bytearray = msgspec.field(default_factory=bytearray)
    began: int = 0
    timer: TimerHandle | None = None
    timed_out: bool = False

    @property
    def is_reading(self) -> bool:
        """Whether the request is to read a DAG file."""
        return self.ask is None and not self.plugins and self.import_error is None and self.changed_assets is None


class ParseChildren:
    """Reads files, `config.processes` at a time.

    Args:
        kill_orphans: called when the zygote has ended, to kill processes that it left behind. The parser process is a subreaper and
            passes this; in any other process, orphans are left to the process that adopts them.
    """

    def __init__(self, config: ParserConfig, loop: Loop, clock: Clock, kill_orphans: Callable[[], None] | None = None) -> None:
        self.config = config
        self.loop = loop
        self.clock = clock
        self.zygote_deaths = 0
        self.last_end = clock.monotonic()
        """When the last job ended."""
        self.look_up: SendLookup | None = None
        """Answers lookups of files that are being imported. None: their lookups fail."""
        self.metrics: ParserMetrics | None = None
        """None: metrics are off."""
        self._kill_orphans = kill_orphans
        self._waits = Backoff(FIRST_RETRY, LONGEST_RETRY, random.random)
        self._queue: deque[Job] = deque()
        self._ordered: deque[Job] = deque()
        self._living: dict[int, Job] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._ready = False
        self._restart_pending = False
        """True if it died and its restart is scheduled."""
        self._closed = False

    # --- jobs -----------------------------------------------------------------------------------------------------------

    def read(self, file: str, done: Callable[[ReadResult], None], *, folder: str = "", first: bool = False) -> None:
        """Read a file (relative path); `done` is called from the loop.

        Args:
            folder: the folder of its bundle; empty: the DAG folder.
            first: before the jobs in the queue, because a person has just saved the file or asked for it.
        """
        job = Job(file, folder or self.config.folder, done)
        (self._queue.appendleft if first else self._queue.append)(job)
        self._start_jobs()

    def ask(self, ask: TimetableQuestion, done: Callable[[TimetableAnswer], None]) -> None:
        """Call a method of a custom timetable; `done` is called from the loop. Before other jobs, because runs depend on it."""
        folder = self.config.folder_of(ask.bundle, ask.bundle_version)
        self._queue.appendleft(Job(ask.file, folder, lambda read: done(timetable_answer(ask, read.report)), ask))
        self._start_jobs()

    def read_plugins(self, done: Callable[[ReadResult], None]) -> None:
        """Load the plugins, to list them."""
        self._queue.append(Job(".", self.config.plugins_folder, done, plugins=True))
        self._start_jobs()

    def report_import_error(self, event: str, path: str, stack_trace: str) -> None:
        """Let the listeners of plugins know that a DAG file cannot be imported.

        Args:
            event: `on_new_dag_import_error` or `on_existing_dag_import_error`.
            path: absolute path of the file.
        """
        import_error = (event, path, stack_trace)
        self._queue.append(Job(".", self.config.plugins_folder, lambda read: None, import_error=import_error))
        self._start_jobs()

    def call_asset_listeners(self, changed: AssetsChanged) -> None:
        """Let the listeners of plugins know of new assets and aliases, and of events."""
        self._queue.append(Job(".", self.config.plugins_folder, lambda read: None, changed_assets=changed))
        self._start_jobs()

    def busy(self) -> int:
        """Number of jobs that have not ended."""
        return len(self._queue) + len(self._ordered) + len(self._living)

    def start(self) -> None:
        """Start the zygote."""
        if self._process is not None or self._closed:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tradewind.parser.base_image", str(theirs.fileno()), str(os.getpid()), ROOM_FOR_TITLE],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            # without a fixed hash seed, a set of strings has a different order in each process, which would create new versions
            env={**without_credentials(os.environ), "PYTHONHASHSEED": "0"},
        )
        theirs.close()
        ours.setblocking(False)
        self._link = ours
        self.loop.watch(ours, selectors.EVENT_READ, lambda events: self._on_message())

    @property
    def is_zygote_stopped(self) -> bool:
        """True if no zygote runs, because there is nothing to read."""
        return self._process is None and not self._restart_pending

    def stop_zygote(self) -> None:
        """Stop the zygote while there is nothing to read: a ninth of an idle installation's memory. The next job starts it."""
        if self.busy() or not self._ready:
            return
        self._ready = False
        self._end_zygote()

    def close(self) -> None:
        """Kill all processes. The callbacks of the jobs are not called."""
        self._closed = True
        self._queue.clear()
        for job in [*self._ordered, *self._living.values()]:
            self._release(job)
        self._ordered.clear()
        self._living.clear()
        self._end_zygote()

    def _end_zygote(self) -> int:
        """Kill the zygote. Returns its exit code, as Popen does."""
        if self._link is not None:
            self.loop.unwatch(self._link)
            self._link.close()
            self._link = None
        if self._process is None:
            return 0
        self._process.kill()  # its children have requested to die with it
        code = self._process.wait()
        self._process = None
        if self._kill_orphans is not None:
            self._kill_orphans()
        return code

    def _start_jobs(self) -> None:
        if self._process is None and self._queue and not self._restart_pending:
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
        """The next job. Timetables that hang must not block the reading of files, so one process is reserved for files."""
        limit = max(1, self.config.processes - 1)
        return next((job for job in self._queue if job.ask is None or asking < limit), None)

    def _order(self, link: socket.socket, job: Job) -> bool:
        config = self.config
        order = orders.ParseOrder(
            job.folder,
            job.file,
            config.memory_limit,
            max(1, -(-config.timeout // SECOND)) + 1,
            config.max_tasks_per_dag,
            config.defaults,
            config.user_settings,
            job.ask,
            job.plugins,
            job.import_error,
            config.find_connections,
            job.changed_assets,
        )
        job.memory = os.memfd_create("report", os.MFD_CLOEXEC)
        job.pipe, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(theirs, True)
        job.began = self.clock.monotonic()
        given = [theirs]
        if self.look_up is not None:
            ours, line = socket.socketpair()
            job.lookups = ChildLookups(ours, self.loop, self.look_up)
            given.append(line.detach())
        try:
            send_order(link, encode(order), [job.memory, *given])
        except OSError:
            # the zygote is ending; `_on_message` will notice it
            self._release(job)
            self._queue.appendleft(job)
            return False
        finally:
            for descriptor in given:
                os.close(descriptor)
        self._ordered.append(job)
        self.loop.watch(job.pipe, selectors.EVENT_READ, lambda events: self._drain(job))
        return True

    def _drain(self, job: Job, at_most: int = 16) -> None:
        """Read the output of the file and keep its end. Limited, because a file may print endlessly."""
        for _ in range(at_most):
            if job.pipe < 0:  # released by another callback of this turn of the loop
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

    def _release(self, job: Job) -> None:
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

    # --- messages of the zygote -----------------------------------------------------------------------------------------

    def _on_message(self) -> None:
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
            self._handle(decode_answer(data))
        self._start_jobs()

    def _handle(self, answer: Answer) -> None:
        if isinstance(answer, Forked):
            self._on_forked(answer)
        elif isinstance(answer, Exited):
            job = self._living.pop(answer.pid, None)
            if job is not None:
                self._on_exit(job, answer.status)
        else:
            self._ready = True
            self._waits.succeeded()

    def _on_forked(self, answer: Forked) -> None:
        job = self._ordered.popleft()
        if not answer.pid:
            log.error("cannot fork a parse child; trying again", why=answer.problem)
            self._release(job)
            self.loop.call_later(FORK_RETRY, lambda: self._retry_job(job))
            return
        job.pid = answer.pid
        self._living[answer.pid] = job
        job.timer = self.loop.call_later(self.config.timeout, lambda: self._on_timeout(job))
        if self.metrics is not None and job.is_reading:
            self.metrics.began(job.file)

    def _retry_job(self, job: Job) -> None:
        if not self._closed:
            self._queue.append(job)
            self._start_jobs()

    def _on_timeout(self, job: Job) -> None:
        job.timed_out = True
        self._signal(job, signal.SIGXCPU)
        job.timer = self.loop.call_later(KILL_AFTER, lambda: self._signal(job, signal.SIGKILL))

    def _signal(self, job: Job, number: int) -> None:
        # until the zygote sends `Exited`, it has not reaped the child, so the pid cannot belong to another process
        if self._living.get(job.pid) is job:
            try:
                os.kill(job.pid, number)
            except ProcessLookupError:
                pass

    def _on_exit(self, job: Job, status: int) -> None:
        self._count_end(job)
        self._drain(job, at_most=1 << 10)
        memory, path = _read_all(job.memory), self._path(job)
        if job.timed_out:
            report = _failed(problems.too_slow(job.file, self.config.timeout, _text(memory), path))
        elif memory.startswith(orders.REPORT):
            report = orders.decode_report(memoryview(memory)[len(orders.REPORT) :])
        else:
            cpu_seconds = max(1, -(-self.config.timeout // SECOND)) + 1
            report = _failed(problems.from_status(status, _text(memory), path, cpu_seconds))
        self._finish_job(job, report)

    def _count_end(self, job: Job) -> None:
        if self.metrics is not None and job.is_reading:
            self.metrics.ended(job.file, timed_out=job.timed_out)

    def _path(self, job: Job) -> str:
        return os.path.join(job.folder, job.file)

    def _finish_job(self, job: Job, report: ChildReport) -> None:
        output = _text(bytes(job.output))
        if report.problems:
            first, *others = report.problems
            report = msgspec.structs.replace(report, problems=(problems.with_output(first, output), *others))
        unanswered = False
        if job.lookups is not None:
            report, output = job.lookups.without_secrets(report), job.lookups.masked(output)
            unanswered = job.lookups.is_unanswered(job.timed_out)
        self.last_end = self.clock.monotonic()
        duration = self.last_end - job.began
        self._release(job)
        job.done(ReadResult(report, duration, output, unanswered))

    # --- death of the zygote --------------------------------------------------------------------------------------------

    def _zygote_died(self) -> None:
        self._ready, self._restart_pending = False, True
        code = self._end_zygote()
        self.zygote_deaths += 1
        suspects = [*self._living.values(), *self._ordered]
        self._living.clear()
        self._ordered.clear()
        wait = self._waits.failed()
        log.error("the zygote of the parser died and is started again", exit_code=code, reading=len(suspects))
        for job in reversed(suspects):
            if job.pid:
                self._count_end(job)
            if job.alone:
                status = -code if code < 0 else code << 8
                path = self._path(job)
                self._finish_job(job, _failed(problems.from_status(status, "", path, 0, zygote_died=True)))
            else:
                self._release(job)
                job.alone, job.timed_out, job.output, job.pid = True, False, bytearray(), 0
                self._queue.appendleft(job)
        self.loop.call_later(wait, self._start_again)

    def _start_again(self) -> None:
        self._restart_pending = False
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
