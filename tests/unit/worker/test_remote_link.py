"""The lease of a remote worker host: what makes it longer, and what does not."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection

import pytest

pytest.importorskip("websockets", reason="tests of gateways need websockets: pip install 'tradewind[remote]'")

from tradewind.client.gateway_line import Closed, GatewayAddress
from tradewind.model.moments import SECOND
from tradewind.platform.clock import ManualClock
from tradewind.platform.loop import Loop
from tradewind.wire import gateway as g
from tradewind.wire.messages import AttemptKey, Unlisted
from tradewind.worker.config import GatewayConfig
from tradewind.worker.remote_link import NO_SCHEDULER_MAX, RemoteLink

OUTAGE = 120 * SECOND
SILENT, REFUSED = Closed("silence", False, False), Closed("refused", True, False)


class FakeLine:
    """A connection to a gateway: the test answers."""

    def __init__(
        self,
        address: GatewayAddress,
        token: str,
        loop: Loop,
        tls: ssl.SSLContext | None,
        on_open: Callable[[], None],
        on_message: Callable[[bytes], None],
        on_close: Callable[[Closed], None],
    ) -> None:
        self.host = address.host
        self.on_open, self.on_message, self.on_close = on_open, on_message, on_close
        self.is_open = False
        self.name = ""
        """What the gateway says about itself. Empty: it is of an older release."""
        self.renewals: list[int] = []
        self.for_scheduler: list[object] = []

    def connect(self) -> None:
        pass

    def open(self) -> None:
        self.is_open = True
        self.on_open()

    def send(self, message: bytes) -> None:
        received = g.decode_to_gateway(message[1:]) if message[0] == g.GATEWAY else None
        if received is None:
            self.for_scheduler.append(g.decode_from_host(message[1:]))
        elif isinstance(received, g.Renew):
            self.renewals.append(received.number)

    def say(self, message: object) -> None:
        self.on_message(bytes((g.GATEWAY,)) + g.encode(message))

    def grant(self, lease: int = g.LEASE) -> None:
        """Answer the last request for a lease."""
        self.say(g.Renewed(self.renewals[-1], lease, self.name))

    def close(self, reason: str) -> None:
        self.end(Closed(reason, False, False))

    def end(self, closed: Closed) -> None:
        self.is_open = False
        self.on_close(closed)


class Worker:
    """A worker host with one task. It is the owner of its link."""

    def __init__(self, *gateways: str) -> None:
        self.clock = ManualClock()
        self.loop = Loop(self.clock)
        self.lines: list[FakeLine] = []
        self.stopped_after: int | None = None
        config = GatewayConfig(tuple(f"ws://{one}:1" for one in gateways), "token", OUTAGE)
        self.link = RemoteLink(self, config, "", "", self.clock, self.loop, lambda: 0.5, self._make_line)
        self.begun = self.clock.monotonic()
        self.link._ship = lambda: None  # type: ignore[method-assign]
        self.link.start()

    def _make_line(self, *parts: object) -> FakeLine:
        self.lines.append(FakeLine(*parts))  # type: ignore[arg-type]
        return self.lines[-1]

    @property
    def line(self) -> FakeLine:
        return self.lines[-1]

    def register(self, name: str = "") -> None:
        """Connect to the gateway that is tried now, which has a scheduler. The lease begins now."""
        self.line.name = name
        self.line.open()
        self.line.say(g.SchedulerOpen(name))
        self.line.on_message(bytes((g.SCHEDULER,)) + b"the answer to the registration")
        self.line.grant()
        self.begun = self.clock.monotonic()

    def pass_seconds(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(SECOND)
            self.loop.turn(at_most=0)

    def lease_ended(self, reason: str, grace: int) -> None:
        self.stopped_after = (self.clock.monotonic() - self.begun) // SECOND

    def gateway_opened(self) -> None: ...

    def gateway_closed(self) -> None: ...

    def on_scheduler_document(self, document: bytes) -> None: ...

    def held_attempts(self) -> Collection[AttemptKey]:
        return ()

    def open_logs(self) -> Collection[str]:
        return ()

    def local_folder(self, bundle: str) -> str:
        return ""

    def used_folders(self) -> Collection[str]:
        return ()

    def files_ready(self) -> None: ...

    def is_busy(self) -> bool:
        return True


def test_without_answers_the_tasks_end_after_the_lease() -> None:
    worker = Worker("one")
    worker.register()
    worker.pass_seconds(15)
    worker.pass_seconds(16)
    assert worker.stopped_after == 31


def test_the_silence_of_a_gateway_makes_no_lease_longer() -> None:
    """The network is cut: the scheduler gives the attempts up when the lease has run out."""
    worker = Worker("one")
    worker.register()
    worker.pass_seconds(16)
    assert not worker.line.is_open, "the silent gateway was given up"
    for _ in range(4):
        worker.line.end(SILENT)
        worker.pass_seconds(10)
    assert worker.stopped_after == 31


def test_a_gateway_that_refuses_is_being_restarted() -> None:
    worker = Worker("one")
    worker.register()
    for _ in range(60):
        worker.line.end(REFUSED)
        worker.pass_seconds(6)
        if worker.stopped_after is not None:
            break
    assert worker.stopped_after is not None
    assert OUTAGE // SECOND <= worker.stopped_after <= OUTAGE // SECOND + 7


def test_what_another_gateway_refuses_says_nothing_about_the_own_one() -> None:
    """The own gateway is cut off, and the scheduler hears from it that this worker is away."""
    worker = Worker("one", "two")
    worker.register()
    for _ in range(12):
        worker.line.end(REFUSED if worker.line.host == "two" else SILENT)
        worker.pass_seconds(6)
    assert worker.stopped_after == 31


def test_another_gateway_without_a_scheduler_makes_no_lease_longer() -> None:
    """When the own gateway is back, the scheduler waits for one lease only."""
    worker = Worker("one", "two")
    worker.register()
    worker.line.end(REFUSED)
    worker.pass_seconds(1)
    assert worker.line.host == "two"
    worker.line.open()
    worker.line.grant(OUTAGE)
    worker.pass_seconds(NO_SCHEDULER_MAX // SECOND + 3)
    assert worker.line.host == "one", "it looks whether the own gateway is back"
    worker.line.end(SILENT)
    worker.pass_seconds(40)
    assert worker.stopped_after is not None
    assert worker.stopped_after <= 32


def test_another_gateway_behind_the_same_address_makes_no_lease_longer() -> None:
    """A load balancer led the worker to it. It has no scheduler, and the own gateway has told the scheduler when the lease ends."""
    worker = Worker("balancer")
    worker.register("one")
    for _ in range(8):
        worker.line.end(SILENT)
        worker.pass_seconds(5)
        worker.line.name = "two"
        worker.line.open()
        worker.line.grant(OUTAGE)
    assert worker.stopped_after == 31


def test_a_worker_leaves_another_gateway_without_a_scheduler_behind_the_same_address() -> None:
    worker = Worker("balancer")
    worker.register("one")
    worker.line.end(REFUSED)
    worker.pass_seconds(1)
    worker.line.name = "two"
    worker.line.open()
    worker.line.grant(OUTAGE)
    worker.pass_seconds(NO_SCHEDULER_MAX // SECOND + 3)
    assert worker.line.name == "", "it has connected again, perhaps to the own gateway"


def test_the_own_gateway_makes_the_lease_longer_after_its_restart() -> None:
    worker = Worker("balancer")
    worker.register("one")
    worker.line.end(REFUSED)
    worker.pass_seconds(1)
    worker.line.name = "one"
    worker.line.open()
    for _ in range(OUTAGE // SECOND - 10):
        worker.line.grant(OUTAGE)
        worker.pass_seconds(1)
    assert worker.stopped_after is None


def test_a_worker_confirms_the_answer_to_its_registration_once() -> None:
    worker = Worker("one", "two")
    worker.line.open()
    worker.line.say(g.SchedulerOpen("g1"))
    assert worker.line.for_scheduler == []
    for _ in range(2):
        worker.line.on_message(bytes((g.SCHEDULER,)) + b"a message of the scheduler")
    assert worker.line.for_scheduler == [Unlisted(())]


def test_another_gateway_with_a_scheduler_is_the_own_one_from_then_on() -> None:
    worker = Worker("one", "two")
    worker.register()
    worker.line.end(REFUSED)
    worker.pass_seconds(1)
    worker.register()
    worker.line.end(SILENT)
    worker.pass_seconds(1)
    assert worker.line.host == "one"
    worker.line.end(REFUSED)
    worker.pass_seconds(31)
    assert worker.stopped_after == 31


def test_an_outage_does_not_begin_again_with_each_connection() -> None:
    worker = Worker("one")
    worker.register()
    for _ in range(40):
        worker.line.end(REFUSED)
        worker.pass_seconds(6)
        worker.line.open()
        worker.line.grant(OUTAGE)
        if worker.stopped_after is not None:
            break
    assert worker.stopped_after is not None
    assert worker.stopped_after <= OUTAGE // SECOND + 7


def test_a_lease_counts_from_the_request() -> None:
    worker = Worker("one")
    worker.register()
    worker.pass_seconds(6)
    assert len(worker.line.renewals) >= 2
    worker.pass_seconds(3)
    worker.line.grant()
    worker.pass_seconds(40)
    assert worker.stopped_after is not None
    assert worker.stopped_after <= 5 + 1 + 31


def test_a_gateway_that_fell_silent_and_is_restarted_makes_no_lease_longer() -> None:
    """It has told the scheduler when the lease ends."""
    worker = Worker("one")
    worker.register()
    worker.pass_seconds(16)
    for _ in range(4):
        worker.line.end(REFUSED)
        worker.pass_seconds(6)
    assert worker.stopped_after == 31
