"""Creates, watches and deletes the pods of the KubernetesExecutor, in threads beside the scheduler's loop.

    thread `pods`          decides with `pod_registry.PodRegistry` which requests are due
    threads `pod-request`  send them, at most `PodLimits.creates` at a time
    thread `pod-watch`     lists the pods, then follows their changes; after a break it continues, after 410 it lists again

The scheduler's loop only leaves notes here and is woken through a pipe. An API server that is away delays pods and loses nothing.
"""

from __future__ import annotations

import os
import queue
import random
import threading
from collections.abc import Callable, Collection

from tradewind.executors.pod_port import Api, Refused
from tradewind.executors.pod_registry import CONFLICT, Create, Delete, PodLimits, PodNews, PodRegistry, Request
from tradewind.executors.pod_spec import Pod, PodSettings, make_pod
from tradewind.executors.pod_status import PodStatus, read_pod
from tradewind.executors.port import TaskKey
from tradewind.model.moments import DAY, SECOND
from tradewind.observe.log import Log
from tradewind.platform.backoff import Backoff
from tradewind.platform.clock import Clock
from tradewind.wire.messages import AttemptKey, Workload
from tradewind.wire.worker_names import pod_name
from tradewind.wire.worker_tokens import WorkerGrant, sign_grant

log = Log("kubernetes")

TURN_SECONDS = 1.0
"""How often pauses and timeouts are checked."""
GATHER_SECONDS = 0.02
"""Pause after each decision, so that many changes lead to few decisions."""
LIST_EVERY = 600 * SECOND
"""After this time the pods are listed again, although the watch works: a safety net."""
FIRST_RETRY, LONGEST_RETRY = SECOND // 5, 30 * SECOND
STOP_SECONDS = 2.0
TOKEN_VALID = 30 * DAY
"""How long the token of a pod is valid. It is for the attempt of this pod only."""
GONE, MISSING = 410, 404
"""HTTP statuses: the version of a watch is too old; there is no such pod."""


