"""A connection over a stream socket in an event loop: sends and receives whole documents without blocking."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from typing import Protocol

from tradewind.model.errors import WireError
from tradewind.wire.frames import FrameReader, frame

OUT_MAX = 16 * 1024 * 1024
"""Maximum number of buffered bytes for a peer that does not read. If more are buffered, the next document closes the connection."""
READ_SIZE = 64 * 1024
"""Smaller than the size from which malloc requests each buffer from the kernel."""


class Watcher(Protocol):
    """The part of `platform.loop.Loop` that a connection needs."""

    def watch(self, file: socket.socket, events: int, callback: Callable[[int], None]) -> None: ...

    def unwatch(self, file: socket.socket) -> None: ...


class Connection:
    """The connection to one peer.

    Args:
        on_document: called for each document, in order.
        on_close: called once, when the peer has hung up, sent broken frames, or does not read (then `problem` is set).
        out_max: maximum of buffered bytes for a peer that does not read.
    """

    __slots__ = (
        "_on_close",
        "_on_document",
        "_out",
        "_out_max",
        "_reader",
        "_watcher",
        "closed",
        "label",
        "problem",
        "socket",
    )

    def __init__(
        self,
        link: socket.socket,
        watcher: Watcher,
        on_document: Callable[[Connection, bytes], None],
        on_close: Callable[[Connection], None],
        out_max: int = OUT_MAX,
    ) -> None:
        link.setblocking(False)
        self.problem = ""
        """Why this side has closed the connection; empty: the peer did nothing wrong."""
        self._out_max = out_max
        self.socket = link
        self.closed = False
        self.label = ""
        self._watcher = watcher
        self._on_document = on_document
        self._on_close = on_close
        self._reader = FrameReader()
        self._out = bytearray()
        watcher.watch(link, selectors.EVENT_READ, self._ready)

    def send(self, document: bytes) -> None:
        """Send one document, or buffer it until the socket accepts it. After a close the document is dropped.

        If the buffer is full already, the peer does not read: the connection is closed.
        """
        if self.closed:
            return
        if len(self._out) > self._out_max:
            self.problem = f"it does not read: {len(self._out)} bytes are buffered for it"
            self.close()
            return
        data = frame(document)
        if not self._out:
            try:
                sent = self.socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.close()
                return
            if sent == len(data):
                return
            data = data[sent:]
            self._watcher.watch(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self._ready)
        self._out += data

    def close(self) -> None:
        """Close the connection. `on_close` is called once."""
        if not self.closed:
            self.closed = True
            self._watcher.unwatch(self.socket)
            self.socket.close()
            self._on_close(self)

    def drain(self) -> None:
        """Read the bytes that have already arrived from a peer that has just ended."""
        while not self.closed and self._receive():
            pass

    def _ready(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush()
        if events & selectors.EVENT_READ and not self.closed:
            self._receive()

    def _flush(self) -> None:
        try:
            sent = self.socket.send(self._out)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        del self._out[:sent]
        if not self._out:
            self._watcher.watch(self.socket, selectors.EVENT_READ, self._ready)

    def _receive(self) -> bool:
        """Read once. Returns whether data arrived."""
        try:
            data = self.socket.recv(READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.close()
            return False
        try:
            for document in self._reader.feed(data):
                self._on_document(self, document)
                if self.closed:
                    return False
        except WireError as error:
            self.problem = str(error)
            self.close()
        return True
