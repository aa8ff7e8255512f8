"""`standalone`: one supervisor with scheduler, worker host, parser and API as its children, each exec'd.

It starts them, starts again what dies, and stops all of them when it is asked to. It imports little and does nothing else, so it
is the last to fail. It is a subreaper: when the worker host is killed, what was below it lands here and is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tradewind.cli.watchdog import LOOKS_PER_LIMIT, Watchdog
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
STEADY = 10 * SECOND
"""A child that has lived this long begins again with the first delay."""
STOP_EACH = 20 * SECOND
"""How long a child may take to stop before it is killed."""
FRAMES_WITHIN = SECOND // 2
"""A process that is ended because it stands still gets so long to write down what it was doing."""
CANNOT_START = 78


@dataclass(eq=False)
class Child:
    """One process that is kept alive."""

    name: str
    environment: Mapping[str, str]
    output: int | None = None
    """Descriptor that takes its stdout and stderr; None: ours."""
    inherits: tuple[int, ...] = ()
    """Descriptors that it gets under the same numbers."""
    process: subprocess.Popen[bytes] | None = None
    stop_patience: int = STOP_EACH
    """How long it may take to stop, microseconds, before it is killed."""
    started_at: int = 0
    deaths: int = 0
    given_up: bool = False
    watchdog: Watchdog | None = None
    """Of the life under way."""
    continued: bool = False
    """It was found stopped by a signal, and was told to go on."""


class Supervisor:
    """Keeps children alive until `stop`.

    Args:
        children: in the order in which they are stopped.
        on_give_up: called when a child says that starting it again would not help.
        stall_limit: microseconds after which a child that has not said that its loop turns (`heard_of`) is ended and started
            again; 0: never.
    """

    def __init__(self, clock: Clock, children: list[Child], on_give_up: Callable[[Child], None], stall_limit: int = 0) -> None:
        self.clock = clock
        self.loop = Loop(clock)
        self.children = children
        self.stopping = False
        self._on_give_up = on_give_up
        self._stall_limit = stall_limit
        self._on_stop: Callable[[bool], None] = lambda at_once: None
        self._at_once = False
        self._to_stop: list[Child] = []
        self._errands: dict[subprocess.Popen[bytes], Callable[[int], None]] = {}

    def run(self, starts: Sequence[Child], on_stop: Callable[[bool], None] = lambda at_once: None) -> None:
        """Start the children in this order and look after them until all are stopped.

        TERM stops them in order: running tasks get time to finish. INT and HUP stop them at once.

        Args:
            on_stop: called when stopping begins; its argument says whether running tasks are stopped at once.
        """
        self._on_stop = on_stop
        if HAVE_LINUX:
            from tradewind.platform import linux  # lazy door: Linux only

            linux.become_subreaper()
            linux.set_name("tw-supervisor")
        self.loop.on_signal(signal.SIGCHLD, self._look)
        self.loop.on_signal(signal.SIGTERM, self.stop)
        self.loop.on_signal(signal.SIGINT, self.stop_at_once)
        self.loop.on_signal(signal.SIGHUP, self.stop_at_once)
        for child in starts:
            self.start(child)
        if self._stall_limit:
            self.loop.call_later(self._stall_limit // LOOKS_PER_LIMIT, self._look_for_stalls)
        self.loop.run()
        for pending in self._errands:
            os.killpg(pending.pid, signal.SIGKILL)
            pending.wait()
        self._errands.clear()
        self._sweep()

    def stop_at_once(self) -> None:
        """As `stop`, but running tasks get no time to finish."""
        if self.stopping:
            self.stop()
        else:
            self._at_once = True
            self.stop()

    def stop(self) -> None:
        """Stop the children one after the other. A second call stops running tasks at once; one after that kills what is left."""
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
        for pending in self._errands:
            os.killpg(pending.pid, signal.SIGTERM)
        self._to_stop = list(self.children)
        self._stop_next()

    def heard_of(self, child: Child) -> None:
        """Its loop turns."""
        if child.watchdog is not None:
            child.watchdog.heard(self.clock.monotonic())
            child.continued = False

    def _look_for_stalls(self) -> None:
        """End what stands still; it is started again like everything that ends."""
        now = self.clock.monotonic()
        for child in self.children:
            if child.process is not None and child.watchdog is not None and child.watchdog.is_stuck(now) and not self.stopping:
                self._is_stuck(child, child.process, child.watchdog.silent_for(now) / SECOND)
        self.loop.call_later(self._stall_limit // LOOKS_PER_LIMIT, self._look_for_stalls)

    def _is_stuck(self, child: Child, process: subprocess.Popen[bytes], seconds: float) -> None:
        if child.name == "host" and not child.continued and _is_stopped(process.pid):
            child.continued = True  # its end would be the end of its tasks
            log.warning("a process stands still, because somebody stopped it; it is told to go on", name=child.name)
            process.send_signal(signal.SIGCONT)
            return
        log.error("a process stands still; it is ended and started again", name=child.name, seconds=round(seconds))
        process.send_signal(signal.SIGQUIT)  # it writes into its log what its threads are doing, if it can
        self.loop.call_later(FRAMES_WITHIN, process.kill)

    def send_background_request(
        self, command: Sequence[str], environment: Mapping[str, str], output: int, on_end: Callable[[int], None]
    ) -> None:
        """Run a program beside the children, once; `on_end` gets its exit code. It is ended when the supervisor stops.

        Raises:
            OSError: it cannot be started.
        """
        pending = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        self._errands[pending] = on_end

    def _stop_next(self) -> None:
        while self._to_stop:
            child = self._to_stop[0]
            if child.process is not None and child.process.poll() is None:
                self._signal_next()
                self.loop.call_later(STOP_EACH if self._at_once else child.stop_patience, child.process.kill)
                return
            self._to_stop.pop(0)
        self.loop.stop()

    def _signal_next(self) -> None:
        """Tell the child that is to stop next: TERM, or INT if it is to stop at once."""
        process = self._to_stop[0].process if self._to_stop else None
        if process is not None:
            process.send_signal(signal.SIGINT if self._at_once else signal.SIGTERM)

    def start(self, child: Child) -> None:
        """Start one of the children; it is looked after from then on."""
        if self.stopping or child.given_up:
            return
        child.started_at = self.clock.monotonic()
        child.watchdog, child.continued = Watchdog(self._stall_limit, child.started_at), False
        fp("supervisor.before_start")
        try:
            child.process = subprocess.Popen(
                [sys.executable, "-m", "tradewind.cli.process", child.name, str(os.getpid())],
                env=dict(child.environment),
                stdin=subprocess.DEVNULL,
                stdout=child.output,
                stderr=child.output,
                pass_fds=child.inherits,
                start_new_session=True,
            )
        except OSError as error:
            log.error("a process could not be started; it is tried again", name=child.name, error=error.strerror)
            self._again(child)

    def _look(self) -> None:
        """SIGCHLD: who ended?"""
        for child in self.children:
            process = child.process
            if process is not None and process.poll() is not None:
                child.process = None
                self._ended(child, process.returncode)
        for pending in list(self._errands):
            if pending.poll() is not None:
                self._errands.pop(pending)(pending.returncode)
        self._sweep()

    def _ended(self, child: Child, code: int) -> None:
        if self.stopping:
            if self._to_stop and self._to_stop[0] is child:
                self._stop_next()
            return
        if code == CANNOT_START:
            child.given_up = True
            self._on_give_up(child)
            return
        log.warning("a process ended and is started again", name=child.name, how=how_it_ended(code))
        self._again(child)

    def _again(self, child: Child) -> None:
        if self.clock.monotonic() - child.started_at > STEADY:
            child.deaths = 0
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2**child.deaths) if child.deaths else 0
        child.deaths += 1
        self.loop.call_later(delay, lambda: self.start(child))

    def _sweep(self) -> None:
        if HAVE_LINUX:
            from tradewind.platform import linux  # lazy door: Linux only

            ours = {child.process.pid for child in self.children if child.process is not None}
            ours.update(pending.pid for pending in self._errands)
            strays = linux.reap_and_kill_orphans(ours)
            if strays:
                log.info("stray processes of a dead worker were killed", count=len(strays))


def _is_stopped(pid: int) -> bool:
    """Was it stopped by a signal (SIGSTOP)?"""
    if not HAVE_LINUX:
        return False
    from tradewind.platform import linux  # lazy door: Linux only

    return linux.is_stopped(pid)
