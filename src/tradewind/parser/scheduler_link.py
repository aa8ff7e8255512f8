"""The parser's line to the scheduler, on the parser's own loop: commands out, results in, across the scheduler's restarts.

A command that has no answer when the line breaks is sent again under its op-id over the next line. A question of a DAG file waits
for no other line: its child has little time.
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
SILENCE = 10 * SECOND
"""A scheduler that is started beside us needs a moment. Being without one for longer is said, once."""

NO_ATTEMPT = (0, 0, 0)
"""Who asks for variables and connections where no task does."""

Done = Callable[[CommandResult], None]
Answered = Callable[[RunnerAnswer | None], None]
OnAsk = Callable[[TimetableQuestion, Callable[[TimetableAnswer], None]], None]


class SchedulerLink:
    """One line, kept up.

    Args:
        on_up: called each time the scheduler has welcomed us.
        on_ask: has a custom timetable asked and calls back with what it told.
        on_changed: called with `variable bucket`, `connection db` when it was changed or deleted.
    """

    def __init__(
        self,
        loop: Loop,
        path: str,
        name: str,
        on_up: Callable[[], None] = lambda: None,
        on_ask: OnAsk | None = None,
        on_changed: Callable[[str], None] = lambda what: None,
    ) -> None:
        self.loop = loop
        self.path = path
        self.name = name
        self.on_up = on_up
        self.on_ask = on_ask
        self.on_changed = on_changed
        self._waits = Backoff(FIRST_RETRY, LONGEST_RETRY, random.random)
        self._alone_since: int | None = None
        self._complained = False
        self._connection: Connection | None = None
        self._up = False
        self._closed = False
        self._prefix = os.urandom(8).hex()
        self._number = 0
        self._open: dict[str, tuple[bytes, Done]] = {}
        self._questions: dict[int, Answered] = {}

    def start(self) -> None:
        """Connect, now or as soon as there is a scheduler."""
        if self._closed or self._connection is not None:
            return
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(self.path)
        except OSError as error:
            link.close()
            self._retry(error.strerror or str(error))
            return
        self._connection = Connection(link, self.loop, self._heard, self._broke)
        asks = self.on_ask is not None
        job_type = "DagProcessorJob" if asks else ""
        hello = ClientHello(self.name, os.getpid(), answers_timetables=asks, job_type=job_type, life=self._prefix)
        self._connection.send(encode(hello))

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.send(encode(Goodbye()))
            self._connection.close()

    def call(self, command: Command[Any], done: Done) -> None:
        """Have the scheduler carry out a command; `done` gets its answer, whenever that comes."""
        self._number += 1
        request = request_for(f"{self._prefix}-{self._number}", command, self.name)
        document = encode(request)
        self._open[request.op] = (document, done)
        if self._up and self._connection is not None:
            self._connection.send(document)

    def look_up(self, question: Lookup, answered: Answered) -> None:
        """Ask for a variable or a connection; `answered` gets None when there is no line, or it breaks before the answer."""
        if not self._up or self._connection is None:
            answered(None)
            return
        self._number += 1
        self._questions[self._number] = answered
        self._connection.send(encode(FromRunner(NO_ATTEMPT, msgspec.structs.replace(question, op=self._number))))

    def _heard(self, connection: Connection, document: bytes) -> None:
        try:
            message = decode_from_scheduler(document)
        except msgspec.DecodeError as error:
            log.error("the scheduler said something that cannot be understood", why=str(error))
            connection.close()
            return
        if isinstance(message, CommandResult):
            _, done = self._open.pop(message.op, (b"", None))
            if done is not None:
                done(message)
        elif isinstance(message, Welcome):
            self._welcomed(connection, message)
        elif isinstance(message, ToRunner):
            answered = self._questions.pop(message.body.op, None)
            if answered is not None:
                answered(message.body)
        elif isinstance(message, Notice) and message.kind == LOOKUP_CHANGED:
            self.on_changed(message.text)
        elif isinstance(message, TimetableQuestion) and self.on_ask is not None:
            # told over the line of that moment: over a new one the scheduler asks again
            self.on_ask(message, lambda told: connection.send(encode(told)) if connection is self._connection else None)

    def _welcomed(self, connection: Connection, welcome: Welcome) -> None:
        if welcome.refused is not None:
            log.error("the scheduler refuses us", why=welcome.refused)
            connection.close()
            return
        if self._complained:
            log.info("the scheduler is there again")
        self._alone_since, self._complained = None, False
        self._waits.succeeded()
        self._up = True
        for document, _ in list(self._open.values()):
            connection.send(document)
        self.on_up()

    def _broke(self, connection: Connection) -> None:
        self._connection = None
        self._up = False
        questions, self._questions = self._questions, {}
        for answered in questions.values():
            answered(None)
        self._retry("it hung up")

    def _retry(self, why: str) -> None:
        if self._closed:
            return
        wait, now = self._waits.failed(), self.loop.clock.monotonic()
        if self._alone_since is None:
            self._alone_since = now
        if not self._complained and now - self._alone_since >= SILENCE:
            self._complained = True
            log.warning("there is no scheduler; trying on", socket=self.path, why=why)
        self.loop.call_later(wait, self.start)
