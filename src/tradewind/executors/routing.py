"""Decides which worker gets an attempt. Pure: computed from the registrations of the workers and the attempts they were given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class WorkerLoad(NamedTuple):
    """One connected worker host, as routing sees it."""

    worker: str
    executors: frozenset[str]
    """Names of the executors whose attempts the worker takes; empty: every executor."""
    queues: frozenset[str]
    """Queues that the worker serves; empty: every queue."""
    slots: int
    """Maximum number of attempts at a time; 0: unlimited."""
    assigned: int
    """Number of attempts that were given to the worker and have not ended."""
    draining: bool
    """The worker finishes its attempts and takes no new ones."""

    def serves(self, executor: str, queue: str) -> bool:
        """Whether the worker takes attempts of this executor and queue. An empty executor stands for any executor."""
        return (
            not self.draining
            and (not self.queues or queue in self.queues)
            and (not self.executors or not executor or executor in self.executors)
        )

    @property
    def has_free_slot(self) -> bool:
        return not self.slots or self.assigned < self.slots


def choose_worker(executor: str, queue: str, workers: Iterable[WorkerLoad], preferred: str | None = None) -> str | None:
    """Return the worker that gets an attempt of this executor and queue; None: no worker that serves both has a free slot.

    The preferred worker gets the attempt if it can take it. (The last attempt of a task instance may still be ending there; only
    that worker can wait for its end.) Otherwise the worker with the smallest share of its slots in use gets the attempt; among
    workers without a limit, and in a tie, the worker with the fewest attempts.
    """
    able = [one for one in workers if one.serves(executor, queue) and one.has_free_slot]
    if not able:
        return None
    for one in able:
        if one.worker == preferred:
            return preferred
    return min(able, key=_share_in_use).worker


def _share_in_use(load: WorkerLoad) -> tuple[float, int, str]:
    return (load.assigned / load.slots if load.slots else 0.0, load.assigned, load.worker)
