"""`tradewind scheduler` with the processes that it needs: the parser, and the worker host that runs the tasks.

Airflow's scheduler reads the DAG files and, with LocalExecutor, runs the tasks. In Tradewind these are three processes, so the
command supervises them, as `standalone` does, without the web server. If a parser or worker host already runs on the home folder,
it is used and no second one is started.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from tradewind.cli.process import ALIVE, DISPATCHED, PASSES, PASSES_DONE, SUPERVISOR_PIPE, main
from tradewind.cli.process_logs import ChildPipe, rotate_own_files
from tradewind.cli.supervisor import Child, Supervisor
from tradewind.cli.worker_hosts import is_host, with_worker_hosts
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform.clock import SystemClock
from tradewind.platform.progress import read_progress, unhealthy_after
from tradewind.settings import Settings

log = Log("scheduler")

STOP_ORDER = ("host", "gateway", "parser", "uploads", "scheduler")
"""The order of stopping: tasks end first, so that the scheduler gets their reports; the scheduler stops last."""
CHECK_INTERVAL = 5 * SECOND
"""Microseconds between two checks whether another parser or worker host is still running."""


class SchedulerService:
    """Runs the scheduler and the processes that it needs, until it is stopped.

    Args:
        environment: environment of the child processes.
        parts: which of host and parser are started with the scheduler.
        passes: stop after every DAG file was read this many times and all tasks that were due are started; running tasks get time
            to finish, as at SIGTERM. None: run until stopped. This needs the service's own parser.
    """

    def __init__(
        self, settings: Settings, environment: dict[str, str], parts: frozenset[str], passes: int | None = None
    ) -> None:
        self.settings = settings
        self.failed = False
        self._passes = passes
        self._passes_done = False
        hosts = settings.runner.worker_hosts
        parts = parts | {"gateway"} if settings.gateway.enabled else parts
        parts = parts | {"uploads"} if settings.logging.remote_logging else parts
        self._others = with_worker_hosts([name for name in ("host", "parser", "gateway", "uploads") if name in parts], hosts)
        stops = with_worker_hosts([name for name in STOP_ORDER if name in parts or name == "scheduler"], hosts)
        self._children = {name: Child(name, environment) for name in stops}
        self.supervisor = Supervisor(
            SystemClock(), main, list(self._children.values()), self._on_give_up, settings.core.stall_limit_us
        )
        for name, child in self._children.items():
            pipe = ChildPipe(self.supervisor.loop, self._message_handler(name))
            child.environment = {**environment, SUPERVISOR_PIPE: str(pipe.write)}
            child.inherits = (pipe.write,)
        if passes is not None:
            parser = self._children["parser"]
            parser.environment = {**parser.environment, PASSES: str(passes)}
        for child in self._children.values():
            child.stop_timeout += settings.runner.drain_timeout_us if is_host(child.name) else 0

    def run(self) -> int:
        """Run until all processes are stopped, and return the exit code."""
        self.supervisor.loop.on_signal(signal.SIGQUIT, self._write_stacks)
        self._keep_files_bounded()
        self.supervisor.run([self._children["scheduler"]])
        return 1 if self.failed else 0

    def _keep_files_bounded(self) -> None:
        rotate_own_files()
        self.supervisor.loop.call_later(CHECK_INTERVAL, self._keep_files_bounded)

    def _message_handler(self, name: str) -> Callable[[str], None]:
        return lambda line: self._on_message(name, line)

    def _on_message(self, name: str, line: str) -> None:
        """Handle a message of a child. Warnings of a child need no handling: they are in the log already."""
        if line == ALIVE:
            self.supervisor.record_progress(self._children[name])
            if name == "scheduler":
                self._start_others()
                if self._passes_done:
                    self._request_dispatched()  # ask again: the scheduler may have been restarted since the first request
        elif line == PASSES_DONE:
            self._passes_done = True
            self._request_dispatched()
        elif line == DISPATCHED and not self.supervisor.stopping:
            log.info("all DAG files were read and all due tasks were started; the service stops", passes=self._passes)
            self.supervisor.stop()

    def _start_others(self) -> None:
        """Start the other processes, once, after the scheduler has started."""
        names, self._others = self._others, []
        for name in names:
            self._start_unless_running(name, logged=False)

    def _start_unless_running(self, name: str, *, logged: bool) -> None:
        """Start the process, unless another one of this kind runs already; then check again later, in case that one ends."""
        if self.supervisor.stopping:
            return
        other = read_progress(self.settings.paths.progress(name), self.supervisor.clock)
        if other is None or not other.alive or other.age > unhealthy_after(self.settings.core.stall_limit_us):
            self.supervisor.start(self._children[name])
            return
        if name == "parser" and self._passes is not None:
            self.failed = True
            log.error(
                "another parser runs on this home folder, and its passes cannot be counted; the service stops", pid=other.pid
            )
            self.supervisor.stop()
            return
        if not logged:
            log.info("such a process already runs on this home folder; no second one is started", name=name, pid=other.pid)
        self.supervisor.loop.call_later(CHECK_INTERVAL, lambda: self._start_unless_running(name, logged=True))

    def _request_dispatched(self) -> None:
        """Send SIGUSR1 to the scheduler, which answers once with DISPATCHED."""
        process = self._children["scheduler"].process
        if process is not None and not self.supervisor.stopping:
            process.send_signal(signal.SIGUSR1)

    def _write_stacks(self) -> None:
        process = self._children["scheduler"].process
        if process is not None:
            process.send_signal(signal.SIGQUIT)

    def _on_give_up(self, child: Child) -> None:
        self.failed = True
        log.error("a process cannot continue; the service stops", name=child.name)
        self.supervisor.stop()
