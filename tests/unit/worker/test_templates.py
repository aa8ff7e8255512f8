"""The warm templates, with a base image that the test plays: what becomes of orders when a process that forks dies."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.worker.configs import host_config, workload
from tradewind.model.moments import SECOND
from tradewind.platform import HAVE_LINUX
from tradewind.platform.clock import ManualClock
from tradewind.platform.fork_server import Exited, Forked, Ready, encode, receive_order
from tradewind.platform.loop import Loop
from tradewind.wire.messages import Workload
from tradewind.worker.orders import MakeTemplate, RunDirect, decode_order
from tradewind.worker.templates import CRASHES_MAX, USED_MIN, ForkLink, Templates

pytestmark = pytest.mark.skipif(not HAVE_LINUX, reason="templates are forked on Linux only")


class PendingAttempt:
    """An attempt that records the calls of its methods."""

    def __init__(self, work: Workload, again: int | None = 0) -> None:
        self.workload = work
        self.again = again
        self.calls: list[Any] = []

    def descriptors(self) -> list[int]:
        return []

    def handed_over(self) -> None:
        self.calls.append("ordered")

    def forked(self, pid: int) -> None:
        self.calls.append(pid)

    def could_not_start(self, why: str, *, file_broken: bool) -> None:
        self.calls.append((why, file_broken))

    def order_lost(self, why: str) -> int | None:
        self.calls.append("lost")
        return self.again


class Playing(Templates):
    """Base images are a process that does nothing and a socket."""

    theirs: socket.socket

    def start_base(self) -> None:
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.base_process = subprocess.Popen(["sleep", "1000"])
        self._base_started = self.clock.monotonic()
        self.base = self._listen(ForkLink(ours, "base image"))
        self._base_ready = False

    def says(self, answer: object) -> None:
        self.theirs.send(encode(answer))
        self.loop.turn(0)

    def ordered(self) -> Any:
        order, descriptors = receive_order(self.theirs)
        assert order is not None
        self.link = socket.socket(fileno=descriptors[0]) if descriptors else None
        return decode_order(order)

    def die(self) -> None:
        assert self.base_process is not None
        self.base_process.kill()
        self.theirs.close()
        self.loop.turn(0)


class World:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.loop = Loop(self.clock)
        self.orphans: list[set[int]] = []
        self.exits: list[int] = []
        self.templates = Playing(
            host_config(folder),
            self.loop,
            self.clock,
            lambda pid, status, used: self.exits.append(pid),
            lambda pids: self.orphans.append(set(pids)) if pids else None,
            lambda: None,
        )

    def after(self, micros: int) -> None:
        self.clock.advance(micros)
        self.loop.turn(0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path)
    found.templates.start_base()
    yield found
    if found.templates.base_process is not None:
        found.templates.base_process.kill()
        found.templates.base_process.wait()


def alone() -> Workload:
    return msgspec.structs.replace(workload(), import_cost=1000)


def test_order_that_dies_with_the_base_image_is_given_to_the_next(world: World) -> None:
    pending = PendingAttempt(alone())
    world.templates.says(Ready())
    world.templates.run(pending)
    assert isinstance(world.templates.ordered(), RunDirect)
    world.templates.die()
    assert pending.calls == ["ordered", "lost"]
    world.after(SECOND)
    world.templates.says(Ready())
    assert isinstance(world.templates.ordered(), (RunDirect, MakeTemplate))


def test_runners_of_a_dead_base_image_are_handed_over_to_the_host(world: World) -> None:
    pending = PendingAttempt(alone())
    world.templates.says(Ready())
    world.templates.run(pending)
    world.templates.says(Forked(1, 4711))
    world.templates.die()
    assert pending.calls == ["ordered", 4711]
    assert world.orphans == [{4711}]


def test_base_image_that_keeps_dying_is_begun_more_and_more_slowly(world: World) -> None:
    pauses = []
    for _ in range(12):
        world.templates.says(Ready())
        world.templates.die()
        due = world.loop._timers[0].due
        pauses.append(due - world.clock.monotonic())
        world.after(due - world.clock.monotonic())
    assert pauses[0] == 20_000
    assert pauses == sorted(pauses)
    assert pauses[-1] == 10 * SECOND


def test_orders_are_refused_where_no_base_image_comes_up(world: World) -> None:
    pending = PendingAttempt(alone())
    world.templates.run(pending)
    for _ in range(5):
        assert pending.calls == []
        world.templates.die()
        world.after(10 * SECOND)
    ((why, file_broken),) = pending.calls
    assert "5 times before it was ready" in why
    assert not file_broken


def crash(world: World, number: int) -> None:
    """The template's process ends while it imports the file."""
    assert isinstance(world.templates.ordered(), MakeTemplate)
    world.templates.says(Forked(number, 100 + number))
    assert world.templates.link is not None
    world.templates.link.close()
    world.templates.says(Exited(100 + number, signal.SIGSEGV))


def test_import_that_ends_the_process_again_and_again_is_a_broken_file(world: World) -> None:
    pending = PendingAttempt(workload())
    world.templates.says(Ready())
    world.templates.run(pending)
    for number in range(1, CRASHES_MAX):
        crash(world, number)
        assert pending.calls[-1] == "lost"
        world.after(0)
    crash(world, CRASHES_MAX)
    why, file_broken = pending.calls[-1]
    assert file_broken
    assert "killed by SIGSEGV" in why


def test_fork_that_fails_is_tried_again(world: World) -> None:
    pending = PendingAttempt(alone(), again=SECOND)
    world.templates.says(Ready())
    world.templates.run(pending)
    world.templates.ordered()
    world.templates.says(Forked(1, 0, "fork failed: Resource temporarily unavailable"))
    assert pending.calls == ["ordered", "lost"]
    assert world.templates.base is not None
    assert not world.templates.base.ordered, "not at once"
    world.after(SECOND)
    assert isinstance(world.templates.ordered(), MakeTemplate)


def test_files_that_were_used_long_ago_are_forgotten(world: World) -> None:
    """A folder whose files come and go, one task each."""
    world.templates.says(Ready())
    most = 0
    for number in range(3_000):
        world.templates._is_single_task(
            PendingAttempt(msgspec.structs.replace(alone(), file=f"{number}.py")), ("/dags", f"{number}.py")
        )
        world.clock.advance(SECOND)
        most = max(most, len(world.templates._used))
    assert most <= USED_MIN + 20


def test_base_image_that_stands_still_is_ended_and_its_order_given_again(world: World) -> None:
    world.templates.says(Ready())
    pending = PendingAttempt(alone())
    world.templates.run(pending)
    process = world.templates.base_process
    assert process is not None
    for _ in range(13):
        world.templates.look_for_stalls()
        assert process.poll() is None
        world.clock.advance(5 * SECOND)
    world.templates.look_for_stalls()
    world.templates.look_for_stalls()
    assert process.wait(10) == -signal.SIGKILL
    world.templates.die()
    assert pending.calls[-1] == "lost"


def test_base_image_that_answers_is_left_alone_after_a_pause_of_the_machine(world: World) -> None:
    world.templates.says(Ready())
    world.templates.run(PendingAttempt(alone()))
    process = world.templates.base_process
    assert process is not None
    world.templates.look_for_stalls()
    world.clock.advance(3600 * SECOND)
    world.templates.look_for_stalls()
    world.templates.says(Forked(1, 4711))
    world.clock.advance(3600 * SECOND)
    world.templates.look_for_stalls()
    world.templates.look_for_stalls()
    assert process.poll() is None
