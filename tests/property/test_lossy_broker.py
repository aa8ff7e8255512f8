"""The CeleryExecutor with a broker that loses, repeats, delays and reorders: every attempt starts once, and none waits for ever."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.executors.test_celery import World, work
from tradewind.executors.celery import EXTRA_SHARE, LOST_AFTER
from tradewind.model.moments import SECOND
from tradewind.wire.messages import Workload

WORKERS = {"one": 2, "two": 1}
ATTEMPTS = 8
ROUNDS = 200
"""Far more than are needed: each round without faults starts at least one attempt or makes messages older."""


class Broker(World):
    """The broker, the workers and the part of the scheduler that answers them.

    A worker takes a message only if it has a free slot, and asks for the start; the scheduler accepts one start of each attempt.
    """

    def __init__(self) -> None:
        super().__init__()
        self.queued: set[int] = set()
        self.starts: list[int] = []
        self.running: dict[int, str] = {}
        self.messages: list[Workload] = []
        for worker, slots in WORKERS.items():
            self.connect(worker, slots)

    def publish(self, workloads: Sequence[Workload]) -> None:
        super().publish(workloads)
        self.messages += workloads
        for workload in workloads:
            assert workload.slot in self.queued, "an attempt that has started was published"
        room = sum(slots + 2 * (1 + slots // EXTRA_SHARE) for slots in WORKERS.values())
        assert sum(self.executor.in_broker.values()) <= room

    def submit_new(self, slot: int) -> None:
        self.queued.add(slot)
        self.submit(slot)

    def submit_again(self) -> None:
        """The scheduler does so regularly, with all attempts that are queued."""
        self.executor.submit([work(slot) for slot in sorted(self.queued)])

    def deliver(self, index: int) -> None:
        free = [name for name, slots in WORKERS.items() if list(self.running.values()).count(name) < slots]
        if not self.messages or not free:
            return
        slot = self.messages.pop(index % len(self.messages)).slot
        if slot in self.queued:  # else it is a copy, and its start is refused
            self.queued.discard(slot)
            self.starts.append(slot)
            self.running[slot] = free[index % len(free)]
            self.start(slot, self.running[slot])

    def end(self, index: int) -> None:
        if self.running:
            slot = sorted(self.running)[index % len(self.running)]
            del self.running[slot]
            self.executor.release((1, slot))

    def lose(self, index: int) -> None:
        if self.messages:
            self.messages.pop(index % len(self.messages))

    def repeat(self, index: int) -> None:
        if self.messages:
            self.messages.append(self.messages[index % len(self.messages)])

    def forget_everything(self, index: int) -> None:
        self.messages.clear()

    def wait(self, index: int) -> None:
        self.clock.advance(index % 7 * SECOND)
        self.submit_again()


ACTIONS = (Broker.deliver, Broker.deliver, Broker.end, Broker.lose, Broker.repeat, Broker.forget_everything, Broker.wait)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(ACTIONS)), st.integers(0, 20)), max_size=60))
def test_each_attempt_starts_once_whatever_the_broker_does(steps: list[tuple[int, int]]) -> None:
    broker, left = Broker(), list(range(ATTEMPTS))
    for action, index in steps:
        if action == len(ACTIONS):
            if left:
                broker.submit_new(left.pop())
        else:
            ACTIONS[action](broker, index)
    for slot in left:
        broker.submit_new(slot)
    for _ in range(ROUNDS):
        if not broker.queued:
            break
        broker.deliver(0)
        broker.end(0)
        broker.clock.advance(LOST_AFTER + SECOND)
        broker.submit_again()
    assert sorted(broker.starts) == list(range(ATTEMPTS))
