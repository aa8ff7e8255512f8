"""Several machines: their clocks, and the network between them, which is cut and slow at times.

Connections between machines are TCP connections: they keep the order, and lose nothing. While the network is cut, messages and
the ends of connections wait. Nobody is told of a cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tradewind.model.moments import SECOND
from tradewind.simulation.network import LATENCY, End, Network
from tradewind.simulation.timeline import Call, NodeClock, Process, Timeline

DATABASE, BROKER = "database", "broker"
"""Machines without a scheduler."""
SILENCE = 10 * SECOND
"""A connection that is watched by pings ends after this time without an answer."""


class MachineClock(NodeClock):
    """The clock of one machine: durations are measured wrongly, the time of day is the same everywhere."""

    __slots__ = ("_common",)

    def __init__(self, timeline: Timeline, rate: float, common: NodeClock) -> None:
        super().__init__(timeline, rate)
        self._common = common

    def wall(self) -> int:
        return self._common.wall()


def machine_of(process: Process) -> str:
    """The machine of a process; empty: it reaches all machines."""
    found: str = getattr(process, "machine", "")
    return found


class Cables:
    """Which machines reach each other now."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._until: dict[frozenset[str], int] = {}
        """Pair of machines → until when they are cut off from each other."""
        self._waiting: dict[frozenset[str], list[Call]] = {}
        self.latency: dict[str, int] = {}
        """Machine → additional delay of its messages, microseconds."""

    def reaches(self, one: str, other: str) -> bool:
        return not one or not other or self._until.get(frozenset((one, other)), 0) <= self.timeline.now

    def cut(self, one: str, other: str, micros: int) -> None:
        """Cut two machines off from each other."""
        pair = frozenset((one, other))
        until = self.timeline.now + micros
        if one != other and until > self._until.get(pair, 0):
            self._until[pair] = until
            self.timeline.at(until, None, lambda: self._heal(pair))

    def speed_up(self, machine: str) -> None:
        self.latency.pop(machine, None)

    def heal_all(self) -> None:
        self._until.clear()
        self.latency.clear()
        for pair in list(self._waiting):
            self._heal(pair)

    def _heal(self, pair: frozenset[str]) -> None:
        if self._until.get(pair, 0) <= self.timeline.now:
            for call in self._waiting.pop(pair, ()):
                call()

    def carry(self, one: str, other: str, call: Call) -> None:
        """Call this now, or when the network between the machines works again. The order is kept."""
        if self.reaches(one, other):
            call()
        else:
            self._waiting.setdefault(frozenset((one, other)), []).append(call)


class Wires(Network):
    """Connections whose ends may be on different machines."""

    def __init__(self, timeline: Timeline, cables: Cables) -> None:
        super().__init__(timeline)
        self.cables = cables

    def link(self, here: Process, there: Process) -> tuple[End, End]:
        return self.join(Wire(self, here), Wire(self, there))

    def join(self, one: Wire, two: Wire) -> tuple[Wire, Wire]:
        one.peer, two.peer = two, one
        one.process.on_death.append(one.close)
        two.process.on_death.append(two.close)
        return one, two

    def watch(self, one: Wire) -> None:
        """Close both ends when a cut lasts longer than `SILENCE`, as pings do."""
        two, cables = one.peer, self.cables
        here, there = machine_of(one.process), machine_of(two.process)
        lost_since: list[int] = []

        def look() -> None:
            if one.closed and two.closed:
                return
            if cables.reaches(here, there):
                lost_since.clear()
            elif not lost_since:
                lost_since.append(self.timeline.now)
            elif self.timeline.now - lost_since[0] >= SILENCE:
                for end in (one, two):
                    self.timeline.after(0, end.process, end.close)
                return
            self.timeline.after(SECOND, None, look)

        self.timeline.after(SECOND, None, look)


class Wire(End):
    """One end of such a connection."""

    def __init__(self, network: Wires, process: Process) -> None:
        super().__init__(network, process)
        self.wires = network
        self._received: deque[Callable[[], None]] = deque()

    def send(self, document: bytes) -> None:
        if self.closed:
            return
        self.process.step("send")
        peer = self.peer
        assert isinstance(peer, Wire)
        self._post(lambda: peer._take(document))

    def _post(self, call: Call) -> None:
        """Let the other end do this after everything that was sent before."""
        peer, cables, timeline = self.peer, self.wires.cables, self.network.timeline
        assert isinstance(peer, Wire)
        here, there = machine_of(self.process), machine_of(peer.process)
        slow = max(cables.latency.get(here, 0), cables.latency.get(there, 0)) if here != there else 0
        self._arrives = max(timeline.now + LATENCY + slow, self._arrives + 1)
        timeline.at(self._arrives, None, lambda: cables.carry(here, there, lambda: peer.arrived(call)))

    def arrived(self, call: Call) -> None:
        self._received.append(call)
        self.network.timeline.after(0, self.process, self._next)

    def _next(self) -> None:
        """Handle what arrived first, in the process of this end."""
        self._received.popleft()()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._post(self.peer._end)
        if self.process.alive:
            self._gone()
