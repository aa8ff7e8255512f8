"""What the CeleryExecutor publishes, how much of it, and when it publishes again."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from tradewind.executors import celery_publisher
from tradewind.executors.celery import LOST_AFTER, CeleryExecutor
from tradewind.executors.celery_publisher import Message
from tradewind.model.executor_names import CELERY, LOCAL
from tradewind.platform.clock import ManualClock
from tradewind.wire.messages import Accepted, AttemptKey, FromScheduler, Refused, Submit, ToRunner, Withdraw, Workload


class World:
    """A CeleryExecutor, what it has published, and what its workers were sent."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.published: list[Workload] = []
        self.sent: dict[str, list[FromScheduler]] = {}
        self.executor = CeleryExecutor(self, self.clock)

    def publish(self, workloads: Sequence[Workload]) -> None:
        self.published += workloads

    def connect(
        self, worker: str, slots: int = 2, queues: tuple[str, ...] = ("default",), live: tuple[AttemptKey, ...] = ()
    ) -> None:
        box = self.sent.setdefault(worker, [])
        self.executor.connect(f"{worker}.p1", box.append, executors=(CELERY,), queues=queues, slots=slots, live=live)

    def submit(self, *slots: int, queue: str = "default", executor: str = CELERY, fence: int = 1, previous: str = "") -> None:
        self.executor.submit([work(slot, queue, executor, fence, previous) for slot in slots])

    def start(self, slot: int, worker: str = "one", fence: int = 1) -> None:
        """The scheduler has accepted the start of an attempt."""
        self.executor.answer(f"{worker}.p1", ToRunner((1, slot, fence), Accepted(1, "n")))

    @property
    def slots(self) -> list[int]:
        """Slots of the published attempts, in order."""
        return [one.slot for one in self.published]


def work(slot: int, queue: str = "default", executor: str = CELERY, fence: int = 1, previous: str = "") -> Workload:
    return Workload(1, slot, fence, "etl", f"t{slot}", "r1", queue=queue, executor=executor, previous_host=previous)


@pytest.fixture
def world() -> World:
    return World()


def test_nothing_is_published_without_a_worker_of_the_queue(world: World) -> None:
    world.connect("one", queues=("far",))
    world.submit(1)
    assert world.slots == []
    assert not world.executor.serves(CELERY, "default")
    world.connect("two", queues=("default",))
    assert world.slots == [1]


def test_a_worker_host_without_celery_does_not_count(world: World) -> None:
    """The worker host of `standalone` takes every executor, but nothing hands it messages of the broker."""
    sent: list[FromScheduler] = []
    world.executor.connect("w1.p1", sent.append, slots=8)
    world.submit(1)
    assert (world.slots, sent, world.executor.serves(CELERY, "default")) == ([], [], False)
    world.submit(2, executor=LOCAL)
    assert [type(one) for one in sent] == [Submit]
    assert world.executor.serves(LOCAL, "default")


def test_a_queue_gets_two_messages_more_than_there_are_free_slots(world: World) -> None:
    world.connect("one", slots=2)
    world.submit(*range(10))
    assert world.slots == [0, 1, 2, 3]
    world.start(0)
    world.start(1)
    assert world.slots == [0, 1, 2, 3]
    world.executor.release((1, 0))
    assert world.slots == [0, 1, 2, 3, 4]


def test_the_order_of_the_scheduler_holds(world: World) -> None:
    world.connect("one", slots=1)
    world.submit(5, 3, 9, 1)
    for slot in (5, 3, 9, 1):
        world.start(slot)
        world.executor.release((1, slot))
    assert world.slots == [5, 3, 9, 1]


def test_a_waiting_attempt_that_is_not_current_any_more_is_not_published(world: World) -> None:
    world.connect("one", slots=1)
    world.submit(0, 1, 2, 3, 4)
    assert world.slots == [0, 1, 2]
    world.executor.release((1, 3))
    world.executor.release((1, 0))
    assert world.slots == [0, 1, 2, 4]
    world.executor.retain({(1, 4)})
    assert world.executor.in_broker == {"default": 1}


def test_an_attempt_is_published_once(world: World) -> None:
    world.connect("one")
    for _ in range(5):
        world.submit(1)
    assert world.slots == [1]


def test_a_message_is_lost_if_a_worker_was_idle_meanwhile(world: World) -> None:
    world.connect("one", slots=2)
    world.submit(1)
    world.clock.advance(LOST_AFTER - 1)
    world.submit(1)
    assert world.slots == [1]
    world.clock.advance(1)
    world.submit(1)
    assert world.slots == [1, 1]
    world.submit(1)
    assert world.slots == [1, 1]


