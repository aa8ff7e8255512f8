"""Keeps one versioned bundle up to date: a timer, a fetch in a process of its own, and the service that reads the new version.

    timer ─▶ connection from the scheduler ─▶ fetch child ─▶ new version ─▶ ParserService.use_version

A fetch that fails or hangs affects only its own bundle: the last version stays in use, and the fetch is tried again after a
growing delay. The version that was fetched last is used at once after a start, without the network.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest, write_state
from tradewind.bundles.fetches import Fetch
from tradewind.bundles.specs import VersionedBundle
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.parser.scheduler_link import Answered
from tradewind.parser.service import ParserService
from tradewind.platform.backoff import Backoff
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.messages import GetConnection, Lookup, RunnerAnswer, Value

log = Log("bundles")

FIRST_RETRY = 5 * SECOND
NO_ANSWER_RETRY = SECOND


class BundleRefresher:
    """Keeps one bundle up to date; see the module's docstring.

    Args:
        look_up: requests a connection from the scheduler.
        interval: microseconds between two fetches.
        deadline: microseconds that one fetch may take.
        bytes_max: disk space that the bundle may take; None: no limit.
    """

    def __init__(
        self,
        bundle: VersionedBundle,
        service: ParserService,
        loop: Loop,
        look_up: Callable[[Lookup, Answered], None],
        interval: int,
        deadline: int,
        bytes_max: int | None = None,
    ) -> None:
        self._bundle = bundle
        self._service = service
        self._loop = loop
        self._look_up = look_up
        self._interval = bundle.spec.refresh_interval or interval
        self._deadline = deadline
        self._bytes_max = bytes_max
        self._waits = Backoff(min(FIRST_RETRY, self._interval), max(self._interval, FIRST_RETRY), random.random)
        self._fetch: Fetch | None = None
        self._cleaning: Fetch | None = None
        self._clean_due = True
        """Old versions are to be deleted: after the start, and after each new version."""
        self._asking = False
        """The scheduler was asked which versions must stay, and has not answered yet."""
        self._timer: TimerHandle | None = None
        self._problem = ""
        self._warnings: list[str] = []
        self._closed = False

    def start(self) -> None:
        """Use the version that was fetched last, and fetch."""
        version = self._bundle.newest_version()
        if version and os.path.isdir(self._bundle.newest):
            self._service.use_version(version, self._bundle.files(version))
        self.refresh()

    def close(self) -> None:
        """End a running fetch."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for running in (self._fetch, self._cleaning):
            if running is not None:
                running.stop()

    @property
    def pids(self) -> set[int]:
        """The processes that fetch, or delete old versions."""
        return {running.pid for running in (self._fetch, self._cleaning) if running is not None}

    def refresh(self) -> None:
        """Fetch now, unless a fetch is running."""
        if self._closed or self._fetch is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        conn_id = self._bundle.spec.conn_id
        if conn_id:
            self._look_up(GetConnection(op=0, conn_id=conn_id), self._on_connection)
        else:
            self._begin({})

    def _on_connection(self, answer: RunnerAnswer | None) -> None:
        if self._closed or self._fetch is not None:
            return
        if not isinstance(answer, Value):  # the scheduler is not reachable now
            self._refresh_in(NO_ANSWER_RETRY)
        elif not answer.found and not self._bundle.spec.needs_connection:
            self._begin({})
        elif not answer.found:
            why = f"there is no connection {self._bundle.spec.conn_id!r}; add it: tradewind connections add"
            self._on_fetched(FetchAnswer(problem=why))
        else:
            self._begin(dict(answer.value))

    def _begin(self, connection: dict[str, object]) -> None:
        request = FetchRequest(self._bundle.folder, self._bundle.spec, connection=connection)
        try:
            self._fetch = Fetch(self._loop, request, self._deadline, self._on_fetched)
        except OSError as error:
            self._on_fetched(FetchAnswer(problem=f"its process cannot be started: {error.strerror}"))

    def _refresh_in(self, wait: int) -> None:
        self._timer = self._loop.call_later(wait, self.refresh)

    def _on_fetched(self, answer: FetchAnswer) -> None:
        self._fetch = None
        name = self._bundle.spec.name
        if answer.problem:
            self._refresh_in(self._waits.failed())
            if answer.problem != self._problem:
                log.error("a bundle cannot be fetched; its last version stays in use", bundle=name, why=answer.problem)
            try:
                write_state(self._bundle.folder, answer)
            except OSError as error:
                log.error("the state of a bundle cannot be written", bundle=name, why=error.strerror)
        else:
            self._waits.succeeded()
            self._refresh_in(self._interval)
            if self._problem:
                log.info("a bundle can be fetched again", bundle=name)
            if answer.version != self._service.config.version:
                log.info("a bundle has a new version", bundle=name, version=answer.version)
                self._clean_due = True
            for warning in answer.warnings:
                if warning not in self._warnings:
                    log.warning("a bundle has a warning", bundle=name, warning=warning)
            self._warnings = answer.warnings
            self._service.use_version(answer.version, self._bundle.files(answer.version))
            if self._clean_due and not self._asking:
                self._asking = True
                self._service.ask_used_versions(answer.version, self._clean)
        self._problem = answer.problem

    def _clean(self, used: list[str] | None) -> None:
        """Delete old versions in a separate process. `used`: the versions in use now; a clear can start old runs again."""
        self._asking, version = False, self._service.config.version
        if self._closed or self._cleaning is not None or not version or used is None:
            return
        self._clean_due = False
        request = FetchRequest(self._bundle.folder, self._bundle.spec, version, used=used, bytes_max=self._bytes_max)
        try:
            self._cleaning = Fetch(self._loop, request, self._deadline, self._on_cleaned)
        except OSError as error:
            self._on_cleaned(FetchAnswer(problem=f"its process cannot be started: {error.strerror}"))

    def _on_cleaned(self, answer: FetchAnswer) -> None:
        self._cleaning = None
        if answer.problem:
            self._clean_due = True  # after the next fetch
            log.warning("old versions of a bundle cannot be deleted", bundle=self._bundle.spec.name, why=answer.problem)
        for warning in answer.warnings:
            if warning not in self._warnings:
                log.warning("a bundle has a warning", bundle=self._bundle.spec.name, warning=warning)
