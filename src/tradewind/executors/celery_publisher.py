"""Publishes attempts to the broker of Celery, in a thread beside the scheduler's loop.

This module builds the messages of Celery's protocol 2 itself, because each `apply_async` costs the scheduler's process almost
a millisecond. With Redis, all waiting messages are sent in one pipeline. With other brokers, kombu sends them one after the
other on one channel. An unavailable broker delays messages and loses none: they wait in this process, each attempt once, however
often the executor publishes it again meanwhile.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import random
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.observe.log import Log
from tradewind.platform.backoff import Backoff
from tradewind.wire.celery_messages import TASK_NAME, seal, task_id
from tradewind.wire.messages import AttemptKey, Workload

log = Log("celery")

BATCH_MAX = 200
FIRST_RETRY_US, LONGEST_RETRY_US = 200_000, 5_000_000
REFUSED_SECONDS = 5.0
"""Time until attempts of a queue that the broker refuses are tried again."""
OPERATION_SECONDS = 10.0
"""If the broker does not answer for this time, the connection is closed."""
STOP_SECONDS = 2.0


class CeleryPublisher:
    """See the module and `executors.celery.Publisher`.

    Args:
        broker: URL of the broker.
        key: signs the envelopes.
    """

    def __init__(self, broker: str, key: bytes) -> None:
        self._broker = broker
        self._key = key
        self._queue: queue.SimpleQueue[Workload | None] = queue.SimpleQueue()
        self._waiting: set[AttemptKey] = set()
        """Attempts that the broker has not confirmed yet."""
        self._stopping = threading.Event()
        self._origin = f"{os.getpid()}@{socket.gethostname()}"
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._started = False

    def publish(self, workloads: Sequence[Workload]) -> None:
        """Queue these workloads for the thread, which publishes them."""
        if not self._started:
            self._started = True
            self._thread.start()
        for workload in workloads:
            if workload.key not in self._waiting:
                self._waiting.add(workload.key)
                self._queue.put(workload)

    def stop(self) -> None:
        """End the thread. The next scheduler publishes the remaining workloads."""
        self._stopping.set()
        if self._started:
            self._queue.put(None)
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        waits = Backoff(FIRST_RETRY_US, LONGEST_RETRY_US, random.random)
        sender: _RedisSender | _KombuSender | None = None
        batch: list[Workload] = []
        refused = _Refused()
        while not self._stopping.is_set():
            if not batch:
                batch = self._next_batch(refused.seconds()) + refused.take_due()
            if not batch:
                continue
            try:
                if sender is None:
                    sender = _RedisSender(self._broker) if is_redis(self._broker) else _KombuSender(self._broker)
                why = sender.send([(one.queue, self._message(one)) for one in batch])
                refused.add([one for one in batch if one.queue in why], why)
                self._waiting.difference_update(one.key for one in batch if one.queue not in why)
                batch = []
                waits.succeeded()
            except Exception as error:
                # every library has its own errors; after each of them the messages have to be sent again
                if waits.failures == 0:
                    log.warning("attempts cannot be published; trying again", error=f"{type(error).__name__}: {error}")
                if sender is not None:
                    sender.close()
                    sender = None
                self._stopping.wait(waits.failed() / 1e6)
        if sender is not None:
            sender.close()

    def _next_batch(self, seconds: float | None) -> list[Workload]:
        """Wait for work, at most this long, and take all waiting workloads."""
        try:
            found = [self._queue.get(timeout=seconds)]
        except queue.Empty:
            return []
        while len(found) < BATCH_MAX and not self._queue.empty():
            found.append(self._queue.get())
        return [one for one in found if one is not None]

    def _message(self, workload: Workload) -> Message:
        return make_message(workload, self._key, self._origin)


class _Refused:
    """Attempts whose queue the broker refuses, for example because it has the queue with other arguments. They are tried again
    later, and do not hold up other queues.
    """

    def __init__(self) -> None:
        self._workloads: list[Workload] = []
        self._logged: dict[str, str] = {}
        self._due = 0.0

    def add(self, workloads: Sequence[Workload], why: Mapping[str, str]) -> None:
        """Add workloads.

        Args:
            why: queue → the error of the broker.
        """
        for name, error in why.items():
            if self._logged.get(name) != error:
                self._logged[name] = error
                log.error("the broker refuses a queue; its attempts wait and are tried again", queue=name, error=error)
        if workloads:
            self._workloads += workloads
            self._due = time.monotonic() + REFUSED_SECONDS

    def seconds(self) -> float | None:
        """Time until the next try; None: nothing waits."""
        return max(0.0, self._due - time.monotonic()) if self._workloads else None

    def take_due(self) -> list[Workload]:
        """Remove and return what is tried again now."""
        if time.monotonic() < self._due:
            return []
        taken, self._workloads = self._workloads, []
        return taken


Message = tuple[dict[str, Any], bytes]
"""(headers, body) of a Celery task."""


def make_message(workload: Workload, key: bytes, origin: str) -> Message:
    """Return headers and body of the Celery task of an attempt."""
    number = task_id(workload.key)
    index = f"[{workload.map_index}]" if workload.map_index >= 0 else ""
    headers = {
        "lang": "py",
        "task": TASK_NAME,
        "id": number,
        "root_id": number,
        "parent_id": None,
        "group": None,
        "shadow": f"{workload.dag_id}.{workload.task_id}{index}",
        "retries": 0,
        "eta": None,
        "expires": None,
        "timelimit": [None, None],
        "argsrepr": f"({workload.run_id!r}, try {workload.try_number})",
        "kwargsrepr": "{}",
        "origin": origin,
        "ignore_result": True,
    }
    embedded = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    return headers, json.dumps([[seal(workload, key)], {}, embedded]).encode()


def is_redis(broker: str) -> bool:
    """Whether this is the URL of a single Redis server. (Kombu handles sentinels and clusters.)"""
    return broker.partition("://")[0] in ("redis", "rediss", "redis+socket", "unix")


class _RedisSender:
    """Appends messages to the lists that kombu's Redis transport reads."""

    def __init__(self, broker: str) -> None:
        import redis  # lazy import: an extra

        url = broker.replace("redis+socket://", "unix://", 1)
        self._client = redis.Redis.from_url(
            url, socket_timeout=OPERATION_SECONDS, socket_connect_timeout=OPERATION_SECONDS, retry=None
        )

    def send(self, messages: Sequence[tuple[str, Message]]) -> dict[str, str]:
        """See `_KombuSender.send`; Redis refuses no queue."""
        pipeline = self._client.pipeline(transaction=False)
        for queue_name, (headers, body) in messages:
            pipeline.lpush(queue_name, redis_document(queue_name, headers, body))
        pipeline.execute()
        return {}

    def close(self) -> None:
        self._client.close()


