"""The broker of a CeleryExecutor, which loses, repeats and delays messages, and the Celery workers that consume it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tradewind.executors.celery import EXTRA_SHARE, Publisher
from tradewind.model.moments import MINUTE, SECOND
from tradewind.simulation.cables import BROKER, Wire
from tradewind.simulation.gateways import KEY, MachineHost
from tradewind.simulation.timeline import Process, draw_delay
from tradewind.wire.celery_messages import Offer, OfferState, decode_offer_state, seal, task_id
from tradewind.wire.messages import Workload, encode

if TYPE_CHECKING:
    from tradewind.simulation.machine_world import MachineWorld


class Message(NamedTuple):
    """An attempt in the broker."""

    id: str
    """Of the Celery task."""
    envelope: str


class Broker:
    """One queue. It outlives all schedulers and workers."""

    def __init__(self, world: MachineWorld) -> None:
        self.world = world
        self.rng: random.Random = world.timeline.stream("broker")
        self.queue: list[Message] = []
        self.down_until = 0
        self.pools: dict[str, CeleryPool] = {}
        """Worker → its Celery worker."""

    def publisher(self, scheduler: Process) -> Publisher:
        return _Publisher(self, scheduler)

    def publish(self, message: Message) -> None:
        world, faults, rng = self.world, self.world.machine_faults, self.rng
        if not world.recovering:
            if rng.random() < faults.broker_loses:
                world.count("the broker lost a message")
                return
            if rng.random() < faults.broker_repeats:
                world.count("the broker repeated a message")
                world.timeline.after(rng.randrange(2 * MINUTE), None, lambda: self._arrive(message))
            if rng.random() < faults.broker_delays:
                world.count("the broker delayed a message")
                world.timeline.after(rng.randrange(MINUTE), None, lambda: self._arrive(message))
                return
        world.timeline.after(draw_delay(rng, 2_000), None, lambda: self._arrive(message))

    def _arrive(self, message: Message) -> None:
        self.queue.append(message)
        self.deliver()

    def flush(self) -> None:
        """Lose every message."""
        self.queue.clear()

    def deliver(self) -> None:
        """Give messages to Celery workers that have room for them."""
        timeline, cables = self.world.timeline, self.world.cables
        if self.down_until > timeline.now:
            return
        while self.queue:
            ready = [pool for pool in self.pools.values() if pool.has_room and cables.reaches(pool.machine, BROKER)]
            if not ready:
                return
            pool, message = self.rng.choice(ready), self.queue.pop(0)
            pool.jobs[message.id] = message
            timeline.after(500, pool, lambda pool=pool, message=message: pool.take(message))  # type: ignore[misc]

    def look(self) -> None:
        """Consumers come back by themselves."""
        self.deliver()
        self.world.timeline.after(SECOND, None, self.look)


class _Publisher:
    """The publisher of one scheduler. While it cannot reach the broker, its messages wait."""

    def __init__(self, broker: Broker, scheduler: Process) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._waiting: list[Message] = []

    def publish(self, workloads: Sequence[Workload]) -> None:
        for workload in workloads:
            self._broker.world.was_handed_over(workload)
            self._waiting.append(Message(task_id(workload.key), seal(workload, KEY)))
        self._send()

    def _send(self) -> None:
        broker, timeline = self._broker, self._broker.world.timeline
        if not self._waiting:
            return
        if broker.down_until > timeline.now or not broker.world.reaches(self._scheduler, BROKER):
            timeline.after(SECOND, self._scheduler, self._send)
            return
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            broker.publish(message)


class CeleryPool(Process):
    """A Celery worker, as `worker.celery_pool.HostPool`: it hands messages to the worker host beside it."""

    def __init__(self, world: MachineWorld, worker: str, number: int, slots: int, returns: bool) -> None:
        self.machine = world.machine_of_worker(worker)
        super().__init__(world.timeline, f"celery{number}", world.clock_of(self.machine))
        self.world = world
        self.worker = worker
        self.jobs: dict[str, Message] = {}
        self._started: set[str] = set()
        self._limit = (slots or 1_000) + 1 + (slots or 1_000) // EXTRA_SHARE
        self._returns = returns
        """Whether the broker gives unacknowledged messages to another worker."""
        self._wire: Wire | None = None
        self.on_death.append(self._ended)

    @property
    def has_room(self) -> bool:
        return self.alive and len(self.jobs) < self._limit

    def host_begins(self, host: MachineHost) -> None:
        """A worker host has started beside this Celery worker."""
        offers = host.offers
        assert offers is not None
        here, there = self.world.wires.join(Wire(self.world.wires, self), Wire(self.world.wires, host.process))
        connection = there.connection
        offers.accept(connection)
        there.listen(lambda document: offers.on_document(connection, document), lambda: offers.on_close(connection))
        here.listen(self._on_state, self._host_lost)
        self._wire = here
        for message in list(self.jobs.values()):
            self.take(message)

    def take(self, message: Message) -> None:
        if self._wire is not None and message.id in self.jobs:
            self._wire.send(encode(Offer(message.id, message.envelope)))

    def _host_lost(self) -> None:
        self._wire = None
        for id in self._started:
            self.jobs.pop(id, None)
        self._started.clear()

    def _on_state(self, document: bytes) -> None:
        state: OfferState = decode_offer_state(document)
        message = self.jobs.get(state.id)
        if message is None:
            return
        if state.state == "started":
            self._started.add(state.id)
            return
        del self.jobs[state.id]
        self._started.discard(state.id)
        if state.state == "busy":
            self.world.timeline.after(SECOND, None, lambda: self._give_back(message))
        broker = self.world.broker
        if broker is not None:
            broker.deliver()

    def _give_back(self, message: Message) -> None:
        broker = self.world.broker
        if broker is not None:
            broker.queue.insert(0, message)
            broker.deliver()

    def _ended(self) -> None:
        """The Celery worker was killed: the broker has what it had not acknowledged, or nobody has it."""
        for id, message in self.jobs.items():
            if id not in self._started and self._returns:
                self._give_back(message)