def test_a_message_that_waits_for_a_full_worker_is_not_lost(world: World) -> None:
    world.connect("one", slots=1)
    world.submit(1, 2)
    world.start(1)
    world.clock.advance(100 * LOST_AFTER)
    world.submit(2)
    assert world.slots == [1, 2]
    world.executor.release((1, 1))
    world.clock.advance(LOST_AFTER - 1)
    world.submit(2)
    assert world.slots == [1, 2]
    world.clock.advance(1)
    world.submit(2)
    assert world.slots == [1, 2, 2]


def test_a_message_is_lost_if_later_ones_have_started(world: World) -> None:
    """Workers that are full again and again never have a free slot for long enough."""
    world.connect("one", slots=1)
    world.submit(1, 2)
    world.start(1)
    for former, slot in ((1, 3), (3, 4)):
        world.executor.release((1, former))
        world.clock.advance(LOST_AFTER // 2)
        world.submit(slot, 2)
        world.start(slot)
    assert world.slots == [1, 2, 3, 4]
    for _ in range(2):
        world.submit(2)
    assert world.slots == [1, 2, 3, 4, 2]


def test_a_refused_start_of_a_copy_changes_nothing(world: World) -> None:
    world.connect("one")
    world.submit(1)
    world.start(1)
    world.executor.answer("two.p1", ToRunner((1, 1, 1), Refused(1, "another process")))
    assert world.executor.worker_of((1, 1, 1)) == "one"


def test_what_a_worker_holds_after_a_restart_of_the_scheduler_is_not_published(world: World) -> None:
    world.connect("one", live=((1, 1, 1),))
    world.submit(1)
    assert world.slots == []
    assert world.executor.worker_of((1, 1, 1)) == "one"


def test_the_next_attempt_waits_for_the_end_of_the_last_one(world: World) -> None:
    """Any worker may get the message, so nothing of the attempt before may be left anywhere."""
    world.connect("one")
    world.connect("two")
    world.submit(1, fence=2, previous="one.p1")
    assert world.slots == []
    assert [type(one) for one in world.sent["one"]] == [Withdraw]
    world.executor.withdrawn("one", (1, 1, 2))
    assert world.slots == [1]


class _AwayBroker:
    """A broker that refuses messages until it is told otherwise."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.tries = threading.Semaphore(0)
        self.is_back = threading.Event()
        self.arrived = threading.Event()

    def send(self, messages: Sequence[tuple[str, Message]]) -> dict[str, str]:
        self.tries.release()
        if not self.is_back.is_set():
            raise OSError("away")
        self.sent += [headers["id"] for _, (headers, _) in messages]
        self.arrived.set()
        return {}

    def close(self) -> None: ...


def test_a_broker_that_comes_back_gets_each_attempt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The executor publishes an attempt again every few seconds while the broker is away. After an hour there are not hundreds."""
    broker = _AwayBroker()
    monkeypatch.setattr(celery_publisher, "_RedisSender", lambda url: broker)
    monkeypatch.setattr(celery_publisher, "FIRST_RETRY_US", 1)
    monkeypatch.setattr(celery_publisher, "LONGEST_RETRY_US", 1)
    publisher = celery_publisher.CeleryPublisher("redis://nowhere", b"key")
    try:
        for _ in range(5):
            publisher.publish([work(1), work(2)])
            assert broker.tries.acquire(timeout=10)
        broker.is_back.set()
        assert broker.arrived.wait(10)
        broker.arrived.clear()
        publisher.publish([work(3)])
        assert broker.arrived.wait(10)
    finally:
        publisher.stop()
    assert sorted(broker.sent) == ["tradewind-1-1-1", "tradewind-1-2-1", "tradewind-1-3-1"]


class _PickyBroker(_AwayBroker):
    """A broker that refuses the queue `far` twice."""

    def send(self, messages: Sequence[tuple[str, Message]]) -> dict[str, str]:
        names = {name for name, _ in messages}
        refused = {"far": "it has other arguments"} if "far" in names and self.tries.acquire(blocking=False) else {}
        self.sent += [headers["id"] for name, (headers, _) in messages if name not in refused]
        if "tradewind-1-2-1" in self.sent:
            self.arrived.set()
        return refused


def test_a_queue_that_the_broker_refuses_does_not_hold_up_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = _PickyBroker()
    broker.tries.release(2)
    monkeypatch.setattr(celery_publisher, "_RedisSender", lambda url: broker)
    monkeypatch.setattr(celery_publisher, "REFUSED_SECONDS", 0.01)
    publisher = celery_publisher.CeleryPublisher("redis://nowhere", b"key")
    try:
        publisher.publish([work(1), work(2, queue="far"), work(3)])
        assert broker.arrived.wait(10)
    finally:
        publisher.stop()
    assert broker.sent == ["tradewind-1-1-1", "tradewind-1-3-1", "tradewind-1-2-1"]
    assert caplog.text.count("the broker refuses a queue") == 1
