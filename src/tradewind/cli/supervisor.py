"""The supervisor of `standalone` and `scheduler`: starts the services as child processes, restarts them, and stops them.

It does nothing else, so it is the last process to fail. It is a subreaper: when the worker host is killed, its
child processes become children of the supervisor, which kills them.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

import msgspec

from tradewind.cli.service_start import Entry, ServiceProcess, start_service
from tradewind.cli.watchdog import CHECKS_PER_LIMIT, Watchdog
from tradewind.cli.worker_hosts import is_host
from tradewind.model.moments import SECOND
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.platform import HAVE_LINUX
from tradewind.platform.clock import Clock
from tradewind.platform.exit_codes import how_it_ended
from tradewind.platform.loop import Loop

log = Log("supervisor")

FIRST_DELAY = SECOND // 20
LONGEST_DELAY = 5 * SECOND
STEADY_AFTER = 10 * SECOND
"""A child that has run this long is restarted with the first delay again."""
STOP_TIMEOUT = 20 * SECOND
"""How long a child may take to stop before it is killed."""
FRAMES_WITHIN = SECOND // 2
"""How long a stalled process gets to write the stacks of its threads before it is killed."""
CANNOT_START = 78


class Child(msgspec.Struct, eq=False):
    """One process that the supervisor keeps running."""

    name: str
    environment: Mapping[str, str]
    output: int | None = None
    """Descriptor for its stdout and stderr; None: those of the supervisor."""
    inherits: tuple[int, ...] = ()
    """Descriptors that it inherits, with the same numbers."""
    process: ServiceProcess | None = None
    stop_timeout: int = STOP_TIMEOUT
    """Microseconds that it may take to stop before it is killed."""
    started_at: int = 0
    deaths: int = 0
    given_up: bool = False
    watchdog: Watchdog | None = None
    """Watches the running process."""
    continued: bool = False
    """The process had been stopped by a signal (SIGSTOP), and the supervisor has sent it SIGCONT."""


class Supervisor:
    """Keeps its children running until `stop`.

    Args:
        entry: runs a child, given its name.
        children: in the order in which they are stopped.
        on_give_up: called when the exit code of a child says that a restart would not help.
        stall_limit: microseconds after which a child that has reported no progress (`record_progress`) is killed and restarted;
            0: never.
    """

    def __init__(
        self, clock: Clock, entry: Entry, children: list[Child], on_give_up: Callable[[Child], None], stall_limit: int = 0
    ) -> None:
        self.clock = clock
        self.loop = Loop(clock)
        self.children = children
        self.stopping = False
        self._entry = entry
        self._on_give_up = on_give_up
        self._stall_limit = stall_limit
        self._on_stop: Callable[[bool], None] = lambda at_once: None
        self._at_once = False
        self._to_stop: list[Child] = []
        self._background: dict[subprocess.Popen[bytes], Callable[[int], None]] = {}

    def run(self, starts: Sequence[Child], on_stop: Callable[[bool], None] = lambda at_once: None) -> None:
        """Start the children in this order and supervise them until all are stopped.

        SIGTERM stops them in order: running tasks get time to finish. SIGINT and SIGHUP stop them at once.

        Args:
            on_stop: called when stopping begins; its argument says whether running tasks are stopped at once.
        """
        self._on_stop = on_stop
        if HAVE_LINUX:
            from tradewind.platform import linux  # lazy import: Linux only

            linux.become_subreaper()
            linux.set_name("tw-supervisor")
        self.loop.on_signal(signal.SIGCHLD, self._on_child_exit)
        self.loop.on_signal(signal.SIGTERM, self.stop)
        self.loop.on_signal(signal.SIGINT, self.stop_at_once)
        self.loop.on_signal(signal.SIGHUP, self.stop_at_once)
        for child in starts:
            self.start(child)
        if self._stall_limit:
            self.loop.call_later(self._stall_limit // CHECKS_PER_LIMIT, self._check_for_stalls)
        self.loop.run()
        for pending in self._background:
            os.killpg(pending.pid, signal.SIGKILL)
            pending.wait()
        self._background.clear()
        self._kill_orphans()

    def stop_at_once(self) -> None:
        """Stop as `stop` does, but give running tasks no time to finish."""
        if self.stopping:
            self.stop()
        else:
            self._at_once = True
            self.stop()

    def stop(self) -> None:
        """Stop the children one after the other. A second call stops running tasks at once; a third call kills all children."""
        if self.stopping and not self._at_once:
            self._at_once = True
            self._signal_next()
            return
        if self.stopping:
            for child in self.children:
                if child.process is not None:
                    child.process.kill()
            return
        self.stopping = True
        self._on_stop(self._at_once)
        for pending in self._background:
            os.killpg(pending.pid, signal.SIGTERM)
        self._to_stop = list(self.children)
        self._stop_next()

    def record_progress(self, child: Child) -> None:
        """Note that the event loop of a child makes progress."""
        if child.watchdog is not None:
            child.watchdog.record_progress(self.clock.monotonic())
            child.continued = False

    def _check_for_stalls(self) -> None:
        """Kill the children that have stalled; they are restarted like every child that ends."""
        now = self.clock.monotonic()
        for child in self.children:
            if (
                child.process is not None
                and child.watchdog is not None
                and child.watchdog.is_stalled(now)
                and not self.stopping
            ):
                self._on_stall(child, child.process, child.watchdog.silent_for(now) / SECOND)
        self.loop.call_later(self._stall_limit // CHECKS_PER_LIMIT, self._check_for_stalls)

    def _on_stall(self, child: Child, process: ServiceProcess, seconds: float) -> None:
        if is_host(child.name) and not child.continued and _is_stopped(process.pid):
            child.continued = True  # killing it would kill its tasks
            log.warning("a process was stopped by a signal; sending SIGCONT", name=child.name)
            process.send_signal(signal.SIGCONT)
            return
        log.error("a process makes no progress; it is killed and restarted", name=child.name, seconds=round(seconds))
        process.send_signal(signal.SIGQUIT)  # it writes the stacks of its threads to its log, if it can
        self.loop.call_later(FRAMES_WITHIN, process.kill)

    def run_in_background(
        self, command: Sequence[str], environment: Mapping[str, str], output: int, on_end: Callable[[int], None]
    ) -> None:
        """Run a program once; `on_end` gets its exit code. The program is killed when the supervisor stops.

        Raises:
            OSError: the program cannot be started.
        """
        pending = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        self._background[pending] = on_end

    def _stop_next(self) -> None:
        while self._to_stop:
            child = self._to_stop[0]
            if child.process is not None and child.process.poll() is None:
                self._signal_next()
                self.loop.call_later(STOP_TIMEOUT if self._at_once else child.stop_timeout, child.process.kill)
                return
            self._to_stop.pop(0)
        self.loop.stop()

    def _signal_next(self) -> None:
        """Signal the next child to stop: SIGTERM, or SIGINT if it must stop at once."""
        process = self._to_stop[0].process if self._to_stop else None
        if process is not None:
            process.send_signal(signal.SIGINT if self._at_once else signal.SIGTERM)

    def start(self, child: Child) -> None:
        """Start one of the children and supervise it from then on."""
        if self.stopping or child.given_up:
            return
        child.started_at = self.clock.monotonic()
        child.watchdog, child.continued = Watchdog(self._stall_limit, child.started_at), False
        fp("supervisor.before_start")
        try:
            child.process = start_service(self._entry, child.name, child.environment, child.output, child.inherits)
        except OSError as error:
            log.error("a process could not be started; trying again", name=child.name, error=error.strerror)
            self._restart_later(child)

    def _on_child_exit(self) -> None:
        """Handle SIGCHLD: find the processes that have ended."""
        for child in self.children:
            process = child.process
            code = None if process is None else process.poll()
            if code is not None:
                child.process = None
                self._ended(child, code)
        for pending in list(self._background):
            if pending.poll() is not None:
                self._background.pop(pending)(pending.returncode)
        self._kill_orphans()

    def _ended(self, child: Child, code: int) -> None:
        if self.stopping:
            if self._to_stop and self._to_stop[0] is child:
                self._stop_next()
            return
        if code == CANNOT_START:
            child.given_up = True
            self._on_give_up(child)
            return
        log.warning("a process ended and is restarted", name=child.name, how=how_it_ended(code))
        self._restart_later(child)

    def _restart_later(self, child: Child) -> None:
        if self.clock.monotonic() - child.started_at > STEADY_AFTER:
            child.deaths = 0
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2**child.deaths) if child.deaths else 0
        child.deaths += 1
        self.loop.call_later(delay, lambda: self.start(child))

    def _kill_orphans(self) -> None:
        """Reap and kill the processes that a dead worker host has left behind."""
        if HAVE_LINUX:
            from tradewind.platform import linux  # lazy import: Linux only

            own = {child.process.pid for child in self.children if child.process is not None}
            own.update(pending.pid for pending in self._background)
            orphans = linux.reap_and_kill_orphans(own)
            if orphans:
                log.info("orphaned processes of a dead worker host were killed", count=len(orphans))


def _is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal (SIGSTOP)."""
    if not HAVE_LINUX:
        return False
    from tradewind.platform import linux  # lazy import: Linux only

    return linux.is_stopped(pid)
