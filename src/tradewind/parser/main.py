"""The process of the parser."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.parser.children import ParseChildren
from tradewind.parser.config import ParserConfig
from tradewind.parser.scheduler_link import SchedulerLink
from tradewind.parser.service import ParserService
from tradewind.platform import linux
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop

log = Log("parser")

PASS_CHECK = SECOND // 20
"""Time between two checks whether a pass over the DAG files is complete."""


class Passes:
    """Reads every DAG file `wanted` times, changed or not, and then calls `done` once.

    A pass is complete when every file was read in it and the scheduler has committed the results.
    """

    def __init__(self, service: ParserService, loop: Loop, wanted: int, done: Callable[[], None]) -> None:
        self._service = service
        self._loop = loop
        self._wanted = wanted
        self._done = done
        self._number = 1

    def check(self) -> None:
        """Continue the current pass or start the next one. Schedules the next check unless all passes are complete."""
        while self._service.settled() and not self._service.read_again_below(self._number):
            log.info("all DAG files were read", reading=self._number, of=self._wanted)
            if self._number == self._wanted:
                self._done()
                return
            self._number += 1
        self._loop.call_later(PASS_CHECK, self.check)


class ParserProcess:
    """All objects of the parser process.

    Args:
        owns_process: this process has no other purpose, so its orphaned descendants may be killed.
    """

    def __init__(self, config: ParserConfig, loop: Loop, clock: Clock, *, owns_process: bool) -> None:
        self.loop = loop
        self.children = ParseChildren(config, loop, clock, _kill_orphans if owns_process else None)
        self.link = SchedulerLink(loop, config.scheduler_socket, "parser", on_ask=self.children.ask)
        self.service = ParserService(config, clock, loop, self.link.call, self.children)
        self.link.on_up = self.service.on_scheduler_connected
        self.link.on_changed = self.service.lookup_changed
        self.children.look_up = self.link.look_up

    def start(self) -> None:
        self.children.start()
        self.link.start()

    def close(self) -> None:
        """Stop. Results that were not sent yet are lost, and their files are read again at the next start."""
        self.service.stop()
        self.link.close()
        self.children.close()


def main(config: ParserConfig, loop: Loop, passes: int = 0, passes_done: Callable[[], None] = lambda: None) -> None:
    """Parse until SIGTERM or SIGINT. Called by the composition root, in a process for this purpose alone.

    Args:
        passes: read every DAG file at least this many times, changed or not, then call `passes_done`; 0: no such limit. The
            parser continues to watch the files after that.
    """
    linux.set_name("tw-parser")
    linux.become_subreaper()
    clock = loop.clock
    loop.on_signal(signal.SIGTERM, loop.stop)
    loop.on_signal(signal.SIGINT, loop.stop)
    process = ParserProcess(config, loop, clock, owns_process=True)
    log.info("watching DAG files", folder=config.folder, seconds_between_scans=config.rescan_interval / SECOND)
    process.start()
    if passes:
        Passes(process.service, loop, passes, passes_done).check()
    try:
        loop.run()
    finally:
        process.close()
        loop.close()


def _kill_orphans() -> None:
    """Called when the zygote has ended: every child of this process is then an orphan that a DAG file left behind."""
    killed = linux.reap_and_kill_orphans(frozenset())
    if killed:
        log.info("killed processes that DAG files had left behind", count=len(killed))
