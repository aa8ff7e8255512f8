"""A proxy between a process and its PostgreSQL server that a test can cut: no data arrives any more, and neither side gets an
error.

It listens on a Unix socket, so that it knows the process of each connection; or on a TCP port, for processes in
another network namespace.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from tests.postgres_server import PostgresServer

_SOCKET = ".s.PGSQL.5432"
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group of the other end of a Unix socket."""
_BLOCK = 64 * 1024


class Proxy:
    """Forwards connections to a server until it is cut.

    Args:
        host: the address on which it listens, at a free port. None: a Unix socket in the folder.

    Attributes:
        folder: contains the socket; the `host` of a URL.
    """

    def __init__(self, server: PostgresServer, folder: Path, host: str | None = None) -> None:
        self.folder = folder
        self._target = str(server.folder / _SOCKET)
        self._owners: dict[socket.socket, int] = {}
        self._peers: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._is_cut = False
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        if host is None:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(folder / _SOCKET))
            self._listener.listen(64)
        else:
            self._listener = socket.create_server((host, 0))
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def url(self, database: str) -> str:
        """The URL of a database of the server, given its own URL, through this proxy."""
        if self._listener.family == socket.AF_UNIX:
            return f"{database.partition('?')[0]}?host={self.folder}"
        host, port = self._listener.getsockname()
        return f"postgresql://postgres@{host}:{port}/{database.partition('?')[0].rpartition('/')[2]}"

    def cut(self) -> None:
        """From now on no data arrives in either direction. The connections stay open."""
        self._is_cut = True
        self._wake.send(b"c")

    def mend(self) -> None:
        """Deliver the data that was sent since `cut`, and forward again."""
        self._is_cut = False
        self._wake.send(b"m")

    def owners(self) -> list[int]:
        """The process of each open connection; 0 for a connection by TCP."""
        with self._lock:
            return sorted(self._owners.values())

    def close(self) -> None:
        self._wake.send(b"e")
        self._thread.join(10)
        for one in (*self._peers, self._listener, self._wake, self._woken):
            one.close()
        self._selector.close()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                one = key.fileobj
                assert isinstance(one, socket.socket)
                if one is self._woken:
                    if self._woken.recv(1) == b"e":
                        return
                    self._watch()
                elif self._is_cut:
                    continue
                elif one is self._listener:
                    self._accept()
                elif one in self._peers:
                    self._forward(one)

    def _watch(self) -> None:
        """Watch all sockets; while the proxy is cut, only the internal socket that wakes this thread."""
        watched = self._selector.get_map()
        for one in (self._listener, *self._peers):
            if self._is_cut and one in watched:
                self._selector.unregister(one)
            elif not self._is_cut and one not in watched:
                self._selector.register(one, selectors.EVENT_READ)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        pid = 0
        if client.family == socket.AF_UNIX:
            pid, _, _ = _CREDENTIALS.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._target)
        except OSError:  # the server does not run
            client.close()
            server.close()
            return
        with self._lock:
            self._owners[client] = pid
        for one, other in ((client, server), (server, client)):
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _forward(self, one: socket.socket) -> None:
        try:
            data = one.recv(_BLOCK)
            if data:
                self._peers[one].sendall(data)
                return
        except OSError:
            pass
        for end in (one, self._peers[one]):
            self._selector.unregister(end)
            del self._peers[end]
            with self._lock:
                self._owners.pop(end, None)
            end.close()


@contextmanager
def proxied(server: PostgresServer, host: str | None = None) -> Iterator[Proxy]:
    """A proxy in front of a server; `host` as for `Proxy`."""
    folder = Path(tempfile.mkdtemp(prefix="px"))  # a short path: sockets have a limit
    os.chmod(folder, 0o700)
    proxy = Proxy(server, folder, host)
    try:
        yield proxy
    finally:
        proxy.close()
        rmtree(folder, ignore_errors=True)