def redis_document(queue_name: str, headers: dict[str, Any], body: bytes) -> str:
    """Return a message as kombu's virtual transports store it."""
    return json.dumps(
        {
            "body": base64.b64encode(body).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": headers,
            "properties": {
                "correlation_id": headers["id"],
                "delivery_mode": 2,
                "delivery_info": {"exchange": "", "routing_key": queue_name},
                "priority": 0,
                "body_encoding": "base64",
                "delivery_tag": os.urandom(16).hex(),
            },
        }
    )


class _KombuSender:
    """Sends messages through kombu, for RabbitMQ and every other broker."""

    def __init__(self, broker: str) -> None:
        import kombu  # lazy import: an extra

        options = {"confirm_publish": True} if broker.startswith(("amqp", "pyamqp")) else {}
        self._connection = kombu.Connection(broker, connect_timeout=OPERATION_SECONDS, transport_options=options, heartbeat=0)
        self._producer = kombu.Producer(self._connection.channel())
        self._declared: set[str] = set()

    def send(self, messages: Sequence[tuple[str, Message]]) -> dict[str, str]:
        """Send messages, each to its queue. Returns the queues that the broker refused, with the reason."""
        import kombu  # lazy import: an extra

        refused: dict[str, str] = {}
        for queue_name, message in messages:
            if queue_name not in refused:
                try:
                    self._publish(queue_name, message)
                except self._connection.channel_errors as error:
                    refused[queue_name] = str(error)
                    self._producer = kombu.Producer(self._connection.channel())  # the broker has closed the other one
        return refused

    def _publish(self, queue_name: str, message: Message) -> None:
        headers, body = message
        if queue_name not in self._declared:
            celery_queue(queue_name)(self._producer.channel).declare()
            self._declared.add(queue_name)
        self._producer.publish(
            body,
            exchange="",
            routing_key=queue_name,
            headers=headers,
            content_type="application/json",
            content_encoding="utf-8",
            correlation_id=headers["id"],
            delivery_mode=2,
            timeout=OPERATION_SECONDS,
        )

    def close(self) -> None:
        try:
            self._connection.release()
        except Exception as error:
            log.debug("the connection to the broker could not be closed", error=str(error))


def celery_queue(name: str, *, no_ack: bool = False) -> Any:
    """Return the queue as scheduler and workers declare it. RabbitMQ refuses a second declaration that differs.

    Args:
        no_ack: a worker does not acknowledge messages.
    """
    import kombu  # lazy import: an extra

    return kombu.Queue(name, kombu.Exchange(name, type="direct"), routing_key=name, durable=True, no_ack=no_ack)
