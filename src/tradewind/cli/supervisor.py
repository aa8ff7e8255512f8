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

from tradewind.model.moments import SECOND
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.processes import HAVE_LINUX
from tradewind.service.clock import Clock
from tradewind.service.loop import Loop

log = Log("supervisor")

FIRST_DELAY = SECOND // 20
LONGEST_DELAY = 5 * SECOND
STEADY = 10 * SECOND
"""A child that has lived this long begins again with the first delay."""
STOP_EACH = 20 * SECOND
"""How long a child may take to stop before it is killed."""
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
    started_at: int = 0
    deaths: int = 0
    given_up: bool = False


class Supervisor:
    """Keeps children alive until `stop`.

    Args:
        children: in the order in which they are stopped.
        on_give_up: called when a child says that starting it again would not help.
    """

    def __init__(self, clock: Clock, children: list[Child], on_give_up: Callable[[Child], None]) -> None:
        self.clock = clock
        self.loop = Loop(clock)
        self.children = children
        self.stopping = False
        self._on_give_up = on_give_up
        self._on_stop: Callable[[], None] = lambda: None
        self._to_stop: list[Child] = []
        self._errands: dict[subprocess.Popen[bytes], Callable[[int], None]] = {}

    def run(self, starts: Sequence[Child], on_stop: Callable[[], None] = lambda: None) -> None:
        """Start the children in this order and look after them until all are stopped.

        Args:
            on_stop: called when stopping begins.
        """
        self._on_stop = on_stop
        if HAVE_LINUX:
            from tradewind.processes import linux  # lazy door: Linux only

            linux.become_subreaper()
            linux.set_name("tw-supervisor")
        self.loop.on_signal(signal.SIGCHLD, self._look)
        self.loop.on_signal(signal.SIGTERM, self.stop)
        self.loop.on_signal(signal.SIGINT, self.stop)
        self.loop.on_signal(signal.SIGHUP, self.stop)
        for child in starts:
            self._start(child)
        self.loop.run()
        for errand in self._errands:
            os.killpg(errand.pid, signal.SIGKILL)
            errand.wait()
        self._errands.clear()
        self._sweep()

    def stop(self) -> None:
        """Stop the children one after the other; a second call kills what is left."""
        if self.stopping:
            for child in self.children:
                if child.process is not None:
                    child.process.kill()
            return
        self.stopping = True
        self._on_stop()
        for errand in self._errands:
            os.killpg(errand.pid, signal.SIGTERM)
        self._to_stop = list(self.children)
        self._stop_next()

    def send_on_errand(
        self, command: Sequence[str], environment: Mapping[str, str], output: int, on_end: Callable[[int], None]
    ) -> None:
        """Run a program beside the children, once; `on_end` gets its exit code. It is ended when the supervisor stops.

        Raises:
            OSError: it cannot be started.
        """
        errand = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        self._errands[errand] = on_end

    def _stop_next(self) -> None:
        while self._to_stop:
            child = self._to_stop[0]
            if child.process is not None and child.process.poll() is None:
                child.process.terminate()
                self.loop.call_later(STOP_EACH, child.process.kill)
                return
            self._to_stop.pop(0)
        self.loop.stop()

    def _start(self, child: Child) -> None:
        if self.stopping or child.given_up:
            return
        child.started_at = self.clock.monotonic()
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
        for errand in list(self._errands):
            if errand.poll() is not None:
                self._errands.pop(errand)(errand.returncode)
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
        self.loop.call_later(delay, lambda: self._start(child))

    def _sweep(self) -> None:
        if HAVE_LINUX:
            from tradewind.processes import linux  # lazy door: Linux only

            ours = {child.process.pid for child in self.children if child.process is not None}
            ours.update(errand.pid for errand in self._errands)
            strays = linux.reap_and_kill_orphans(ours)
            if strays:
                log.info("stray processes of a dead worker were killed", count=len(strays))


def how_it_ended(code: int) -> str:
    """A sentence for an exit code as subprocess gives it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (out of memory?)" if -code == signal.SIGKILL else ""
    return f"killed by {name}{hint}"
