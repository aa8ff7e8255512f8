"""Links between processes. A link keeps order and loses nothing, unless the seed says so; when an end dies, the other one hears."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple, cast

from tradewind.simulation.timeline import Process, Timeline
from tradewind.wire.connection import Connection

LATENCY = 150
"""Microseconds."""


class Trouble(NamedTuple):
    """What happens to messages: shares of them."""

    lost: float = 0.0
    repeated: float = 0.0
    late: float = 0.0
    lateness: int = 0
    """Microseconds at most. A late message is overtaken by others."""


class Network:
    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.trouble = _CALM
        self.rng: random.Random = timeline.stream("network")

    def link(self, here: Process, there: Process) -> tuple[End, End]:
        """Two ends that are each other's peer. Set what each hears with `listen`."""
        one, two = End(self, here), End(self, there)
        one.peer, two.peer = two, one
        here.on_death.append(one.close)
        there.on_death.append(two.close)
        return one, two


class End:
    """One side of a link; stands in the place of `wire.connection.Connection`."""

    def __init__(self, network: Network, process: Process) -> None:
        self.network = network
        self.process = process
        self.peer: End = self
        self.closed = False
        self.label = ""
        self.problem = ""
        self._heard: Callable[[bytes], None] = lambda document: None
        self._gone: Callable[[], None] = lambda: None
        self._sent = 0
        self._arrives = 0

    def listen(self, heard: Callable[[bytes], None], gone: Callable[[], None]) -> None:
        self._heard, self._gone = heard, gone

    @property
    def connection(self) -> Connection:
        """Itself, for those who want a connection: it has all they use."""
        return cast(Connection, self)

    def send(self, document: bytes) -> None:
        if self.closed:
            return
        self.process.step("send")
        network, peer = self.network, self.peer
        timeline, trouble, rng = network.timeline, network.trouble, network.rng
        self._sent += 1
        arrives = max(timeline.now + LATENCY, self._arrives)
        if self._sent > 1 and trouble is not _CALM:  # the first one is the hello, a part of connecting
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
            self._heard(document)

    def close(self) -> None:
        """From either side. The other one hears of it behind what was sent before."""
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
        """Nothing waits here: what was sent is on its way."""


_CALM = Trouble()
