"""The scheduler's socket of a machine that stands by: what it passes on, and what it does not."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("websockets", reason="tests of gateways need websockets: pip install 'tradewind[remote]'")

from websockets.asyncio.server import serve

from tradewind.gateway import scheduler_relay
from tradewind.gateway.scheduler_relay import SchedulerRelay, message_to_forward, serve_relay
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import (
    ClientHello,
    GatewayHello,
    Goodbye,
    HostHello,
    LeaseEnded,
    Relayed,
    ToScheduler,
    Welcome,
    decode_from_scheduler,
    decode_to_scheduler,
    encode,
)

KEY = b"k" * 32


class Active:
    """The machine of the active scheduler: a socket in place of the scheduler, and a gateway that leads to it."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self._path)
        self._listener.listen(4)
        self._listener.settimeout(10)
        self._loop = asyncio.new_event_loop()
        self._ends = asyncio.Event()
        self._is_up = threading.Event()
        self.address = ""
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))
        self._thread.start()
        assert self._is_up.wait(10)

    async def _serve(self) -> None:
        async with serve(lambda link: serve_relay(link, self._path, "there"), "127.0.0.1", 0, close_timeout=1) as server:
            self.address = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
            self._is_up.set()
            await self._ends.wait()

    def accept(self) -> socket.socket:
        link, _ = self._listener.accept()
        link.settimeout(10)
        return link

    def has_waiting(self) -> bool:
        """Has somebody connected who was not accepted yet?"""
        self._listener.settimeout(0)
        try:
            self._listener.accept()[0].close()
        except BlockingIOError:
            return False
        finally:
            self._listener.settimeout(10)
        return True

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._ends.set)
        self._thread.join(30)
        self._loop.close()
        self._listener.close()


@pytest.fixture
def active(tmp_path: Path) -> Iterator[Active]:
    made = Active(tmp_path / "a")
    yield made
    made.close()


@pytest.fixture
def relay(tmp_path: Path, active: Active) -> Iterator[SchedulerRelay]:
    made = SchedulerRelay(str(tmp_path / "r"), KEY, ssl.create_default_context)
    made.start()
    made.forward_to(active.address)
    yield made
    made.stop()


def connect(folder: Path, message: ToScheduler) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(10)
    link.connect(str(folder / "r"))
    link.sendall(frame(encode(message)))
    return link


def read(link: socket.socket, count: int) -> list[ToScheduler]:
    """The next messages at the scheduler."""
    frames, found = FrameReader(), list[ToScheduler]()
    while len(found) < count:
        data = link.recv(65536)
        assert data, f"closed after {found}"
        found += [decode_to_scheduler(document) for document in frames.feed(data)]
    return found


def test_a_client_talks_to_the_active_scheduler(tmp_path: Path, active: Active, relay: SchedulerRelay) -> None:
    hello = ClientHello("cli", 7)
    with connect(tmp_path, hello) as client, active.accept() as scheduler:
        assert read(scheduler, 2) == [Relayed("there"), hello]
        answer = frame(encode(Welcome(3)))
        scheduler.sendall(answer)
        assert client.recv(1000) == answer
        scheduler.close()
        assert client.recv(1000) == b""


def test_two_standbys_do_not_lead_to_each_other(tmp_path: Path, active: Active, relay: SchedulerRelay) -> None:
    with connect(tmp_path, Relayed("another standby")) as link:
        assert link.recv(1000) == b""
    assert not active.has_waiting()


def test_a_parser_waits_for_the_scheduler_of_its_machine(tmp_path: Path, active: Active, relay: SchedulerRelay) -> None:
    with connect(tmp_path, ClientHello("parser", 7, answers_timetables=True)) as parser:
        with connect(tmp_path, ClientHello("cli", 8)), active.accept() as scheduler:
            assert read(scheduler, 2)[1] == ClientHello("cli", 8)
        relay.stop()
        assert parser.recv(1000) == b""
    assert not active.has_waiting()


def test_connections_end_when_another_scheduler_is_active(tmp_path: Path, active: Active, relay: SchedulerRelay) -> None:
    with connect(tmp_path, ClientHello("cli", 7)) as client, active.accept() as scheduler:
        read(scheduler, 2)
        relay.forward_to("ws://127.0.0.1:1")
        assert client.recv(1000) == b""
        assert scheduler.recv(1000) == b""
    with connect(tmp_path, ClientHello("cli", 7)) as client:  # and nobody answers at the new address
        assert client.recv(1000) == b""


@pytest.mark.parametrize(
    ("message", "passes"),
    [
        (ClientHello("api", 1, job_type="ApiServerJob", service_id="a"), True),
        (GatewayHello("one:8974"), True),
        (HostHello("etl-1@remote/1", 1, "there", gateway="one:8974"), True),
        (HostHello("w1@here-1f2e.1", 1, "here"), False),
        (ClientHello("parser", 1, answers_timetables=True), False),
    ],
)
def test_what_passes_as_it_is(message: ToScheduler, passes: bool) -> None:
    assert message_to_forward(message) == (message if passes else None)


def test_a_worker_host_with_attempts_passes_as_one_that_takes_nothing_new(
    tmp_path: Path, active: Active, relay: SchedulerRelay
) -> None:
    hello = HostHello("w1@here-1f2e.1", 1, "here", live=((1, 2, 3),))
    with connect(tmp_path, hello) as host, active.accept() as scheduler:
        assert read(scheduler, 2)[1] == msgspec.structs.replace(hello, draining=True)
        host.sendall(frame(encode(Goodbye())))
        assert read(scheduler, 1) == [Goodbye()]
        scheduler.close()
        assert host.recv(1000) == b"", "the connection ends with that to the scheduler"


def test_a_worker_host_stops_its_attempts_if_the_active_scheduler_cannot_be_reached(
    tmp_path: Path, active: Active, relay: SchedulerRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    hello = HostHello("w1@here-1f2e.1", 1, "here", live=((1, 2, 3),))
    relay.forward_to("ws://127.0.0.1:1")
    with connect(tmp_path, hello) as host:
        assert host.recv(1000) == b"", "it may become reachable again"
    monkeypatch.setattr(scheduler_relay, "LEASE", 0)
    with connect(tmp_path, hello) as host:
        (document,) = FrameReader().feed(host.recv(1000))
        assert isinstance(decode_from_scheduler(document), LeaseEnded)
    with connect(tmp_path, ClientHello("cli", 7)) as client:
        assert client.recv(1000) == b"", "only worker hosts are told"
    relay.forward_to(active.address)
    with connect(tmp_path, hello) as host, active.accept() as scheduler:
        assert read(scheduler, 2)[1] == msgspec.structs.replace(hello, draining=True)
