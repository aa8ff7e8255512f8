"""The process of the parser."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.parser.bundle_refresher import BundleRefresher
from tradewind.parser.children import ParseChildren
from tradewind.parser.config import ParserConfig
from tradewind.parser.scheduler_link import SchedulerLink
from tradewind.parser.service import ParserService
from tradewind.platform import linux
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop

if TYPE_CHECKING:
    from tradewind.metrics.meter import Meter  # loaded only if metrics are on

log = Log("parser")

PASS_CHECK = SECOND // 20
"""Time between two checks whether a pass over the DAG files is complete."""


class Passes:
    """Reads every DAG file `wanted` times, changed or not, and then calls `done` once.

    A pass is complete when every file was read in it and the scheduler has committed the results.
    """

    def __init__(self, parser: ParserProcess, loop: Loop, wanted: int, done: Callable[[], None]) -> None:
        self._parser = parser
        self._loop = loop
        self._wanted = wanted
        self._done = done
        self._number = 1

    def check(self) -> None:
        """Continue the current pass or start the next one. Schedules the next check unless all passes are complete."""
        while self._parser.settled() and not self._parser.read_again_below(self._number):
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
        self.children = ParseChildren(config, loop, clock, self._kill_orphans if owns_process else None)
        self.link = SchedulerLink(loop, config.scheduler_socket, "parser", on_ask=self.children.ask)
        self.services = [ParserService(one, clock, loop, self.link.call, self.children) for one in _one_each(config)]
        self.refreshers = [
            BundleRefresher(
                config.versioned[service.config.bundle],
                service,
                loop,
                self.link.look_up,
                config.refresh_interval,
                config.fetch_timeout,
                config.bundle_bytes_max,
            )
            for service in self.services
            if service.config.version is not None
        ]
        self.service = self.services[0]
        self.link.on_up = lambda: self._all(ParserService.on_scheduler_connected)
        self.link.on_changed = lambda what: self._all(lambda service: service.lookup_changed(what))
        self.link.on_read_file = lambda file: self._all(lambda service: service.read_file(file))
        self.link.on_assets_changed = lambda message: self._all(lambda service: service.tell_changed_assets(message))
        self.children.look_up = self.link.look_up

    def start(self) -> None:
        self.children.start()
        self.link.start()
        for refresher in self.refreshers:
            refresher.start()

    def _all(self, call: Callable[[ParserService], None]) -> None:
        for service in self.services:
            call(service)

    def settled(self) -> bool:
        """True if every file of every bundle was read, and the scheduler has committed the results."""
        return all(service.settled() for service in self.services)

    def read_again_below(self, readings: int) -> bool:
        """Read each DAG file again that has fewer finished readings than this. True if there are any."""
        below = [service.read_again_below(readings) for service in self.services]
        return any(below)

    def broken_files(self) -> int:
        """The number of files with an import error."""
        return sum(not file.good for service in self.services for file in service.files.values())

    def _kill_orphans(self) -> None:
        """Called when the zygote has ended. Every child of this process, except the fetches, was left behind by a DAG file."""
        killed = linux.reap_and_kill_orphans(frozenset().union(*(refresher.pids for refresher in self.refreshers)))
        if killed:
            log.info("killed processes that DAG files had left behind", count=len(killed))

    def close(self) -> None:
        """Stop. Results that were not sent yet are lost, and their files are read again at the next start."""
        for refresher in self.refreshers:
            refresher.close()
        self._all(ParserService.stop)
        self.link.close()
        self.children.close()


def main(
    config: ParserConfig,
    loop: Loop,
    passes: int = 0,
    passes_done: Callable[[], None] = lambda: None,
    meter: Meter | None = None,
    metrics_interval: int = 5 * SECOND,
) -> None:
    """Parse until SIGTERM or SIGINT. Called by the composition root, in a process that does nothing else.

    Args:
        passes: read every DAG file at least this many times, changed or not, then call `passes_done`; 0: no such limit. The
            parser continues to watch the files after that.
        meter: sends metrics; None: metrics are off.
        metrics_interval: between two heartbeats in the metrics, microseconds.
    """
    linux.set_name("tw-parser")
    linux.become_subreaper()
    clock = loop.clock
    loop.on_signal(signal.SIGTERM, loop.stop)
    loop.on_signal(signal.SIGINT, loop.stop)
    process = ParserProcess(config, loop, clock, owns_process=True)
    log.info("watching DAG files", folder=config.folder, seconds_between_scans=config.rescan_interval / SECOND)
    if meter is not None:
        from tradewind.parser.metrics import ParserMetrics  # lazy import: only where metrics are on

        metrics = ParserMetrics(meter, loop, metrics_interval, process.children.busy, process.broken_files)
        process.children.metrics = metrics
        metrics.beat()
    process.start()
    if passes:
        Passes(process, loop, passes, passes_done).check()
    try:
        loop.run()
    finally:
        process.close()
        loop.close()


def _one_each(config: ParserConfig) -> Iterator[ParserConfig]:
    """The configuration of the service of each bundle. The first one reports the plugins."""
    if not config.all_bundles:
        yield config
    for number, (name, folder) in enumerate(config.all_bundles.items()):
        version = "" if name in config.versioned else None
        yield msgspec.structs.replace(
            config,
            bundle=name,
            folder="" if version == "" else folder,
            version=version,
            reports_plugins=number == 0,
        )
