"""Connections between processes.

A connection keeps the order and loses nothing, unless the seed has such faults. When one end dies, the other end is notified.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple, cast

from tradewind.simulation.timeline import Process, Timeline
from tradewind.wire.connection import Connection

LATENCY = 150
"""Microseconds."""


class Trouble(NamedTuple):
    """Faults of messages, as shares of all messages."""

    lost: float = 0.0
    repeated: float = 0.0
    late: float = 0.0
    lateness: int = 0
    """Maximum delay in microseconds. Other messages overtake a late message."""


class Network:
    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.trouble = _CALM
        self.rng: random.Random = timeline.stream("network")

    def link(self, here: Process, there: Process) -> tuple[End, End]:
        """Create two connected ends. Set the receiver of each with `listen`."""
        one, two = End(self, here), End(self, there)
        one.peer, two.peer = two, one
        here.on_death.append(one.close)
        there.on_death.append(two.close)
        return one, two


class End:
    """One end of a connection. It replaces `wire.connection.Connection`."""

    def __init__(self, network: Network, process: Process) -> None:
        self.network = network
        self.process = process
        self.peer: End = self
        self.closed = False
        self.label = ""
        self.problem = ""
        self._on_document: Callable[[bytes], None] = lambda document: None
        self._gone: Callable[[], None] = lambda: None
        self._sent = 0
        self._arrives = 0

    def listen(self, receive: Callable[[bytes], None], gone: Callable[[], None]) -> None:
        self._on_document, self._gone = receive, gone

    @property
    def connection(self) -> Connection:
        """The end itself: it has all methods of a connection that the callers use."""
        return cast(Connection, self)

    def send(self, document: bytes) -> None:
        if self.closed:
            return
        self.process.step("send")
        network, peer = self.network, self.peer
        timeline, trouble, rng = network.timeline, network.trouble, network.rng
        self._sent += 1
        arrives = max(timeline.now + LATENCY, self._arrives)
        if self._sent > 1 and trouble is not _CALM:  # the first message is the hello, a part of connecting
            if rng.random() < trouble.lost:
                timeline.faults["message lost"] += 1
                return
            if rng.random() < trouble.repeated:
                timeline.faults["message repeated"] += 1
                again = arrives + rng.randrange(1, max(2, trouble.lateness))
                timeline.at(again, peer.process, lambda: peer._take(document))
            if rng.random() < trouble.late:
                timeline.faults["message late"] += 1
                late = arrives + rng.randrange(1, max(2, trouble.lateness))
                timeline.at(late, peer.process, lambda: peer._take(document))
                return
        self._arrives = arrives
        timeline.at(arrives, peer.process, lambda: peer._take(document))

    def _take(self, document: bytes) -> None:
        if not self.closed:
            self.network.timeline.note_bytes(self.process.name, document)
            self._on_document(document)

    def close(self) -> None:
        """Close the connection. The other end is notified after it has received all earlier messages."""
        if self.closed:
            return
        self.closed = True
        timeline, peer = self.network.timeline, self.peer
        timeline.at(max(timeline.now + LATENCY, self._arrives), peer.process, peer._end)
        if self.process.alive:
            self._gone()

    def _end(self) -> None:
        if not self.closed:
            self.closed = True
            self._gone()

    def drain(self) -> None:
        """Do nothing: all messages have already been sent."""


_CALM = Trouble()
