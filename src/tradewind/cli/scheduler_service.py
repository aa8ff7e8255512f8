"""`tradewind scheduler` with all that it needs beside it: the parser, and the worker host that runs its tasks.

Airflow's scheduler reads the DAG files and, with LocalExecutor, runs the tasks. Here these are three processes, so the command
is a supervisor of them, as `standalone` is, without the web page. Where a parser or worker host runs on the home folder already, it
keeps its work, and none is started.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from tradewind.cli.process import ALIVE, DISPATCHED, PASSES, PASSES_DONE, TELL
from tradewind.cli.process_logs import TellPipe, rotate_own_files
from tradewind.cli.supervisor import Child, Supervisor
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform.clock import SystemClock
from tradewind.platform.progress import read_progress, unhealthy_after
from tradewind.settings import Settings

log = Log("scheduler")

STOPS = ("host", "parser", "scheduler")
"""Tasks end first; the scheduler hears of it and goes last."""
LOOK_AGAIN = 5 * SECOND
"""Whether the parser or worker host of somebody else is still there."""


class SchedulerService:
    """The scheduler and what it needs, until it is told to stop.

    Args:
        environment: of the children.
        parts: which of host and parser are started with it.
        passes: the service ends when every DAG file was read so many times and all that was due is dispatched; running tasks
            get time to finish, as at SIGTERM. None: no end. It needs a parser of its own.
    """

    def __init__(
        self, settings: Settings, environment: dict[str, str], parts: frozenset[str], passes: int | None = None
    ) -> None:
        self.settings = settings
        self.failed = False
        self._passes = passes
        self._passes_done = False
        self._beside = [name for name in ("host", "parser") if name in parts]
        self._children = {name: Child(name, environment) for name in STOPS if name in parts or name == "scheduler"}
        self.supervisor = Supervisor(SystemClock(), list(self._children.values()), self._gave_up, settings.core.stall_limit_us)
        for name, child in self._children.items():
            pipe = TellPipe(self.supervisor.loop, self._hearer(name))
            child.environment = {**environment, TELL: str(pipe.write)}
            child.inherits = (pipe.write,)
        if passes is not None:
            parser = self._children["parser"]
            parser.environment = {**parser.environment, PASSES: str(passes)}
        if "host" in self._children:
            self._children["host"].stop_patience += settings.runner.drain_timeout_us

    def run(self) -> int:
        """Until all are stopped; the exit code."""
        self.supervisor.loop.on_signal(signal.SIGQUIT, self._write_frames)
        self._keep_files_bounded()
        self.supervisor.run([self._children["scheduler"]])
        return 1 if self.failed else 0

    def _keep_files_bounded(self) -> None:
        rotate_own_files()
        self.supervisor.loop.call_later(LOOK_AGAIN, self._keep_files_bounded)

    def _hearer(self, name: str) -> Callable[[str], None]:
        return lambda line: self._told(name, line)

    def _told(self, name: str, line: str) -> None:
        """What a child says to its supervisor. Its warnings are in the log already."""
        if line == ALIVE:
            self.supervisor.heard_of(self._children[name])
            if name == "scheduler":
                self._start_beside()
                if self._passes_done:
                    self._ask_whether_dispatched()  # once more: it may have been started again meanwhile
        elif line == PASSES_DONE:
            self._passes_done = True
            self._ask_whether_dispatched()
        elif line == DISPATCHED and not self.supervisor.stopping:
            log.info("all DAG files were read and what was due is dispatched; the service ends", passes=self._passes)
            self.supervisor.stop()

    def _start_beside(self) -> None:
        """The scheduler is up: start the others, once."""
        names, self._beside = self._beside, []
        for name in names:
            self._start_or_leave(name, told=False)

    def _start_or_leave(self, name: str, *, told: bool) -> None:
        """Start it, unless there is one that somebody else runs; then look again, in case that one ends."""
        if self.supervisor.stopping:
            return
        other = read_progress(self.settings.paths.progress(name), self.supervisor.clock)
        if other is None or not other.alive or other.age > unhealthy_after(self.settings.core.stall_limit_us):
            self.supervisor.start(self._children[name])
            return
        if name == "parser" and self._passes is not None:
            self.failed = True
            log.error("another process reads the DAG files of this home folder; its passes cannot be counted", pid=other.pid)
            self.supervisor.stop()
            return
        if not told:
            log.info("another process does this work on the home folder already; none is started", name=name, pid=other.pid)
        self.supervisor.loop.call_later(LOOK_AGAIN, lambda: self._start_or_leave(name, told=True))

    def _ask_whether_dispatched(self) -> None:
        """The scheduler answers DISPATCHED, once."""
        process = self._children["scheduler"].process
        if process is not None and not self.supervisor.stopping:
            process.send_signal(signal.SIGUSR1)

    def _write_frames(self) -> None:
        process = self._children["scheduler"].process
        if process is not None:
            process.send_signal(signal.SIGQUIT)

    def _gave_up(self, child: Child) -> None:
        self.failed = True
        log.error("a process cannot start; the service ends", name=child.name)
        self.supervisor.stop()
