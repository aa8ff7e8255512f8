"""The pool of a Celery worker: it hands each message to the worker host beside it, and has no processes of its own.

Celery consumes queues, acknowledges messages, answers `celery inspect`, and sends events for flower. The worker host starts
processes, captures logs and asks the scheduler, as it does without Celery. A message is acknowledged when the scheduler has
accepted or refused the start, so a broker never repeats a long task; the Celery task ends with the attempt.

With Redis nothing is acknowledged: the scheduler sends a lost message again, and kombu's records of unacknowledged messages cost
two more requests to the broker for each message.

    Celery: on_apply ─ Offer ─▶ worker host          worker host ─ OfferState ─▶ accept_callback, callback
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec
from billiard.einfo import ExceptionInfo
from celery import Celery
from celery.concurrency.base import BasePool
from celery.exceptions import Ignore, Reject
from celery.worker.request import Request

from tradewind.executors.celery import EXTRA_SHARE
from tradewind.executors.celery_publisher import celery_queue, is_redis
from tradewind.observe.log import Log
from tradewind.wire.celery_messages import TASK_NAME, Offer, OfferState, StopOffer, decode_offer_state
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import encode

log = Log("celery")

CONNECT_SECONDS = 20.0
"""How long the worker host may take to start."""
RESTART_SECONDS = 1.0
COLD_SECONDS = 20.0
"""How long the worker host may take to stop its tasks at once."""
VISIBILITY_SECONDS = 24 * 3600
"""After this time Redis gives a message that is not acknowledged to another worker. Tradewind acknowledges its messages at the
start.
"""


class HostCommand(NamedTuple):
    """How the worker host is started."""

    words: Sequence[str]
    environment: dict[str, str]
    socket: str


class AttemptFailed(Exception):
    """The attempt failed; the message is the reason. Celery and flower show it."""


class _Job:
    """One Celery task in the pool. Celery keeps it as the result of `apply_async`."""

    def __init__(self, pool: HostPool, id: str, envelope: str, accept: Callable[..., None], done: Callable[..., None]) -> None:
        self.pool = pool
        self.id = id
        self.envelope = envelope
        self.accept = accept
        self.done = done
        self.started = 0.0
        """When the start was decided, monotonic seconds; 0: not yet."""

    def terminate(self, number: int) -> None:
        """Stop the attempt: its Celery task was revoked."""
        self.pool.revoke(self.id)


class AttemptRequest(Request):  # type: ignore[misc]
    """A message as Celery handles it. Its acknowledgement may come when its connection is lost; then kombu raises whatever a
    half-closed channel raises, which would end the Celery worker and its tasks. The broker gives the message to a worker again,
    and the scheduler refuses a second start.
    """

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self._connection_errors = (Exception,)  # these are logged

    def acknowledge(self) -> None:
        if self._is_taken_once():
            self.acknowledged = True
        super().acknowledge()

    def reject(self, requeue: bool = False) -> None:
        if self._is_taken_once():
            self.acknowledged = True
        super().reject(requeue)

    def _is_taken_once(self) -> bool:
        """Whether the broker has forgotten the message when it was taken. See `make_app`."""
        return bool(self.task.app.conf.tradewind_no_ack)


class HostPool(BasePool):  # type: ignore[misc]
    """See the module. The worker host is started with the pool and ends with it."""

    command: ClassVar[HostCommand]
    """Set before the Celery worker starts."""
    signal_safe = False
    task_join_will_block = False

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.limit: int
        self._jobs: dict[str, _Job] = {}
        self._host: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._reader = FrameReader()
        self._hub: Any = None
        self._stopping = False

    # --- the worker host ----------------------------------------------------------------------------------------------

    def on_start(self) -> None:
        self._start_host()

    def _start_host(self) -> None:
        """Start the worker host and connect to it.

        Raises:
            RuntimeError: it ended, or did not answer in time.
        """
        self._host = subprocess.Popen(
            [*self.command.words, str(os.getpid())], env=self.command.environment, stdin=subprocess.DEVNULL
        )
        until = time.monotonic() + CONNECT_SECONDS
        while True:
            link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                link.connect(self.command.socket)
                break
            except OSError:
                link.close()
            if self._host.poll() is not None:
                raise RuntimeError(f"the worker host ended with exit code {self._host.returncode}; see its log")
            if time.monotonic() > until:
                raise RuntimeError(f"the worker host did not start within {CONNECT_SECONDS:.0f} s")
            time.sleep(0.02)
        self._link, self._reader = link, FrameReader()
        for job in self._jobs.values():
            self._send(Offer(job.id, job.envelope))

    def register_with_event_loop(self, hub: Any) -> None:
        """Listen to the worker host in Celery's event loop."""
        self._hub = hub
        self._listen()

    def _listen(self) -> None:
        if self._hub is not None and self._link is not None:
            self._hub.add_reader(self._link.fileno(), self._readable)

    def _readable(self, *words: Any) -> None:
        link = self._link
        if link is None:
            return
        try:
            data = link.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        for document in self._reader.feed(data):
            try:
                self._on_state(decode_offer_state(document))
            except msgspec.MsgspecError as error:
                log.error("a message of the worker host cannot be read", error=str(error))

    def _lost(self) -> None:
        """Handle the end of the worker host: start another one. The scheduler decides what follows for its attempts."""
        if self._link is not None:
            if self._hub is not None:
                self._hub.remove(self._link.fileno())
            self._link.close()
            self._link = None
        for job in [one for one in self._jobs.values() if one.started]:
            self._finish(job, AttemptFailed("the worker host that ran the attempt has ended"))
        if not self._stopping and self._hub is not None:
            log.error("the worker host has ended; another one is started")
            self._hub.call_later(RESTART_SECONDS, self._restart)

    def _restart(self) -> None:
        if self._stopping:
            return
        try:
            self._start_host()
        except (OSError, RuntimeError) as error:
            log.error("the worker host cannot be started; it is tried again", error=str(error))
            self._hub.call_later(10 * RESTART_SECONDS, self._restart)
            return
        self._listen()

    def _send(self, message: object) -> None:
        if self._link is not None:
            try:
                self._link.sendall(frame(encode(message)))
            except OSError:
                pass  # `_readable` notices the end of the worker host; the offers are sent again

    # --- tasks --------------------------------------------------------------------------------------------------------

    def on_apply(
        self,
        target: Any,
        args: Sequence[Any] = (),
        kwargs: Any = None,
        callback: Any = None,
        accept_callback: Any = None,
        **options: Any,
    ) -> _Job:
        """Offer the attempt of a message to the worker host."""
        _, id, _, body, *_ = args
        job = _Job(self, id, "", accept_callback, callback)
        try:
            job.envelope = str(json.loads(body)[0][0])
        except (ValueError, LookupError, TypeError) as error:
            self._finish(job, Ignore(f"the message has no attempt: {error}"))
            return job
        self._jobs[id] = job
        self._send(Offer(id, job.envelope))
        return job

    def revoke(self, id: str) -> None:
        """Stop an attempt."""
        if id in self._jobs:
            self._send(StopOffer(id))

    def _on_state(self, state: OfferState) -> None:
        job = self._jobs.get(state.id)
        if job is None:
            return
        if state.state == "started":
            if not job.started:
                job.started = time.monotonic()
                job.accept(state.pid, job.started)
        elif state.state == "busy":
            self._finish(job, Reject("the worker stops", requeue=True))
        elif state.state == "refused":
            self._finish(job, Ignore(state.reason or "the scheduler refused the start: the attempt is not current"))
        else:
            self._finish(job, None if state.ok else AttemptFailed(state.reason))

    def _finish(self, job: _Job, error: Exception | None) -> None:
        """Tell Celery the end of a task."""
        self._jobs.pop(job.id, None)
        runtime = time.monotonic() - job.started if job.started else 0.0
        if error is None:
            job.done((0, None, runtime))
            return
        try:
            raise error
        except Exception:
            information = ExceptionInfo()
        job.done((1, information, runtime))

    def terminate_job(self, pid: int, signal: Any = None) -> None:
        """Nothing to do: Celery also calls `_Job.terminate`, which stops the attempt."""

    # --- the end ------------------------------------------------------------------------------------------------------

    def on_stop(self) -> None:
        """Warm shutdown: running tasks end first."""
        self._end_host(signal.SIGTERM, None)

    def on_close(self) -> None:
        """Celery calls this when no new tasks will come."""

    def on_terminate(self) -> None:
        """Cold shutdown: running tasks are stopped."""
        self._end_host(signal.SIGINT, COLD_SECONDS)

    def _end_host(self, number: int, seconds: float | None) -> None:
        self._stopping = True
        host = self._host
        if host is None:
            return
        if host.poll() is None:
            host.send_signal(number)
        if self._link is not None:
            self._link.settimeout(seconds)
            try:
                while data := self._link.recv(65536):
                    for document in self._reader.feed(data):
                        self._on_state(decode_offer_state(document))
            except (OSError, msgspec.MsgspecError):
                pass
        try:
            host.wait(seconds)
        except subprocess.TimeoutExpired:
            host.kill()
            host.wait()

    def grow(self, n: int) -> None:
        """Raise the limit of attempts; called by Celery's autoscaler."""
        self.limit += n

    def shrink(self, n: int) -> None:
        """Lower the limit of attempts; called by Celery's autoscaler."""
        self.limit = max(1, self.limit - n)

    @property
    def num_processes(self) -> int:
        """Maximum number of attempts that Celery consumes at a time. It is a little more than the slots, so that no slot stays
        empty.
        """
        return self.limit + 1 + self.limit // EXTRA_SHARE

    def _get_info(self) -> dict[str, Any]:
        return {**super()._get_info(), "attempts": sorted(self._jobs), "worker-host": self._host.pid if self._host else None}


def make_app(broker: str, queues: Sequence[str] = ()) -> Celery:
    """Return the Celery app of a deployment.

    Args:
        broker: URL of the broker.
        queues: that a worker consumes.
    """
    app = Celery("tradewind", broker=broker)
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=False,
        task_serializer="json",
        accept_content=["json"],
        worker_pool=f"{__name__}:HostPool",
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=broker.startswith("redis"),
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,  # events cost three messages for each task; flower enables them when it needs them
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"visibility_timeout": VISIBILITY_SECONDS},
        task_queues=[celery_queue(name, no_ack=is_redis(broker)) for name in queues],
        tradewind_no_ack=is_redis(broker),
        task_default_queue=queues[0] if queues else "default",
        task_create_missing_queues=True,
    )

    @app.task(name=TASK_NAME, ignore_result=True, Request=AttemptRequest, shared=False)  # type: ignore[untyped-decorator]
    def attempt(envelope: str) -> None:
        raise AttemptFailed("attempts run only in the pool of `tradewind celery worker`; start the worker with that command")

    return app
