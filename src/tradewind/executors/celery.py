"""CeleryExecutor: attempts are sent over a broker to the worker hosts beside Celery workers.

    submit ─▶ room for the queue? ─▶ publish ─▶ broker ─▶ Celery worker ─▶ its worker host asks for the start
                  └─ no: backlog ─▶ again when an attempt has started or ended, or a worker connects

A queue gets only as many messages as its connected workers have free slots, and a few more. The other attempts wait in the
scheduler, so that priorities and limits hold, and a broker that loses all messages loses few. After the start, everything is
as with the LocalExecutor: the worker hosts are connected to the scheduler.

A message counts as lost if it was published `LOST_AFTER` ago and a worker of its queue has had a free slot since then. If all
workers are full, the message may still wait in the broker. Workers that are busy all the time never have a free slot for so
long: a message counts as lost too if one of its queue has started that was published `LOST_AFTER` later, because brokers keep
the order. If a message was only late, its start is refused because the other copy has started.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tradewind.executors.local import KILL_GRACE, LocalExecutor, Port, Worker, may_always_live
from tradewind.executors.port import TaskKey
from tradewind.model.executor_names import CELERY
from tradewind.model.moments import SECOND
from tradewind.platform.clock import Clock
from tradewind.wire.messages import Accepted, AttemptKey, ToRunner, Workload
from tradewind.wire.worker_names import worker_of

LOST_AFTER = 5 * SECOND
EXTRA_SHARE = 10
"""Beyond its free slots, a worker holds one message, and one more for each group of this many slots. They start when a slot
becomes free. The same number waits in the broker.
"""


class Publisher(Protocol):
    """Publishes workloads to the broker, in another thread."""

    def publish(self, workloads: Sequence[Workload]) -> None:
        """Publish these workloads, each to its queue. Does not block, and raises no error."""


class _Published(NamedTuple):
    """An attempt in the broker."""

    fence: int
    queue: str
    at: int
    """Monotonic microseconds."""


class CeleryExecutor(LocalExecutor):
    """See the module. Attempts of other executors are handled as by `LocalExecutor`."""

    def __init__(
        self,
        publisher: Publisher,
        clock: Clock,
        may_live: Callable[[str], bool] = may_always_live,
        kill_grace: int = KILL_GRACE,
    ) -> None:
        super().__init__(may_live, kill_grace)
        self._publisher = publisher
        self._clock = clock
        self._published: dict[TaskKey, _Published] = {}
        self._in_broker: dict[str, int] = {}
        """Queue → number of its attempts in `_published`."""
        self._newest_started: dict[str, int] = {}
        """Queue → when the attempt that was published last, of those that have started, was published."""
        self._full_at: dict[str, int] = {}
        """Worker → the last time when it had no free slot, or connected; monotonic microseconds."""

    # --- workers ----------------------------------------------------------------------------------------------------

    def connect(
        self,
        host: str,
        send: Port,
        *,
        executors: Iterable[str] = (),
        queues: Iterable[str] = (),
        slots: int = 0,
        draining: bool = False,
        live: Iterable[AttemptKey] = (),
        triggers: Iterable[AttemptKey] = (),
    ) -> None:
        self._full_at[worker_of(host)] = self._clock.monotonic()
        held = list(live)
        for key in held:
            self._forget(key[:2])
        super().connect(
            host, send, executors=executors, queues=queues, slots=slots, draining=draining, live=held, triggers=triggers
        )

    def disconnect(self, worker: str) -> list[TaskKey]:
        self._full_at.pop(worker, None)
        return super().disconnect(worker)

    def serves(self, executor: str, queue: str) -> bool:
        if executor != CELERY:
            return super().serves(executor, queue)
        return any(True for _ in self._celery_workers(queue))

    def _celery_workers(self, queue: str) -> Iterable[Worker]:
        """The workers that get attempts of this queue from the broker."""
        return (
            one
            for one in self._workers.values()
            if CELERY in one.executors and not one.draining and one.load.serves(CELERY, queue)
        )

    # --- attempts ---------------------------------------------------------------------------------------------------

    def _place(self, workload: Workload, out: dict[str, list[Workload]]) -> None:
        task = (workload.run, workload.slot)
        known = self._published.get(task)
        if workload.executor == CELERY and known is not None and known.fence == workload.fence:
            if not self._is_lost(known):
                return
            self._forget(task)  # the next lines publish it again
        super()._place(workload, out)

    def _offer(self, workload: Workload, out: dict[str, list[Workload]], *, alone: bool = False) -> bool:
        if workload.executor != CELERY:
            return super()._offer(workload, out, alone=alone)
        if not self._has_room(workload.queue):
            return False
        task = (workload.run, workload.slot)
        former = worker_of(workload.previous_host) if workload.previous_host else None
        if former is not None and not alone and self._is_left_on(former, workload):
            self._held_back[task] = workload  # any worker may get it, so no process of the previous attempt may be left
            return True
        self._held_back.pop(task, None)
        self._published[task] = _Published(workload.fence, workload.queue, self._clock.monotonic())
        self._in_broker[workload.queue] = self._in_broker.get(workload.queue, 0) + 1
        self._publisher.publish((workload,))
        return True

    def _has_room(self, queue: str) -> bool:
        room = 0  # without a worker the message would only become old
        for worker in self._celery_workers(queue):
            slots = worker.slots or 1_000
            room += max(0, slots - len(worker.tasks)) + 2 * (1 + slots // EXTRA_SHARE)
        return self._in_broker.get(queue, 0) < room

    def _is_lost(self, known: _Published) -> bool:
        since = self._clock.monotonic() - LOST_AFTER
        if known.at > since:
            return False
        if self._newest_started.get(known.queue, 0) >= known.at + LOST_AFTER:
            return True
        return any(
            one.load.has_free_slot and self._full_at.get(one.name, 0) <= since for one in self._celery_workers(known.queue)
        )

    def _forget(self, task: TaskKey) -> bool:
        """Remove an attempt from the record of published attempts."""
        known = self._published.pop(task, None)
        if known is None:
            return False
        self._in_broker[known.queue] -= 1
        if not self._in_broker[known.queue]:
            del self._in_broker[known.queue]
        return True

    def answer(self, host: str, answer: ToRunner) -> None:
        """Pass an answer on. An accepted start also tells which worker has taken the attempt from the broker."""
        task = answer.attempt[:2]
        known = self._published.get(task)
        if known is not None and known.fence == answer.attempt[2] and isinstance(answer.body, Accepted):
            worker = self._workers.get(worker_of(host))
            self._newest_started[known.queue] = max(known.at, self._newest_started.get(known.queue, 0))
            self._forget(task)
            if worker is not None:
                self._assign(task, known.fence, worker)
            self._flush()
        super().answer(host, answer)

    def _assign(self, task: TaskKey, fence: int, worker: Worker) -> None:
        super()._assign(task, fence, worker)
        self._note_full(worker)

    def _note_full(self, worker: Worker) -> None:
        if not worker.load.has_free_slot:
            self._full_at[worker.name] = self._clock.monotonic()

    def release(self, task: TaskKey, *, flush: bool = True) -> None:
        place = self._places.get(task)
        if place is not None:
            self._note_full(self._workers[place.worker])  # the worker had no free slot until now
        was_published = self._forget(task)
        super().release(task, flush=flush)
        if was_published and flush and self._backlog:
            self._flush()

    def retain(self, tasks: Collection[TaskKey]) -> None:
        for task in [one for one in self._published if one not in tasks]:
            self._forget(task)
        super().retain(tasks)

    @property
    def in_broker(self) -> Mapping[str, int]:
        """Queue → number of attempts that were published and have not started."""
        return dict(self._in_broker)
