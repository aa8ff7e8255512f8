"""A StatsD server for tests: a UDP socket that keeps the lines it receives."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable


class StatsdServer:
    """Receives lines on a free port of this machine, in a thread. Use it as a context manager."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * 1024 * 1024)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._bell = threading.Condition()
        self._thread = threading.Thread(target=self._receive, daemon=True)

    def __enter__(self) -> StatsdServer:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join(10)
        self._socket.close()

    def _receive(self) -> None:
        while datagram := self._socket.recv(65536):
            with self._bell:
                self.lines += datagram.decode().split("\n")
                self._bell.notify_all()

    def wait(self, accept: Callable[[list[str]], bool], what: str, timeout: float = 30.0) -> list[str]:
        """Wait until the lines so far are accepted, and return them.

        Raises:
            AssertionError: they were not accepted in time.
        """
        with self._bell:
            if not self._bell.wait_for(lambda: accept(self.lines), timeout):
                shown = "\n".join(self.lines[-200:])
                raise AssertionError(f"{what} did not happen within {timeout:g} s; the last lines are:\n{shown}")
            return list(self.lines)

    def wait_for(self, *lines: str, timeout: float = 30.0) -> list[str]:
        """Wait until each of these lines has come; of a timer, give the part before the value (`name:`)."""

        def complete(found: list[str]) -> bool:
            return all(any(one == line or (line.endswith(":") and one.startswith(line)) for one in found) for line in lines)

        return self.wait(complete, f"the arrival of {', '.join(lines)}", timeout)
