"""The lease of a worker host beside a scheduler: what renews it, and what happens when it has run out."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

import pytest

from tradewind.model.moments import SECOND
from tradewind.platform.clock import ManualClock
from tradewind.platform.loop import Loop
from tradewind.wire.gateway import LEASE, LEASE_GRACE
from tradewind.worker.local_lease import Address, LocalLease, machine_answers

FIRST, SECOND_SERVER = ("db-1", 5432), ("db-2", 5432)


class Machine:
    """A machine with one task, whose lease is checked each second. It is the owner of the lease."""

    def __init__(self, *servers: Address, starts: bool = True) -> None:
        self.clock = ManualClock()
        self.loop = Loop(self.clock)
        self.busy = True
        self.connected = False
        """A scheduler is connected."""
        self.answering = set(servers)
        self.asked: list[Address] = []
        self.waiting: list[Callable[[], None]] | None = None
        """Set: questions that have no answer yet."""
        self.stopped: list[tuple[str, int]] = []
        self.lease = LocalLease(self.loop, self.clock, self, servers, self._ask, self._background)
        if starts:
            self.lease.start()

    def is_busy(self) -> bool:
        return self.busy

    def has_scheduler(self) -> bool:
        return self.connected

    def lease_ended(self, reason: str, grace: int) -> None:
        self.stopped.append((reason, grace))
        self.busy = False

    def _ask(self, address: Address) -> bool:
        self.asked.append(address)
        return address in self.answering

    def _background(self, call: Callable[[], None]) -> None:
        if self.waiting is None:
            call()
        else:
            self.waiting.append(call)

    def pass_seconds(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(SECOND)
            self.loop.turn(at_most=0)


def test_a_connected_scheduler_that_says_nothing_is_stopped() -> None:
    """Its own lease ends after 10 s, and a standby scheduler takes over: 40 s later the tasks are tried again elsewhere."""
    machine = Machine(FIRST)
    machine.connected = True
    machine.pass_seconds(20)
    machine.lease.renew()
    machine.pass_seconds(30)
    assert machine.stopped == []
    machine.pass_seconds(2)
    assert [grace for _, grace in machine.stopped] == [LEASE_GRACE]


def test_tasks_continue_as_long_as_the_database_machine_answers() -> None:
    machine = Machine(FIRST)
    machine.pass_seconds(600)
    assert machine.stopped == []
    assert len(machine.asked) == 120, "it is asked every five seconds"


def test_tasks_are_stopped_when_the_machine_is_cut_off() -> None:
    machine = Machine(FIRST)
    machine.pass_seconds(60)
    machine.answering.clear()
    machine.pass_seconds(LEASE // SECOND - 6)
    assert machine.stopped == []
    machine.pass_seconds(7)
    ((reason, grace),) = machine.stopped
    assert "no contact with a scheduler or with the database" in reason
    assert grace == LEASE_GRACE


def test_messages_of_a_scheduler_renew_the_lease() -> None:
    machine = Machine(FIRST)
    machine.answering.clear()
    for _ in range(10):
        machine.pass_seconds(LEASE // SECOND - 1)
        machine.lease.renew()
    assert machine.stopped == []


def test_all_servers_have_to_answer() -> None:
    machine = Machine(FIRST, SECOND_SERVER)
    machine.answering.remove(SECOND_SERVER)
    machine.pass_seconds(LEASE // SECOND + 1)
    assert len(machine.stopped) == 1


def test_a_late_answer_counts_from_its_question_and_no_second_question_is_asked_meanwhile() -> None:
    machine = Machine(FIRST)
    machine.waiting = []
    machine.pass_seconds(20)
    (answer,) = machine.waiting
    answer()
    machine.pass_seconds(1)
    assert len(machine.waiting) == 2, "the next question follows the answer"
    machine.pass_seconds(9)
    assert machine.stopped == []
    machine.pass_seconds(2)
    assert len(machine.stopped) == 1, "the answer is as old as its question"


def test_without_a_task_nothing_is_asked_and_nothing_ends() -> None:
    machine = Machine(FIRST)
    machine.busy = False
    machine.answering.clear()
    machine.pass_seconds(300)
    assert (machine.asked, machine.stopped) == ([], [])
    machine.busy = True
    machine.pass_seconds(LEASE // SECOND - 1)
    assert machine.stopped == [], "the lease of a new task is whole"


def test_the_standby_scheduler_ends_the_lease_once() -> None:
    machine = Machine(FIRST)
    machine.lease.end("the active scheduler cannot be reached")
    machine.lease.end("the active scheduler cannot be reached")
    assert machine.stopped == [("the active scheduler cannot be reached", LEASE_GRACE)]
    machine.pass_seconds(1)
    machine.busy = True
    machine.lease.end("again")
    assert len(machine.stopped) == 2


def test_a_machine_answers_if_it_accepts_or_refuses_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()[:2]
        assert machine_answers(address)
    assert machine_answers(address), "nobody listens any more"


@pytest.mark.parametrize("error", [TimeoutError(), OSError(errno.EHOSTUNREACH, "no route"), socket.gaierror("unknown name")])
def test_a_machine_does_not_answer(error: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(address: Address, timeout: float) -> socket.socket:
        raise error

    monkeypatch.setattr(socket, "create_connection", fails)
    assert not machine_answers(FIRST)


def test_without_a_standby_scheduler_there_is_no_lease() -> None:
    machine = Machine(FIRST, starts=False)
    machine.answering.clear()
    machine.pass_seconds(600)
    assert (machine.asked, machine.stopped) == ([], [])
    machine.lease.start()
    machine.lease.start()
    machine.pass_seconds(LEASE // SECOND - 1)
    assert machine.stopped == [], "it is whole at the start"
    machine.pass_seconds(2)
    assert len(machine.stopped) == 1