class PodLauncher:
    """See the module. Its public methods may be called by the scheduler's loop, and do not block.

    Args:
        key: signs the tokens of the pods.
    """

    def __init__(self, api: Api, settings: PodSettings, limits: PodLimits, key: bytes, clock: Clock) -> None:
        self._api = api
        self._settings = settings
        self._key = key
        self._clock = clock
        self._registry = PodRegistry(limits, random.random, settings.gateway, settings.namespace)
        self._changed = threading.Condition()
        """Guards the registry, and is notified when something may be due."""
        self._stopping = threading.Event()
        self._is_changed = False
        """Something has changed since the last decision."""
        self._listed = False
        """All pods were listed, and the loop does not know it yet."""
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        """Each pod has at most one request here. None: a thread ends."""
        self._senders = [
            threading.Thread(target=self._send_all, name="pod-request", daemon=True) for _ in range(limits.creates)
        ]
        self._decider = threading.Thread(target=self._decide, name="pods", daemon=True)
        self._threads = [
            *self._senders,
            self._decider,
            threading.Thread(target=self._watch, name="pod-watch", daemon=True),
        ]

    # --- for the scheduler's loop -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads. The pods continue; the next scheduler finds them."""
        self._stopping.set()
        with self._changed:
            self._note_change()
        for _ in self._senders:
            self._requests.put(None)
        self._decider.join(STOP_SECONDS)

    def fileno(self) -> int:
        """A descriptor that becomes readable when there is news."""
        return self._wake_read

    def take_news(self) -> tuple[list[PodNews], bool]:
        """Remove and return the news about pods, and whether all pods were listed for the first time since the last call."""
        try:
            os.read(self._wake_read, 4096)
        except BlockingIOError:
            pass
        with self._changed:
            first, self._listed = self._listed, False
            return self._registry.take_news(), first

    def want(self, workload: Workload) -> None:
        """Let a pod run this attempt, if there is none yet."""
        with self._changed:
            self._registry.want(workload, self._clock.monotonic())
            self._note_change()

    def connected(self, attempt: AttemptKey) -> None:
        """The worker in the pod of this attempt has connected."""
        with self._changed:
            self._registry.connected(attempt)

    def drop(self, task: TaskKey) -> None:
        """The present attempt of the task instance has ended or is not current any more: its pod may be deleted."""
        with self._changed:
            if self._registry.drop(task, self._clock.monotonic()):  # attempts of other executors end here too
                self._note_change()

    def drop_attempt(self, attempt: AttemptKey) -> None:
        """Delete the pod of this attempt now: its worker cannot be reached."""
        with self._changed:
            self._registry.drop_attempt(attempt, self._clock.monotonic())
            self._note_change()

    def retain(self, tasks: Collection[TaskKey], fence_of: Callable[[TaskKey], int | None]) -> None:
        """Only these task instances have an attempt now. See `PodRegistry.retain`."""
        with self._changed:
            self._registry.retain(tasks, fence_of, self._clock.monotonic())
            self._note_change()

    def why(self, attempt: AttemptKey) -> str:
        """What keeps the pod of an attempt from starting its task, for people; empty: nothing is known."""
        with self._changed:
            return self._registry.why(attempt)

    def _note_change(self) -> None:
        """Let the thread decide again. The caller holds the lock."""
        self._is_changed = True
        self._changed.notify_all()

    def _wake_loop(self) -> None:
        try:
            os.write(self._wake_write, b".")
        except BlockingIOError:
            pass  # the loop has not read the earlier ones yet

    # --- requests -----------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._changed:
                    if not self._is_changed:
                        self._changed.wait(TURN_SECONDS)
                    self._is_changed = False
                    due = self._registry.due(self._clock.monotonic())
                    has_news = self._registry.has_news
                if has_news:
                    self._wake_loop()
                for request in due:
                    self._requests.put(request)
            except Exception:
                log.exception("the next requests to Kubernetes could not be decided; it is tried again")
            self._stopping.wait(GATHER_SECONDS)

    def _send_all(self) -> None:
        """Send one request after the other, until `stop`."""
        while (request := self._requests.get()) is not None and not self._stopping.is_set():
            self._send(request)

    def _send(self, request: Request) -> None:
        """Send one request, and record the answer."""
        try:
            if isinstance(request, Create):
                self._create(request)
            else:
                self._delete_or_mark(request)
        except Exception as error:
            log.exception("a request to Kubernetes failed; it is repeated", attempt=str(request.attempt))
            self._failed(request, 0, f"{type(error).__name__}: {error}", 0.0)
        with self._changed:
            self._note_change()

    def _create(self, request: Create) -> None:
        wall = self._clock.wall()
        work = request.workload
        token = sign_grant(WorkerGrant(pod_name(work.key), (work.queue,), wall, wall + TOKEN_VALID), self._key)
        try:
            made = self._api.create_pod(make_pod(work, self._settings, token))
        except Refused as refused:
            if refused.status == CONFLICT and refused.reason == "AlreadyExists":
                self._take_existing(request, make_pod(work, self._settings, token)["metadata"]["name"])
            else:
                log.warning("a pod was not created", attempt=str(work.key), status=refused.status, why=str(refused))
                self._failed(request, refused.status, str(refused), refused.retry_after)
            return
        pod = read_pod(made)
        if pod is None:
            self._failed(request, 0, "the answer of the API server of Kubernetes is not the pod that was sent", 0.0)
            return
        with self._changed:
            self._registry.created(request.attempt, pod, self._clock.monotonic())

    def _take_existing(self, request: Create, name: str) -> None:
        """Use the pod of this name, if an earlier request has created it for this attempt. Delete it otherwise."""
        try:
            pod = read_pod(self._api.read_pod(name))
        except Refused as refused:
            status = refused.status if refused.status != MISSING else 0  # it was deleted meanwhile
            self._failed(request, status, str(refused), refused.retry_after)
            return
        with self._changed:
            if pod is not None and self._registry.is_same(request.attempt, pod):
                self._registry.created(request.attempt, pod, self._clock.monotonic())
                return
            self._registry.name_is_taken(request.attempt, self._clock.monotonic())
        if pod is not None and not pod.is_being_deleted:
            try:
                self._api.delete_pod(pod.name, pod.uid)
            except Refused as refused:  # the creation is repeated, and then this deletion too
                log.warning("a pod was not deleted; it is tried again", pod=pod.name, status=refused.status, why=str(refused))

    def _failed(self, request: Request, status: int, message: str, retry_after: float) -> None:
        with self._changed:
            now = self._clock.monotonic()
            if isinstance(request, Create):
                self._registry.refused(request.attempt, status, message, retry_after, now)
            else:
                self._registry.answered(request, now, failed=True)

    def _delete_or_mark(self, request: Request) -> None:
        assert not isinstance(request, Create)
        try:
            if isinstance(request, Delete):
                self._api.delete_pod(request.name, request.uid)
            else:
                self._api.mark_done(request.name, request.uid)
        except Refused as refused:
            log.warning("a pod was not deleted; it is tried again", pod=request.name, status=refused.status, why=str(refused))
            self._failed(request, refused.status, str(refused), refused.retry_after)
            return
        with self._changed:
            self._registry.answered(request, self._clock.monotonic())

    # --- the watch ------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        waits = Backoff(FIRST_RETRY, LONGEST_RETRY, random.random)
        version, listed_at = "", 0
        while not self._stopping.is_set():
            try:
                if not version or self._clock.monotonic() - listed_at > LIST_EVERY:
                    listed_at = self._clock.monotonic()
                    version = self._list(listed_at)
                    waits.succeeded()
                for kind, pod in self._api.watch_pods(version):
                    waits.succeeded()
                    version = str((pod.get("metadata") or {}).get("resourceVersion") or version)
                    self._on_event(kind, pod)
                    if self._stopping.is_set():
                        return
                self._stopping.wait(FIRST_RETRY / SECOND)  # if a proxy ends each watch at once
            except Refused as refused:
                if refused.status == GONE:
                    version = ""
                    self._stopping.wait(FIRST_RETRY / SECOND)
                    continue
                self._wait_after_failure(waits, str(refused))
            except Exception as error:
                log.exception("the watch of the pods failed; it begins again with a list")
                version = ""
                self._wait_after_failure(waits, f"{type(error).__name__}: {error}")

    def _wait_after_failure(self, waits: Backoff, why: str) -> None:
        if waits.failures == 1:  # one interruption is normal
            log.warning("the pods cannot be watched; trying again", why=why)
        self._stopping.wait(waits.failed() / SECOND)

    def _list(self, began: int) -> str:
        """List all pods. Returns the version from which the watch continues."""
        found, version = self._api.list_pods()
        pods = [pod for pod in map(read_pod, found) if pod is not None]
        with self._changed:
            self._registry.listed(pods, began, self._clock.monotonic())
            self._listed = True
            self._note_change()
        self._wake_loop()
        return version

    def _on_event(self, kind: str, pod: Pod) -> None:
        status: PodStatus | None = read_pod(pod)
        if status is None:
            return  # a bookmark
        with self._changed:
            if kind == "DELETED":
                self._registry.deleted(status)
            else:
                self._registry.seen(status, self._clock.monotonic())
            self._note_change()
