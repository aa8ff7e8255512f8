"""The parser's line to the scheduler, on the parser's own loop: commands out, results in, across the scheduler's restarts.

A command that has no answer when the line breaks is sent again under its op-id over the next line.
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
from tradewind.service.backoff import Backoff
from tradewind.service.loop import Loop
from tradewind.wire.connection import Connection
from tradewind.wire.messages import ClientHello, Command, CommandResult, Welcome, decode_from_scheduler, encode

log = Log("link")

FIRST_RETRY, LONGEST_RETRY = SECOND // 20, SECOND
SILENT_FAILURES = 3
"""A scheduler that is started beside us needs a moment; later failures are said once."""

Done = Callable[[CommandResult], None]


class SchedulerLink:
    """One line, kept up.

    Args:
        on_up: called each time the scheduler has welcomed us.
    """

    def __init__(self, loop: Loop, path: str, name: str, on_up: Callable[[], None] = lambda: None) -> None:
        self.loop = loop
        self.path = path
        self.name = name
        self.on_up = on_up
        self._waits = Backoff(FIRST_RETRY, LONGEST_RETRY, random.random)
        self._connection: Connection | None = None
        self._up = False
        self._closed = False
        self._prefix = os.urandom(8).hex()
        self._number = 0
        self._open: dict[str, tuple[bytes, Done]] = {}

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
        self._connection.send(encode(ClientHello(self.name, os.getpid())))

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def call(self, name: str, args: dict[str, Any], done: Done) -> None:
        """Have the scheduler carry out a command; `done` gets its answer, whenever that comes."""
        self._number += 1
        command = Command(f"{self._prefix}-{self._number}", name, args, self.name)
        document = encode(command)
        self._open[command.op] = (document, done)
        if self._up and self._connection is not None:
            self._connection.send(document)

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

    def _welcomed(self, connection: Connection, welcome: Welcome) -> None:
        if welcome.refused is not None:
            log.error("the scheduler refuses us", why=welcome.refused)
            connection.close()
            return
        if self._waits.failures > SILENT_FAILURES:
            log.info("the scheduler is there again")
        self._waits.succeeded()
        self._up = True
        for document, _ in list(self._open.values()):
            connection.send(document)
        self.on_up()

    def _broke(self, connection: Connection) -> None:
        self._connection = None
        self._up = False
        self._retry("it hung up")

    def _retry(self, why: str) -> None:
        if self._closed:
            return
        wait = self._waits.failed()
        if self._waits.failures == SILENT_FAILURES:
            log.warning("there is no scheduler; trying on", socket=self.path, why=why)
        self.loop.call_later(wait, self.start)
