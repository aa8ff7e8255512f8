"""Peers that do not read are disconnected with a line in the log; they take no memory without a bound."""

from __future__ import annotations

import socket

from tradewind.platform.clock import ManualClock
from tradewind.platform.loop import Loop
from tradewind.wire.connection import Connection
from tradewind.wire.frames import FrameReader


def test_peer_that_does_not_read_is_disconnected_with_a_reason() -> None:
    loop = Loop(ManualClock())
    ours, theirs = socket.socketpair()
    closed: list[str] = []
    connection = Connection(ours, loop, lambda c, d: None, lambda c: closed.append(c.problem), out_max=100_000)
    document = b"x" * 10_000
    most = sent = 0
    while not closed and sent < 10_000:
        connection.send(document)
        sent += 1
        most = max(most, len(connection._out))
    (why,) = closed
    assert why.startswith("it does not read: ")
    assert most <= 100_000 + 2 * len(document)
    theirs.close()


def test_one_document_may_be_larger_than_the_buffer() -> None:
    """A definition of 100,000 tasks is 20 MB, and its reader does read."""
    loop = Loop(ManualClock())
    ours, theirs = socket.socketpair()
    connection = Connection(ours, loop, lambda c, d: None, lambda c: None, out_max=1_000)
    connection.send(b"x" * 5_000_000)
    reader = FrameReader()
    found: list[bytes] = []
    while not found:
        found = list(reader.feed(theirs.recv(1 << 20)))
        loop.turn(0)
    assert len(found[0]) == 5_000_000
    assert not connection.closed
    connection.close()
    theirs.close()
