"""KubernetesExecutor: each attempt runs in a pod of its own.

    submit ─▶ create a pod ─▶ its worker connects to a gateway ─▶ Submit ─▶ its worker asks for the start

The program in the pod is a remote worker that runs one attempt. Its token names the attempt, so the scheduler gives the attempt to
no other worker, and nothing else to this one. After the start, everything is as with the LocalExecutor.

What Kubernetes says about a pod is a hint. A pod that has ended without a result, or that does not start, ends its attempt
(`HostRegistry.attempt_gone`); if it starts nevertheless, its start is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

from tradewind.executors.celery import CeleryExecutor
from tradewind.executors.local import LocalExecutor, Port, Worker
from tradewind.executors.pod_registry import PodNews
from tradewind.executors.port import TaskKey
from tradewind.model.executor_names import KUBERNETES
from tradewind.wire.messages import AttemptKey, LastLine, Workload
from tradewind.wire.worker_names import attempt_of_pod, pod_worker, worker_of

ENDED_MAX = 10_000
"""Maximum number of pods that are remembered after all their processes have ended."""


class Pods(Protocol):
    """Creates and deletes pods: `pod_launcher.PodLauncher`. The methods do not block."""

    def want(self, workload: Workload) -> None: ...

    def connected(self, attempt: AttemptKey) -> None: ...

    def drop(self, task: TaskKey) -> None: ...

    def drop_attempt(self, attempt: AttemptKey) -> None: ...

    def retain(self, tasks: Collection[TaskKey], fence_of: Callable[[TaskKey], int | None]) -> None: ...

    def why(self, attempt: AttemptKey) -> str: ...

    def take_news(self) -> tuple[list[PodNews], bool]: ...


class AttemptGone(Protocol):
    """Tells the scheduler that an attempt has no process any more, or will get none. See `HostRegistry.attempt_gone`."""

    def __call__(self, attempt: AttemptKey, worker: str, reason: str, /, *, processes_ended: bool) -> None: ...


class KubernetesExecutor(LocalExecutor):
    """See the module. Attempts of other executors are handled as by the next class: `LocalExecutor` or `CeleryExecutor`.

    Args:
        pods: creates and deletes pods.
        others: the arguments of the next class.
    """

    def __init__(self, pods: Pods, *others: Any) -> None:
        super().__init__(*others)
        self._pods = pods
        self._ended: dict[AttemptKey, None] = {}
        """Attempts whose pod has no process any more, the newest last."""

    # --- news about pods --------------------------------------------------------------------------------------------

    def apply_news(self, attempt_gone: AttemptGone) -> bool:
        """Tell the scheduler what Kubernetes says. Returns whether all pods were listed for the first time since the last call."""
        news, is_listed = self._pods.take_news()
        for one in news:
            worker = pod_worker(one.attempt)
            if one.processes_ended:
                self._ended[one.attempt] = None
                while len(self._ended) > ENDED_MAX:
                    del self._ended[next(iter(self._ended))]
            elif worker in self._workers:
                continue  # it has started meanwhile
            attempt_gone(one.attempt, worker, one.reason, processes_ended=one.processes_ended)
            self._offer_held_back(worker, None)
        return is_listed

    def waits_for(self, attempt: AttemptKey) -> str:
        if attempt[:2] in self._places:
            return super().waits_for(attempt)
        return self._pods.why(attempt) or super().waits_for(attempt)

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
        attempt = attempt_of_pod(worker_of(host))
        if attempt is not None:
            executors, slots, triggers = (KUBERNETES,), 1, ()
            self._pods.connected(attempt)
        super().connect(
            host, send, executors=executors, queues=queues, slots=slots, draining=draining, live=live, triggers=triggers
        )

    def serves(self, executor: str, queue: str) -> bool:
        return executor == KUBERNETES or super().serves(executor, queue)

    @property
    def ready(self) -> bool:
        return True

    def may_live(self, worker: str) -> bool:
        if worker not in self._workers and attempt_of_pod(worker) in self._ended:
            return False
        return super().may_live(worker)

    def end_log(self, line: LastLine, worker: str | None = None) -> None:
        """Append the last line of a log. A pod that has just ended may still count as connected, and writes nothing."""
        has_ended = worker is not None and attempt_of_pod(worker) in self._ended
        super().end_log(line, None if has_ended else worker)

    # --- attempts ---------------------------------------------------------------------------------------------------

    def _offer(self, workload: Workload, out: dict[str, list[Workload]], *, alone: bool = False) -> bool:
        if workload.executor != KUBERNETES:
            return super()._offer(workload, out, alone=alone)
        task, own = (workload.run, workload.slot), self._workers.get(pod_worker(workload.key))
        former = worker_of(workload.previous_host) if workload.previous_host else None
        if own is None and former is not None and not alone and self._is_left_on(former, workload):
            self._held_back[task] = workload  # no process of the previous attempt may be left
            return True
        self._held_back.pop(task, None)
        if own is None:
            self._pods.want(workload)
        elif not own.draining:
            self._assign(task, workload.fence, own)
            out.setdefault(own.name, []).append(workload)
        return True

    def release(self, task: TaskKey, *, flush: bool = True) -> None:
        if flush:  # otherwise a place is assigned, or `retain` drops the pods
            self._pods.drop(task)
        super().release(task, flush=flush)

    def retain(self, tasks: Collection[TaskKey]) -> None:
        self._pods.retain(tasks, self._fence_of)
        super().retain(tasks)

    def _fence_of(self, task: TaskKey) -> int | None:
        place = self._places.get(task)
        return place.fence if place is not None else None

    def cancel(self, attempt: AttemptKey, reason: str, grace: int, worker: str | None = None) -> None:
        """Stop an attempt. If the worker in its pod is not connected, Kubernetes stops it."""
        if pod_worker(attempt) not in self._workers:
            self._pods.drop_attempt(attempt)
        super().cancel(attempt, reason, grace, worker)

    def _assign(self, task: TaskKey, fence: int, worker: Worker) -> None:
        super()._assign(task, fence, worker)
        self._ended.pop((*task, fence), None)


class KubernetesExecutorBesideCelery(KubernetesExecutor, CeleryExecutor):
    """Both in one deployment: each handles its own attempts.

    Args:
        pods: as for `KubernetesExecutor`.
        others: the arguments of `CeleryExecutor`.
    """
