"""The executor port: the interface between the scheduler and an executor.

Messages are hints. A lost, repeated or delayed message changes timing, never an outcome: only the row, the fence and the
accepted start count. So an executor decides nothing about states. An executor only chooses a worker for each attempt and carries
messages; its memory may be lost, and the workers report again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tradewind.wire.messages import AttemptKey, LastLine, ToRunner, TriggerOrder, Workload

TaskKey = tuple[int, int]
"""(run number, slot): a task instance, with any of its attempts."""


class Executor(Protocol):
    """Carries attempts to workers. `Workload.executor` names the executor of an attempt (see `executors.registry`)."""

    def submit(self, workloads: Sequence[Workload]) -> None:
        """Let workers run these attempts. Called after their dispatch is committed; may be called again for the same attempts.

        An attempt that no worker can take now waits until a slot is free or a worker connects.
        """

    def release(self, task: TaskKey) -> None:
        """The attempt of this task instance has ended or is not current any more: its slot on the worker is free."""

    def retain(self, tasks: Collection[TaskKey]) -> None:
        """Only these task instances have an attempt now: forget all others."""

    def worker_of(self, attempt: AttemptKey) -> str | None:
        """The connected worker that was given this attempt; None: no worker was given it, or the worker is not connected."""

    def cancel(self, attempt: AttemptKey, reason: str, grace: int, worker: str | None = None) -> None:
        """Stop an attempt (TERM, after `grace` microseconds KILL). The worker answers `AttemptGone`.

        Args:
            worker: the worker that has it; None: the worker that was given it, or every worker if that is not known.
        """

    def reconcile(self, worker: str, attempts: Mapping[AttemptKey, str], *, complete: bool = False) -> None:
        """Ask a worker which of these attempts it has. The worker answers `AttemptGone` for each of the others.

        Args:
            attempts: attempt → nonce of the process whose start was accepted; empty: no start was accepted.
            complete: these are all attempts that should run there; the worker answers `Unlisted` if it has others.
        """

    def answer(self, host: str, answer: ToRunner) -> None:
        """Pass an answer on to the process of an attempt.

        Args:
            host: the worker host that asked for it.
        """

    def end_log(self, line: LastLine, worker: str | None = None) -> None:
        """Append this line to the log of an attempt that ended without a report.

        Args:
            worker: the worker that had the attempt, if known.
        """

    def run_triggers(self, triggers: Sequence[TriggerOrder]) -> None:
        """Let workers run triggers. They answer `TriggerFired` for each. May be called again for the same triggers."""

    def trigger_worker(self, key: AttemptKey) -> str | None:
        """The connected worker that runs this trigger, as far as known."""
        ...

    def take_watcher_event(self, key: AttemptKey, token: str) -> None:
        """Tell the worker that the event of an asset watcher is committed, so that the trigger continues."""

    def drop_triggers(self, keys: Sequence[AttemptKey], worker: str | None = None) -> None:
        """Stop these triggers, because no task waits for them any more.

        Args:
            worker: only on this worker; None: on all workers.
        """

    def may_live(self, worker: str) -> bool:
        """Whether processes of this worker, which is not connected, may still be alive."""
        ...

    def serves(self, executor: str, queue: str) -> bool:
        """Whether a worker is connected that takes attempts of this executor and queue."""
        ...

    def waits_for(self, attempt: AttemptKey) -> str:
        """Why this attempt, which was submitted, has not started, for people; empty: nothing is known."""
        ...

    @property
    def workers(self) -> Sequence[str]:
        """The connected workers, including those that are draining."""
        ...

    @property
    def ready(self) -> bool:
        """Whether it takes attempts: a worker is connected, or the executor creates one for each attempt."""
        ...

    @property
    def runs_triggers(self) -> bool:
        """Whether a worker is connected that runs triggers."""
        ...
