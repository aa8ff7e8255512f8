"""Attempts on this machine: one or several worker hosts, each connected to the scheduler by a socket.

    submit ─▶ choose a worker (routing.py) ─▶ Submit message
                 └─ none has a free slot ─▶ backlog of executor and queue ─▶ again when a slot is released or a worker connects

`LocalExecutor` and `SequentialExecutor` share these workers. A worker host takes the attempts of both, or only the attempts of the
executors and queues that its registration names.

The executor remembers which worker was given which attempt. This memory is a hint: it is built again from the registrations of
the workers. If two workers were given the same attempt, only one of them starts it, because the scheduler accepts one start.

A process may live for a moment after its report. So if an attempt goes to another worker than the previous attempt, it is held
back until the previous worker has confirmed that it has no process of the task instance (Withdraw, Withdrawn), or has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from tradewind.executors.port import TaskKey
from tradewind.executors.routing import WorkerLoad, choose_worker
from tradewind.model.moments import SECOND
from tradewind.observe.failpoints import drop
from tradewind.wire.messages import (
    AttemptKey,
    Cancel,
    DropTriggers,
    EndLog,
    FromScheduler,
    LastLine,
    Reconcile,
    RunTriggers,
    StandbyReady,
    Submit,
    ToRunner,
    TriggerOrder,
    WatcherEventTaken,
    Withdraw,
    Workload,
)
from tradewind.wire.worker_names import attempt_of_pod, home_of, worker_of

Port = Callable[[FromScheduler], None]
"""Sends one message to a worker host."""

SUBMIT_AT_MOST = 100
"""Maximum number of workloads in one message."""


KILL_GRACE = 10 * SECOND
"""Time between TERM and KILL for a process of an older attempt, microseconds."""


def may_always_live(worker: str) -> bool:
    """The default of `LocalExecutor`: it is unknown whether processes of a worker live, so they may."""
    return True


class Place(NamedTuple):
    """Where the attempt of a task instance is."""

    fence: int
    worker: str


class Worker:
    """One connected worker host."""

    __slots__ = ("draining", "executors", "name", "queues", "send", "slots", "tasks", "triggers")

    def __init__(
        self, name: str, executors: frozenset[str], queues: frozenset[str], slots: int, draining: bool, send: Port
    ) -> None:
        self.name = name
        self.executors = executors
        self.queues = queues
        self.slots = slots
        self.draining = draining
        self.send = send
        self.tasks: set[TaskKey] = set()
        """Task instances whose attempt was given to this worker."""
        self.triggers: set[AttemptKey] = set()
        """Triggers that this worker was asked to run, or reported as running."""

    @property
    def load(self) -> WorkerLoad:
        return WorkerLoad(self.name, self.executors, self.queues, self.slots, len(self.tasks), self.draining)


class LocalExecutor:
    """Chooses a worker on this machine for each attempt. See `executors.port.Executor`.

    Args:
        may_live: whether processes of this worker, which is not connected, may still be alive. By default: yes.
        kill_grace: microseconds between TERM and KILL for a process of an older attempt.
    """

    def __init__(self, may_live: Callable[[str], bool] = may_always_live, kill_grace: int = KILL_GRACE) -> None:
        self._kill_grace = kill_grace
        self._may_live = may_live
        self._workers: dict[str, Worker] = {}
        self._places: dict[TaskKey, Place] = {}
        self._backlog: dict[tuple[str, str], deque[Workload]] = {}
        """(executor, queue) → attempts that no worker could take yet, in the order in which they were submitted."""
        self._waiting: dict[TaskKey, int] = {}
        """Task instances with an attempt in the backlog → the fence of that attempt."""
        self._held_back: dict[TaskKey, Workload] = {}
        """Attempts that wait until their previous worker has ended the previous attempt."""
        self._has_standby = False

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
        """Register a process of a worker, with its attempts and triggers. It replaces the last connection of its worker."""
        worker = worker_of(host)
        self.disconnect(worker)
        here = self._workers[worker] = Worker(worker, frozenset(executors), frozenset(queues), slots, draining, send)
        here.triggers = set(triggers)
        for run, slot, fence in live:
            known = self._places.get((run, slot))
            if known is None or known.fence < fence:
                self._assign((run, slot), fence, here)
        if self._has_standby:
            self._send_standby_ready(here)
        self._offer_held_back(worker, host)
        self._flush()

    def standby_is_ready(self) -> None:
        """Another scheduler stands by, and this one is active: tell the workers that could get into its hands, now and when they
        connect.
        """
        self._has_standby = True
        for worker in self._workers.values():
            self._send_standby_ready(worker)

    def _send_standby_ready(self, worker: Worker) -> None:
        if home_of(worker.name):  # a gateway, too, has to know whether the scheduler of its remote worker is stopped
            worker.send(StandbyReady())

    def disconnect(self, worker: str) -> list[TaskKey]:
        """Forget a worker that has disconnected. Returns the task instances whose attempts it had."""
        gone = self._workers.pop(worker, None)
        if gone is None:
            return []
        for task in gone.tasks:
            del self._places[task]
        self._offer_held_back(worker, None)
        return list(gone.tasks)

    def drain(self, worker: str, live: Collection[AttemptKey]) -> list[TaskKey]:
        """A worker finishes `live` and takes no new attempts. Returns the task instances whose attempts it gave back."""
        here = self._workers.get(worker)
        if here is None:
            return []
        here.draining = True
        kept = {key[:2] for key in live}
        back = [task for task in here.tasks if task not in kept]
        for task in back:
            self.release(task)
        return back

    @property
    def workers(self) -> Sequence[str]:
        return tuple(self._workers)

    @property
    def loads(self) -> list[WorkerLoad]:
        """The connected workers, for people."""
        return [one.load for one in self._workers.values()]

    @property
    def ready(self) -> bool:
        return bool(self._workers)

    @property
    def runs_triggers(self) -> bool:
        return any(attempt_of_pod(name) is None for name in self._workers)

    def serves(self, executor: str, queue: str) -> bool:
        return any(one.load.serves(executor, queue) for one in self._workers.values())

    def waits_for(self, attempt: AttemptKey) -> str:
        return ""

    def may_live(self, worker: str) -> bool:
        return worker in self._workers or self._may_live(worker)

    # --- attempts ---------------------------------------------------------------------------------------------------

    def submit(self, workloads: Sequence[Workload]) -> None:
        out: dict[str, list[Workload]] = {}
        for workload in workloads:
            if not drop("submit", workload.key):
                self._place(workload, out)
        self._send_workloads(out)

    def _place(self, workload: Workload, out: dict[str, list[Workload]]) -> None:
        """Choose a worker, or put the workload into the backlog."""
        task = (workload.run, workload.slot)
        known = self._places.get(task)
        if known is not None and known.fence == workload.fence:
            out.setdefault(known.worker, []).append(workload)  # the previous message may have been lost
            return
        if known is not None and known.fence < workload.fence:
            # The older attempt has ended. A worker that registered with its report holds a slot for it; nothing else would free it.
            del self._places[task]
            self._workers[known.worker].tasks.discard(task)
        if self._waiting.get(task, -1) < workload.fence and not self._offer(workload, out):
            self._waiting[task] = workload.fence
            self._backlog.setdefault((workload.executor, workload.queue), deque()).append(workload)

    def _offer(self, workload: Workload, out: dict[str, list[Workload]], *, alone: bool = False) -> bool:
        """Give an attempt to a worker, or hold it back because of its previous worker. False: no worker has a free slot.

        Args:
            alone: no process of an older attempt is left on the previous worker.
        """
        task, former = (workload.run, workload.slot), worker_of(workload.previous_host) if workload.previous_host else None
        name = choose_worker(workload.executor, workload.queue, [one.load for one in self._workers.values()], former)
        if name is None:
            return False
        if former is not None and name != former and not alone and self._is_left_on(former, workload):
            self._held_back[task] = workload
            return True
        self._held_back.pop(task, None)
        self._assign(task, workload.fence, self._workers[name])
        out.setdefault(name, []).append(workload)
        return True

    def _is_left_on(self, former: str, workload: Workload) -> bool:
        """Whether a process of an older attempt may still run on the worker. A connected worker is asked to end this process."""
        if former in self._workers:
            self._workers[former].send(Withdraw(workload.key, self._kill_grace))
            return True
        return self.may_live(former)

    def withdrawn(self, worker: str, attempt: AttemptKey) -> None:
        """A worker confirms that it has no process of an older attempt of this task instance."""
        workload = self._held_back.get(attempt[:2])
        if workload is not None and workload.key == attempt and worker_of(workload.previous_host) == worker:
            self._offer_alone(workload)

    def _offer_held_back(self, worker: str, host: str | None) -> None:
        """A worker has connected (`host`: its process) or disconnected (None): check the attempts held back because of it.

        If another process of the worker has connected, the previous one has ended, with all processes below it.
        """
        for workload in [one for one in self._held_back.values() if worker_of(one.previous_host) == worker]:
            if host == workload.previous_host:
                self._workers[worker].send(Withdraw(workload.key, self._kill_grace))
            elif host is not None or not self.may_live(worker):
                self._offer_alone(workload)

    def _offer_alone(self, workload: Workload) -> None:
        del self._held_back[workload.run, workload.slot]
        out: dict[str, list[Workload]] = {}
        if not self._offer(workload, out, alone=True):
            self._waiting[workload.run, workload.slot] = workload.fence
            self._backlog.setdefault((workload.executor, workload.queue), deque()).append(workload)
        self._send_workloads(out)

    def _assign(self, task: TaskKey, fence: int, worker: Worker) -> None:
        self.release(task, flush=False)
        self._places[task] = Place(fence, worker.name)
        worker.tasks.add(task)

    def _send_workloads(self, out: Mapping[str, list[Workload]]) -> None:
        for name, works in out.items():
            send = self._workers[name].send
            for start in range(0, len(works), SUBMIT_AT_MOST):
                send(Submit(tuple(works[start : start + SUBMIT_AT_MOST])))

    def release(self, task: TaskKey, *, flush: bool = True) -> None:
        place = self._places.pop(task, None)
        self._waiting.pop(task, None)  # its workload stays in the backlog, and is skipped there
        self._held_back.pop(task, None)
        if place is None:
            return
        self._workers[place.worker].tasks.discard(task)
        if flush and self._backlog:
            self._flush()

    def retain(self, tasks: Collection[TaskKey]) -> None:
        for task in [*self._places, *self._waiting, *self._held_back]:
            if task not in tasks:
                self.release(task, flush=False)
        for queue, waiting in self._backlog.items():
            self._backlog[queue] = deque(one for one in waiting if self._waiting.get((one.run, one.slot)) == one.fence)
        self._flush()

    def _flush(self) -> None:
        """Give attempts of the backlog to workers with free slots."""
        out: dict[str, list[Workload]] = {}
        for target, waiting in list(self._backlog.items()):
            while waiting:
                workload = waiting[0]
                task = (workload.run, workload.slot)
                if self._waiting.get(task) == workload.fence:
                    if not self._offer(workload, out):
                        break
                    self._waiting.pop(task, None)
                waiting.popleft()
            if not waiting:
                del self._backlog[target]
        self._send_workloads(out)

    def worker_of(self, attempt: AttemptKey) -> str | None:
        place = self._places.get(attempt[:2])
        return place.worker if place is not None and place.fence == attempt[2] else None

    def cancel(self, attempt: AttemptKey, reason: str, grace: int, worker: str | None = None) -> None:
        self._send(worker or self.worker_of(attempt), Cancel(attempt, reason, grace))

    def reconcile(self, worker: str, attempts: Mapping[AttemptKey, str], *, complete: bool = False) -> None:
        if (attempts or complete) and worker in self._workers:
            self._workers[worker].send(Reconcile(tuple(attempts), tuple(attempts.values()), complete))

    def end_log(self, line: LastLine, worker: str | None = None) -> None:
        name = worker if worker in self._workers else next(iter(self._lasting()), None)
        if name is not None:  # all workers of this machine write into one log folder
            self._workers[name].send(EndLog(line))

    def answer(self, host: str, answer: ToRunner) -> None:
        if not drop("accept", (answer.attempt, answer.body.op)):
            here = self._workers.get(worker_of(host))
            if here is not None:
                here.send(answer)

    def _send(self, worker: str | None, message: FromScheduler) -> None:
        """Send to one worker, or (None) to all. A worker that is not connected gets the message when it registers."""
        if worker is None:
            for one in self._workers.values():
                one.send(message)
        elif worker in self._workers:
            self._workers[worker].send(message)

    def _lasting(self) -> dict[str, Worker]:
        """The connected workers that do not end with one attempt, as the worker in a pod does."""
        return {name: one for name, one in self._workers.items() if attempt_of_pod(name) is None}

    # --- triggers -----------------------------------------------------------------------------------------------------

    def run_triggers(self, triggers: Sequence[TriggerOrder]) -> None:
        out: dict[str, list[TriggerOrder]] = {}
        for order in triggers:
            worker = self._trigger_worker(order.key)
            if worker is not None:
                worker.triggers.add(order.key)
                out.setdefault(worker.name, []).append(order)
        for name, orders in out.items():
            self._workers[name].send(RunTriggers(tuple(orders)))

    def _trigger_worker(self, key: AttemptKey) -> Worker | None:
        """Return the worker that already runs this trigger, otherwise the one with the fewest triggers. Draining ones come last."""
        known = [one for one in self._workers.values() if key in one.triggers]
        if known:
            return known[0]
        return min(self._lasting().values(), key=lambda one: (one.draining, len(one.triggers), one.name), default=None)

    def trigger_worker(self, key: AttemptKey) -> str | None:
        return next((name for name, one in self._workers.items() if key in one.triggers), None)

    def take_watcher_event(self, key: AttemptKey, token: str) -> None:
        for one in self._workers.values():
            if key in one.triggers:
                one.send(WatcherEventTaken(key, token))

    def drop_triggers(self, keys: Sequence[AttemptKey], worker: str | None = None) -> None:
        if not keys:
            return
        for one in self._workers.values():
            if worker in (None, one.name):
                # also to workers that are not known to have them: the end of a trigger is repeated until the trigger is dropped
                one.triggers.difference_update(keys)
                one.send(DropTriggers(tuple(keys)))
