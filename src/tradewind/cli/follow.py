"""What the scheduler tells, inside a loop: connects when there is a scheduler, and again when there is another one."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable

import msgspec

from tradewind.platform.backoff import Backoff
from tradewind.platform.loop import Loop
from tradewind.wire.connection import Connection
from tradewind.wire.messages import ClientHello, Notice, Welcome, decode_from_scheduler, encode

_FIRST_RETRY_US, _LONGEST_RETRY_US = 20_000, 500_000


class Follower:
    """Calls back from `loop`.

    Args:
        on_welcome: a scheduler answered; called again after each reconnection.
        on_notice: something changed.
    """

    def __init__(
        self, loop: Loop, path: str, name: str, on_welcome: Callable[[], None], on_notice: Callable[[Notice], None]
    ) -> None:
        self._loop = loop
        self._path = path
        self._name = name
        self._on_welcome = on_welcome
        self._on_notice = on_notice
        self._waits = Backoff(_FIRST_RETRY_US, _LONGEST_RETRY_US, random.random)
        self._connection: Connection | None = None
        self._stopped = False

    def start(self) -> None:
        """Connect now, or as soon as somebody listens."""
        if self._stopped:
            return
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(self._path)
        except OSError:
            link.close()
            self._loop.call_later(round(self._waits.failed()), self.start)
            return
        self._connection = Connection(link, self._loop, self._heard, self._closed)
        self._connection.send(encode(ClientHello(self._name, os.getpid(), True)))

    def stop(self) -> None:
        self._stopped = True
        if self._connection is not None:
            self._connection.close()

    def _heard(self, connection: Connection, document: bytes) -> None:
        try:
            message = decode_from_scheduler(document)
        except msgspec.MsgspecError:
            connection.close()  # another release; it is tried again
            return
        if isinstance(message, Notice):
            self._on_notice(message)
        elif isinstance(message, Welcome) and message.refused is None:
            self._waits.succeeded()
            self._on_welcome()

    def _closed(self, connection: Connection) -> None:
        self._connection = None
        if not self._stopped:
            self._loop.call_later(round(self._waits.failed()), self.start)
