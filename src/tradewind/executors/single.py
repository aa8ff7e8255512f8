"""The common part of executors that have exactly one worker, themselves: in-process executors and those of the simulation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tradewind.executors.port import TaskKey
from tradewind.wire.messages import AttemptKey
from tradewind.wire.worker_names import FIRST_WORKER


class SingleWorker:
    """One worker without a limit, which is always connected and takes every attempt. See `executors.port.Executor`."""

    ready: bool = True

    def release(self, task: TaskKey) -> None:
        """Do nothing: there are no slots to count."""

    def retain(self, tasks: Collection[TaskKey]) -> None:
        """Do nothing: there is nothing to forget."""

    def worker_of(self, attempt: AttemptKey) -> str | None:
        return None

    def may_live(self, worker: str) -> bool:
        return True

    def serves(self, executor: str, queue: str) -> bool:
        return self.ready

    def waits_for(self, attempt: AttemptKey) -> str:
        return ""

    @property
    def runs_triggers(self) -> bool:
        return self.ready

    @property
    def workers(self) -> Sequence[str]:
        return (FIRST_WORKER,) if self.ready else ()
