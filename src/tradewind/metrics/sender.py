"""Sends lines to a StatsD server by UDP. It never blocks and never fails: what cannot be sent is dropped and counted."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from tradewind.metrics.lines import datagrams
from tradewind.observe.log import Log

log = Log("metrics")

LINES_MAX = 10_000
"""Lines that wait until the address of the server is known, or for the next `flush`. Further lines are dropped."""
REPORT_SECONDS = 60.0
"""Dropped lines are logged at most this often."""
RESOLVE_SECONDS = 30.0
"""Pause between two questions for the address of a host that is not known."""

Address = tuple[int, tuple[object, ...]]
"""The address family and the address for `sendto`."""


def resolve(host: str, port: int, ipv6: bool, numeric: bool = False) -> Address:
    """The address of a server.

    Args:
        numeric: fail instead of asking a name server.

    Raises:
        OSError: the host is not known.
    """
    family = socket.AF_INET6 if ipv6 else socket.AF_INET
    flags = socket.AI_NUMERICHOST if numeric else 0
    found = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM, flags=flags)
    return int(found[0][0]), tuple(found[0][4])


class Sender:
    """See the module. Only one thread may use it.

    Args:
        address: the address of the server; None: it is not known yet, and lines wait until `address` is set.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, address: Address | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.address = address
        self.dropped = 0
        """Lines that were not sent since the last report."""
        self.resolver: threading.Thread | None = None
        """Finds the address; None: it is known from the start."""
        self._clock = clock
        self._reported = float("-inf")
        self._lines: list[bytes] = []
        self._socket: socket.socket | None = None

    def add(self, lines: list[bytes]) -> None:
        """Add lines for the next `flush`."""
        room = LINES_MAX - len(self._lines)
        self._lines += lines[:room]
        self.dropped += max(0, len(lines) - room)

    def flush(self) -> None:
        """Send all lines."""
        if self.address is not None and self._lines:
            lines, self._lines = self._lines, []
            for datagram in datagrams(lines):
                self._send(self.address, datagram)
        if self.dropped and self._clock() - self._reported >= REPORT_SECONDS:
            log.warning("metrics were dropped, because the server could not take them", lines=self.dropped)
            self._reported, self.dropped = self._clock(), 0

    def _send(self, address: Address, datagram: bytes) -> None:
        try:
            if self._socket is None:
                self._socket = socket.socket(address[0], socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            self._socket.sendto(datagram, address[1])
        except OSError:
            self.dropped += datagram.count(b"\n") + 1

    def close(self) -> None:
        """Send what waits, and close the socket."""
        self.flush()
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def sender_for(host: str, port: int, ipv6: bool) -> Sender:
    """A sender to a host. A name of a host is resolved in a thread, because a name server may not answer for many seconds."""
    try:
        return Sender(resolve(host, port, ipv6, numeric=host != "localhost"))
    except OSError:
        pass  # it is a name
    sender = Sender(None)
    sender.resolver = threading.Thread(
        target=_resolve_until_known, args=(sender, host, port, ipv6), name="metrics host", daemon=True
    )
    sender.resolver.start()
    return sender


def _resolve_until_known(sender: Sender, host: str, port: int, ipv6: bool) -> None:
    problem = ""
    while sender.address is None:
        try:
            sender.address = resolve(host, port, ipv6)
        except OSError as error:
            if str(error) != problem:
                problem = str(error)
                log.warning("the host of the metrics server is not known; trying again", host=host, port=port, error=problem)
            time.sleep(RESOLVE_SECONDS)
