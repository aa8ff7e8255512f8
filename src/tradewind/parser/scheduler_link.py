"""The parser's connection to the scheduler: sends commands and receives results, across restarts of the scheduler.

A command without an answer at the end of a connection is sent again, with the same op-id, over the next connection. A lookup of a
DAG file fails at the end of the connection, because its child has little time.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable
from typing import Any

import msgspec

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform.backoff import Backoff
from tradewind.platform.loop import Loop
from tradewind.wire.commands import Command, request_for
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    LOOKUP_CHANGED,
    READ_FILE,
    AssetsChanged,
    ClientHello,
    CommandResult,
    FromRunner,
    Goodbye,
    Lookup,
    Notice,
    RunnerAnswer,
    TimetableAnswer,
    TimetableQuestion,
    ToRunner,
    Welcome,
    decode_from_scheduler,
    encode,
)

log = Log("link")

FIRST_RETRY, LONGEST_RETRY = SECOND // 20, SECOND
WARN_AFTER = 10 * SECOND
"""Time without a scheduler before a warning is logged, once. A scheduler that is started at the same time needs a moment."""

NO_ATTEMPT = (0, 0, 0)
"""The attempt in requests for variables and connections that do not come from a task."""

Done = Callable[[CommandResult], None]
Answered = Callable[[RunnerAnswer | None], None]
OnAsk = Callable[[TimetableQuestion, Callable[[TimetableAnswer], None]], None]


class SchedulerLink:
    """One connection, which is established again after it ends.

    Args:
        on_up: called each time the scheduler has accepted the connection.
        on_ask: called with a request to a custom timetable; calls back with the answer.
        on_changed: called with `variable bucket` or `connection db` when it was changed or deleted.
        on_read_file: called with the name of a DAG file that a person wants to be read again.
        on_assets_changed: called with assets and aliases that are new.
    """

    def __init__(
        self,
        loop: Loop,
        path: str,
        name: str,
        on_up: Callable[[], None] = lambda: None,
        on_ask: OnAsk | None = None,
        on_changed: Callable[[str], None] = lambda what: None,
        on_read_file: Callable[[str], None] = lambda file: None,
        on_assets_changed: Callable[[AssetsChanged], None] = lambda message: None,
    ) -> None:
        self.loop = loop
        self.path = path
        self.name = name
        self.on_up = on_up
        self.on_ask = on_ask
        self.on_changed = on_changed
        self.on_read_file = on_read_file
        self.on_assets_changed = on_assets_changed
        self._waits = Backoff(FIRST_RETRY, LONGEST_RETRY, random.random)
        self._disconnected_since: int | None = None
        self._warned = False
        self._connection: Connection | None = None
        self._up = False
        self._closed = False
        self._prefix = os.urandom(8).hex()
        self._number = 0
        self._open: dict[str, tuple[bytes, Done]] = {}
        self._lookups: dict[int, Answered] = {}

    def start(self) -> None:
        """Connect, or try again until there is a scheduler."""
        if self._closed or self._connection is not None:
            return
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(self.path)
        except OSError as error:
            link.close()
            self._retry(error.strerror or str(error))
            return
        self._connection = Connection(link, self.loop, self._on_message, self._on_disconnect)
        answers_timetables = self.on_ask is not None
        job_type = "DagProcessorJob" if answers_timetables else ""
        hello = ClientHello(
            self.name, os.getpid(), answers_timetables=answers_timetables, job_type=job_type, service_id=self._prefix
        )
        self._connection.send(encode(hello))

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.send(encode(Goodbye()))
            self._connection.close()

    def call(self, command: Command[Any], done: Done) -> None:
        """Send a command to the scheduler. `done` is called with the answer, however long that takes."""
        self._number += 1
        request = request_for(f"{self._prefix}-{self._number}", command, self.name)
        document = encode(request)
        self._open[request.op] = (document, done)
        if self._up and self._connection is not None:
            self._connection.send(document)

    def look_up(self, request: Lookup, answered: Answered) -> None:
        """Request a variable or a connection. `answered` gets None if there is no connection or it ends before the answer."""
        if not self._up or self._connection is None:
            answered(None)
            return
        self._number += 1
        self._lookups[self._number] = answered
        self._connection.send(encode(FromRunner(NO_ATTEMPT, msgspec.structs.replace(request, op=self._number))))

    def _on_message(self, connection: Connection, document: bytes) -> None:
        try:
            message = decode_from_scheduler(document)
        except msgspec.DecodeError as error:
            log.error("the scheduler sent a message that cannot be decoded", why=str(error))
            connection.close()
            return
        if isinstance(message, CommandResult):
            _, done = self._open.pop(message.op, (b"", None))
            if done is not None:
                done(message)
        elif isinstance(message, Welcome):
            self._on_welcome(connection, message)
        elif isinstance(message, ToRunner):
            answered = self._lookups.pop(message.body.op, None)
            if answered is not None:
                answered(message.body)
        elif isinstance(message, Notice) and message.kind == LOOKUP_CHANGED:
            self.on_changed(message.text)
        elif isinstance(message, Notice) and message.kind == READ_FILE:
            self.on_read_file(message.text)
        elif isinstance(message, AssetsChanged):
            self.on_assets_changed(message)
        elif isinstance(message, TimetableQuestion) and self.on_ask is not None:
            # answered only over the same connection: over a new one the scheduler sends the request again
            self.on_ask(message, lambda answer: connection.send(encode(answer)) if connection is self._connection else None)

    def _on_welcome(self, connection: Connection, welcome: Welcome) -> None:
        if welcome.refused is not None:
            log.error("the scheduler rejected the connection", why=welcome.refused)
            connection.close()
            return
        if self._warned:
            log.info("connected to the scheduler again")
        self._disconnected_since, self._warned = None, False
        self._waits.succeeded()
        self._up = True
        for document, _ in list(self._open.values()):
            connection.send(document)
        self.on_up()

    def _on_disconnect(self, connection: Connection) -> None:
        self._connection = None
        self._up = False
        lookups, self._lookups = self._lookups, {}
        for answered in lookups.values():
            answered(None)
        self._retry("the connection was closed")

    def _retry(self, why: str) -> None:
        if self._closed:
            return
        wait, now = self._waits.failed(), self.loop.clock.monotonic()
        if self._disconnected_since is None:
            self._disconnected_since = now
        if not self._warned and now - self._disconnected_since >= WARN_AFTER:
            self._warned = True
            log.warning("no connection to the scheduler; trying again", socket=self.path, why=why)
        self.loop.call_later(wait, self.start)
