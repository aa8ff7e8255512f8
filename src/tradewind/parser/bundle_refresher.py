"""Keeps one versioned bundle up to date: a timer, a fetch in a process of its own, and the service that reads the new version.

    timer ─▶ connection from the scheduler ─▶ fetch child ─▶ new version ─▶ ParserService.use_version

A fetch that fails or hangs concerns only its own bundle: the last version stays in use, and the fetch is tried again after a
growing delay. The version that was fetched last is used at once after a start, without the network.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

from tradewind.bundles.fetch_child import FetchAnswer, FetchRequest, write_state
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
    """See the module.

    Args:
        look_up: requests a connection from the scheduler.
        interval: microseconds between two fetches.
        deadline: microseconds that one fetch may take.
    """

    def __init__(
        self,
        bundle: VersionedBundle,
        service: ParserService,
        loop: Loop,
        look_up: Callable[[Lookup, Answered], None],
        interval: int,
        deadline: int,
    ) -> None:
        self._bundle = bundle
        self._service = service
        self._loop = loop
        self._look_up = look_up
        self._interval = bundle.spec.refresh_interval or interval
        self._deadline = deadline
        self._waits = Backoff(min(FIRST_RETRY, self._interval), max(self._interval, FIRST_RETRY), random.random)
        self._fetch: Fetch | None = None
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
        if self._fetch is not None:
            self._fetch.stop()

    @property
    def pid(self) -> int:
        """The process of the running fetch; 0: there is none."""
        return self._fetch.pid if self._fetch is not None else 0

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
        elif not answer.found:
            why = f"there is no connection {self._bundle.spec.conn_id!r}; add it: tradewind connections add"
            self._done(FetchAnswer(problem=why))
        else:
            self._begin(dict(answer.value))

    def _begin(self, connection: dict[str, object]) -> None:
        request = FetchRequest(
            self._bundle.folder, self._bundle.spec, connection=connection, used=list(self._service.used_versions)
        )
        try:
            self._fetch = Fetch(self._loop, request, self._deadline, self._done)
        except OSError as error:
            self._done(FetchAnswer(problem=f"its process cannot be started: {error.strerror}"))

    def _refresh_in(self, wait: int) -> None:
        self._timer = self._loop.call_later(wait, self.refresh)

    def _done(self, answer: FetchAnswer) -> None:
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
            for warning in answer.warnings:
                if warning not in self._warnings:
                    log.warning("a bundle has a warning", bundle=name, warning=warning)
            self._warnings = answer.warnings
            self._service.use_version(answer.version, self._bundle.files(answer.version))
        self._problem = answer.problem
