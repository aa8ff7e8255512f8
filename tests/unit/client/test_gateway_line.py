"""Which end of a connection shows that the machine of the gateway answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

pytest.importorskip("websockets", reason="tests of gateways need websockets: pip install 'tradewind[remote]'")

from tradewind.client.gateway_line import CONNECT_WITHIN, Closed, GatewayLine, parse_address
from tradewind.model.moments import SECOND
from tradewind.platform.clock import ManualClock
from tradewind.platform.loop import Loop

DEADLINE_TURNS = 100


@pytest.fixture
def gateway() -> Iterator[socket.socket]:
    """A machine that accepts connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


class Peer:
    def __init__(self, port: int) -> None:
        self.clock = ManualClock()
        self.loop = Loop(self.clock)
        self.closed: list[Closed] = []
        address = parse_address(f"ws://127.0.0.1:{port}")
        self.line = GatewayLine(address, "token", self.loop, None, lambda: None, lambda message: None, self.closed.append)
        self.line.connect()

    def wait(self) -> None:
        """Serve the connection until something has happened."""
        self.loop.turn(at_most=SECOND)

    def until_closed(self) -> Closed:
        for _ in range(DEADLINE_TURNS):
            if self.closed:
                return self.closed[0]
            self.loop.turn(at_most=SECOND // 10)
        raise AssertionError("the connection was not closed")


def test_a_refused_connection_is_an_answer(gateway: socket.socket) -> None:
    port = gateway.getsockname()[1]
    gateway.close()
    assert Peer(port).until_closed().reached


def test_the_end_of_a_connection_is_an_answer(gateway: socket.socket) -> None:
    peer = Peer(gateway.getsockname()[1])
    peer.wait()
    gateway.accept()[0].close()
    assert peer.until_closed().reached


def test_silence_after_an_answer_is_none(gateway: socket.socket) -> None:
    """The network was cut: the worker closes the connection because the gateway has been silent."""
    peer = Peer(gateway.getsockname()[1])
    peer.wait()
    link, _ = gateway.accept()
    with link:
        peer.line.close("the gateway has been silent")
    assert not peer.until_closed().reached


def test_a_machine_that_accepts_and_says_nothing_has_not_answered(gateway: socket.socket) -> None:
    peer = Peer(gateway.getsockname()[1])
    peer.wait()
    link, _ = gateway.accept()
    with link:
        peer.clock.advance(CONNECT_WITHIN + 1)
        assert not peer.until_closed().reached
