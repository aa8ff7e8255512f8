"""The pods of the KubernetesExecutor: which are wanted, which exist, and what has to be requested next. Pure: no client, no clock.

    want ─▶ queue ─▶ Create ─▶ exists ─▶ its worker connects ─▶ the task runs ─▶ the pod ends
              ▲         │                                                           │
              └─────────┘ quota, too many requests, no answer: later           drop: Delete, or MarkDone if it is kept

The scheduler decides about attempts. This module tells it, as `PodNews`, that a pod has ended or will not start. A pod is deleted
only after its attempt was dropped, and only by its uid: a pod of the same name that was created since is another one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from tradewind.executors.pod_status import FAILED, PENDING, PodStatus
from tradewind.executors.port import TaskKey
from tradewind.model.moments import SECOND
from tradewind.platform.backoff import Backoff
from tradewind.wire.messages import AttemptKey, Workload

END_GRACE = 60 * SECOND
"""How long the worker of an attempt that has ended may take to end its pod: it sends the last lines of its log."""
REPEAT_AFTER = 60 * SECOND
"""After this time a deletion is requested again, and news about a pod is told again."""
FIRST_PAUSE, LONGEST_PAUSE = SECOND, 60 * SECOND
"""Pauses of all creations after one was refused for a reason that may pass."""
TAKEN_PAUSE = 2 * SECOND
"""Pause of one creation while a pod of its name is being deleted."""
INVALID = frozenset({400, 413, 422})
"""HTTP statuses of a pod that no repetition makes valid."""
CONFLICT = 409


class Create(NamedTuple):
    """Create the pod of an attempt."""

    attempt: AttemptKey
    workload: Workload


class Delete(NamedTuple):
    """Delete a pod."""

    attempt: AttemptKey
    name: str
    uid: str


class MarkDone(NamedTuple):
    """Mark a pod that has ended and is kept."""

    attempt: AttemptKey
    name: str
    uid: str


Request = Create | Delete | MarkDone


class PodNews(NamedTuple):
    """The pod of an attempt has ended, or will not start."""

    attempt: AttemptKey
    reason: str
    """For people."""
    processes_ended: bool
    """Surely no process of the pod is alive."""


class PodLimits(NamedTuple):
    """Durations are microseconds."""

    creates: int
    """Maximum number of creations at the same time."""
    pending: int
    """How long a pod may take until its worker connects; 0: no limit."""
    delete: bool
    """Delete pods that have ended."""
    delete_failed: bool
    """Delete pods that have failed, too."""
    epoch: int
    """The epoch of this scheduler. Pods that a later one created are left alone."""


class _Entry:
    """What is known about the pod of one attempt."""

    __slots__ = (
        "connected",
        "drop_at",
        "is_queued",
        "not_before",
        "pod",
        "problem",
        "requested",
        "seen_at",
        "since",
        "told",
        "workload",
    )

    def __init__(self) -> None:
        self.workload: Workload | None = None
        """None: the pod is known only from the API server."""
        self.pod: PodStatus | None = None
        """None: there is no pod, as far as known."""
        self.is_queued = False
        """The pod has to be created."""
        self.requested: type | None = None
        """The request that has no answer yet."""
        self.since = 0
        """When the pod was seen first."""
        self.seen_at = 0
        """When the API server last confirmed the pod."""
        self.not_before = 0
        """Earliest moment of the next request."""
        self.connected = False
        """The worker in the pod has connected."""
        self.problem = ""
        """Why the pod cannot be created."""
        self.told: int | None = None
        """When the news about its end was told."""
        self.drop_at: int | None = None
        """Set: the attempt needs the pod no more; when it is deleted at the latest."""


class PodRegistry:
    """See the module. Moments are monotonic microseconds.

    Args:
        rng: source of random numbers for pauses.
        gateway: the address that pods connect to, for messages.
        namespace: of the pods, for messages.
    """

    def __init__(self, limits: PodLimits, rng: Callable[[], float], gateway: str, namespace: str) -> None:
        self._limits = limits
        self._gateway = gateway
        self._namespace = namespace
        self._entries: dict[AttemptKey, _Entry] = {}
        self._by_task: dict[TaskKey, set[AttemptKey]] = {}
        self._queue: deque[AttemptKey] = deque()
        """Attempts whose pod has to be created, in the order of the scheduler."""
        self._creating = 0
        self._pauses = Backoff(FIRST_PAUSE, LONGEST_PAUSE, rng)
        self._held_until = 0
        """No pod is created before."""
        self._held_because = ""
        self._is_quota = False
        self._news: list[PodNews] = []

    def __len__(self) -> int:
        return len(self._entries)

    # --- what the scheduler wants ---------------------------------------------------------------------------------------

    def want(self, workload: Workload, now: int) -> None:
        """The attempt has to get a pod, if it has none. Older attempts of the task instance need theirs no more."""
        key = workload.key
        for other in [one for one in self._by_task.get(key[:2], ()) if one[2] < key[2]]:
            self._drop(other, now)
        entry = self._entry(key)
        entry.workload, entry.drop_at = workload, None
        if entry.pod is None and not entry.is_queued and entry.requested is None:
            entry.is_queued = True
            self._queue.append(key)

    def connected(self, attempt: AttemptKey) -> None:
        """The worker in the pod of this attempt has connected."""
        if attempt in self._entries:
            self._entries[attempt].connected = True

    def drop(self, task: TaskKey, now: int) -> bool:
        """The task instance has no attempt, or a later one: its pods are not needed any more. Returns whether it has pods."""
        keys = list(self._by_task.get(task, ()))
        for key in keys:
            self._drop(key, now)
        return bool(keys)

    def drop_attempt(self, attempt: AttemptKey, now: int) -> None:
        """Delete the pod of this attempt now: its worker cannot be reached."""
        if attempt in self._entries:
            self._entries[attempt].connected = False
            self._drop(attempt, now)

    def retain(self, tasks: Collection[TaskKey], fence_of: Callable[[TaskKey], int | None], now: int) -> None:
        """Only these task instances have an attempt now. Drop the pods of all others: they are orphans of another scheduler.

        Args:
            fence_of: returns the fence of the present attempt of a task instance, if it is known.
        """
        for key in list(self._entries):
            fence = fence_of(key[:2])
            if key[:2] not in tasks or (fence is not None and key[2] < fence):
                self._drop(key, now)

    def _drop(self, key: AttemptKey, now: int) -> None:
        entry = self._entries[key]
        if entry.pod is not None and entry.pod.epoch > self._limits.epoch:
            return  # a later scheduler has created it; this one is about to find out
        entry.is_queued = False
        if entry.drop_at is None:
            entry.drop_at = now + (END_GRACE if entry.connected else 0)
        self._forget_if_gone(key)

    def _entry(self, key: AttemptKey) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
            self._by_task.setdefault(key[:2], set()).add(key)
        return entry

    def _forget_if_gone(self, key: AttemptKey) -> None:
        entry = self._entries[key]
        if entry.drop_at is None or entry.pod is not None or entry.requested is not None:
            return
        del self._entries[key]
        others = self._by_task[key[:2]]
        others.discard(key)
        if not others:
            del self._by_task[key[:2]]

    # --- what the API server says ---------------------------------------------------------------------------------------

    def listed(self, pods: Iterable[PodStatus], began: int, now: int) -> None:
        """Take a complete list of the pods.

        Args:
            began: when the list was requested: a pod that was confirmed since then may be missing in it.
        """
        found = set()
        for pod in pods:
            found.add(pod.attempt)
            self.seen(pod, now)
        for key, entry in list(self._entries.items()):
            if key not in found and entry.pod is not None and entry.seen_at < began:
                self._removed(key)

    def seen(self, pod: PodStatus, now: int) -> None:
        """Take the state of a pod that exists."""
        entry = self._entry(pod.attempt)
        if entry.pod is None or entry.pod.uid != pod.uid:
            entry.since, entry.told, entry.connected = now, None, False
        entry.pod, entry.seen_at, entry.problem = pod, now, ""
        entry.is_queued = False
        if pod.has_ended and entry.drop_at is not None:
            entry.drop_at = min(entry.drop_at, now)

    def deleted(self, pod: PodStatus) -> None:
        """A pod does not exist any more."""
        entry = self._entries.get(pod.attempt)
        if entry is not None and entry.pod is not None and entry.pod.uid == pod.uid:
            self._removed(pod.attempt)

    def _removed(self, key: AttemptKey) -> None:
        entry = self._entries[key]
        pod, entry.pod = entry.pod, None
        if self._is_quota:
            self._held_until = 0  # its share of the quota is free
        if pod is not None and entry.drop_at is None and entry.told is None:
            self._news.append(PodNews(key, f"its pod {pod.name} was deleted", processes_ended=pod.processes_ended))
        self._forget_if_gone(key)

    # --- answers to requests --------------------------------------------------------------------------------------------

    def created(self, attempt: AttemptKey, pod: PodStatus, now: int) -> None:
        """The pod of an attempt was created, or was there already."""
        self._answered(attempt)
        self._pauses.succeeded()
        self._held_until, self._held_because = 0, ""
        before = self._entries[attempt].pod
        if before is None or before.uid != pod.uid:  # otherwise the watch was faster, and knows more
            self.seen(pod, now)

    def is_same(self, attempt: AttemptKey, pod: PodStatus) -> bool:
        """Whether a pod with the name of the attempt's pod can be used: it is for the same run, and has not ended."""
        work = self._entries[attempt].workload
        is_of_run = work is not None and (pod.dag_id, pod.run_id) == (work.dag_id, work.run_id)
        return is_of_run and pod.attempt == attempt and not pod.has_ended and not pod.is_being_deleted

    def name_is_taken(self, attempt: AttemptKey, now: int) -> None:
        """The name of an attempt's pod belongs to another pod, which is being deleted: create the pod again later."""
        self._answered(attempt)
        self._create_again(attempt, now + TAKEN_PAUSE, "a pod of its name is being deleted")

    def refused(self, attempt: AttemptKey, status: int, message: str, retry_after: float, now: int) -> None:
        """A pod was not created.

        Args:
            status: HTTP status; 0: there was no answer, so the pod may exist.
            retry_after: seconds that the API server asks to wait; 0: not said.
        """
        self._answered(attempt)
        if status in INVALID:
            self._news.append(PodNews(attempt, f"its pod was refused by Kubernetes: {message}", processes_ended=False))
            self._forget_if_gone(attempt)
            return
        pause = max(self._pauses.failed(), round(min(retry_after, LONGEST_PAUSE / SECOND) * SECOND))
        self._is_quota = status == 403 and "exceeded quota" in message
        self._held_until, self._held_because = now + pause, message
        self._create_again(attempt, 0, message)

    def _create_again(self, attempt: AttemptKey, not_before: int, problem: str) -> None:
        entry = self._entries[attempt]
        if entry.drop_at is not None or entry.pod is not None:
            self._forget_if_gone(attempt)
            return
        entry.problem, entry.not_before, entry.is_queued = problem, not_before, True
        self._queue.append(attempt)

    def answered(self, request: Request, now: int, *, failed: bool = False) -> None:
        """A deletion or a mark was answered. If it failed, it is repeated after a pause."""
        key = request.attempt
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.requested = None
        entry.not_before = now + (LONGEST_PAUSE // 6 if failed else REPEAT_AFTER)
        if isinstance(request, MarkDone) and not failed:
            entry.pod = None  # nobody looks at it any more
        self._forget_if_gone(key)

    def _answered(self, attempt: AttemptKey) -> None:
        entry = self._entries[attempt]
        if entry.requested is Create:
            self._creating -= 1
        entry.requested = None

    # --- what follows ---------------------------------------------------------------------------------------------------

    def due(self, now: int) -> list[Request]:
        """Return the requests that have to be sent now. Each needs an answer: `created`, `refused` …"""
        found: list[Request] = []
        for key, entry in self._entries.items():
            self._check_end(key, entry, now)
            pod = entry.pod
            if entry.drop_at is None or pod is None or entry.requested is not None or now < entry.not_before:
                continue
            if pod.has_ended and self._is_kept(pod) and pod.uid:
                found.append(MarkDone(key, pod.name, pod.uid))
            elif now >= entry.drop_at:
                found.append(Delete(key, pod.name, pod.uid))
        for request in found:
            self._entries[request.attempt].requested = type(request)
        return [*found, *self._creations(now)]

    def _creations(self, now: int) -> list[Request]:
        found: list[Request] = []
        if now < self._held_until:
            return found
        later: list[AttemptKey] = []
        most = 1 if self._pauses.failures else self._limits.creates  # after a refusal, one creation tries whether it is over
        while self._queue and self._creating < most:
            key = self._queue.popleft()
            entry = self._entries.get(key)
            if entry is None or not entry.is_queued or entry.workload is None:
                continue
            if now < entry.not_before:
                later.append(key)
                continue
            entry.is_queued, entry.requested = False, Create
            self._creating += 1
            found.append(Create(key, entry.workload))
        self._queue.extend(later)
        return found

    def _is_kept(self, pod: PodStatus) -> bool:
        return not self._limits.delete or (pod.phase == FAILED and not self._limits.delete_failed)

    def _check_end(self, key: AttemptKey, entry: _Entry, now: int) -> None:
        """Tell that a pod has ended or is late, once, and again as long as the scheduler does not drop it."""
        pod = entry.pod
        if pod is None or entry.drop_at is not None or (entry.told is not None and now < entry.told + REPEAT_AFTER):
            return
        if pod.has_ended:
            said = f": {pod.problem}" if pod.problem else ""
            self._tell(key, entry, f"its pod {pod.name} has ended without a result{said}", now, ended=pod.processes_ended)
        elif entry.workload is not None and not entry.connected and self._is_late(entry, now):
            self._tell(key, entry, self._why_late(pod), now, ended=False)

    def _is_late(self, entry: _Entry, now: int) -> bool:
        return bool(self._limits.pending) and now >= entry.since + self._limits.pending

    def _tell(self, key: AttemptKey, entry: _Entry, reason: str, now: int, *, ended: bool) -> None:
        entry.told = now
        self._news.append(PodNews(key, reason, ended))

    def _why_late(self, pod: PodStatus) -> str:
        seconds = self._limits.pending // SECOND
        if pod.phase == PENDING or pod.problem:
            said = f": {pod.problem}" if pod.problem else ""
            return f"its pod {pod.name} did not start within {seconds} seconds{said}"
        return (
            f"the worker in its pod {pod.name} did not connect to the gateway {self._gateway} within {seconds} seconds; "
            f"see its output: kubectl logs -n {self._namespace} {pod.name}"
        )

    @property
    def has_news(self) -> bool:
        """Whether there is something to tell the scheduler."""
        return bool(self._news)

    def take_news(self) -> list[PodNews]:
        """Remove and return what the scheduler has to be told."""
        news, self._news = self._news, []
        return news

    def why(self, attempt: AttemptKey) -> str:
        """Return what keeps the pod of an attempt from starting its task, for people; empty: nothing is known."""
        entry = self._entries.get(attempt)
        if entry is None or entry.connected:
            return ""
        if entry.pod is None:
            reason = entry.problem or self._held_because
            return f"its pod is not created yet: {reason}" if reason else "its pod is being created"
        if entry.pod.problem:
            return f"its pod {entry.pod.name} does not start: {entry.pod.problem}"
        return f"its pod {entry.pod.name} is {entry.pod.phase.lower()}"
