"""Receives the scheduler's notices inside an event loop; reconnects when the scheduler is restarted."""

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
    """Connects to the scheduler and subscribes to its notices. Callbacks run in `loop`.

    Args:
        on_welcome: called when a scheduler has accepted the connection, also after each reconnection.
        on_notice: called with each notice.
    """

    def __init__(
        self, loop: Loop, path: str, name: str, on_welcome: Callable[[], None], on_notice: Callable[[Notice], None]
    ) -> None:
        self._loop = loop
        self._path = path
        self._name = name
        self._on_welcome = on_welcome
        self._on_notice = on_notice
        self._backoff = Backoff(_FIRST_RETRY_US, _LONGEST_RETRY_US, random.random)
        self._connection: Connection | None = None
        self._stopped = False

    def start(self) -> None:
        """Connect now, or as soon as a scheduler is running."""
        if self._stopped:
            return
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(self._path)
        except OSError:
            link.close()
            self._loop.call_later(round(self._backoff.failed()), self.start)
            return
        self._connection = Connection(link, self._loop, self._on_message, self._on_close)
        self._connection.send(encode(ClientHello(self._name, os.getpid(), True)))

    def stop(self) -> None:
        self._stopped = True
        if self._connection is not None:
            self._connection.close()

    def _on_message(self, connection: Connection, document: bytes) -> None:
        try:
            message = decode_from_scheduler(document)
        except msgspec.MsgspecError:
            connection.close()  # sent by another release; reconnect
            return
        if isinstance(message, Notice):
            self._on_notice(message)
        elif isinstance(message, Welcome) and message.refused is None:
            self._backoff.succeeded()
            self._on_welcome()

    def _on_close(self, connection: Connection) -> None:
        self._connection = None
        if not self._stopped:
            self._loop.call_later(round(self._backoff.failed()), self.start)
