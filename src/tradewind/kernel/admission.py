"""Decides which of the scheduled task instances are queued now, within all limits.

Every limit is a *resource* with a capacity and an amount in use: parallelism, an executor, a pool, a run's max_active_tasks, a
DAG's max_active_tasks_all_runs, a task's max_active_tis_per_dag and _per_dagrun. A scheduled task instance is a candidate in one of
two heaps: the ready heap, or the heap of the resource that refused it last. When a resource is released, only the heaps of
resources with free capacity are examined. So a finished task costs a few heap operations, however many thousand candidates
wait. The best candidate that fits is admitted; one that does not fit is passed over (Airflow's rule).

Order: higher priority weight first, then earlier logical date, then lower run number and slot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import NamedTuple

Resource = tuple[str, str | int, int]
"""(kind, owner, task): ("parallelism", "", 0), ("executor", name, 0), ("pool", name, 0), ("run", run number, 0),
("dag_tasks", dag id, 0), ("dag_task:" task id, dag id, 0), ("run_task:" task id, run number, 0).

A limit of a task contains its id, because an edit of the DAG may change its number."""

UNLIMITED = 2**62
PARALLELISM: Resource = ("parallelism", "", 0)


def executor_slots(name: str) -> Resource:
    """Return the limit of one executor. It exists only where the deployment has several executors."""
    return ("executor", name, 0)


class Candidate(NamedTuple):
    """A scheduled task instance that waits for admission. Candidates sort in the order of admission."""

    rank: int
    """The negative priority weight."""
    logical_date: int
    run: int
    slot: int
    needs: tuple[tuple[Resource, int], ...]
    """Resources besides parallelism, and the amount needed of each; the pool comes first."""


class Admission:
    """Limits, how much of each is in use, and the candidates that wait for them."""

    __slots__ = ("_capacity", "_held", "_open", "_queued", "_ready", "_used", "_waiting", "_wants")

    def __init__(self) -> None:
        self._capacity: dict[Resource, int] = {}
        self._used: dict[Resource, int] = {}
        self._ready: list[Candidate] = []
        self._waiting: dict[tuple[Resource, int], list[Candidate]] = {}
        self._wants: dict[Resource, set[int]] = {}
        self._open: set[tuple[Resource, int]] = set()
        self._queued: dict[tuple[int, int], Candidate] = {}
        self._held: dict[tuple[int, int], tuple[tuple[Resource, int], ...]] = {}

    def clear(self) -> None:
        """Drop all limits, candidates and attempts."""
        for table in (self._capacity, self._used, self._waiting, self._wants, self._queued, self._held):
            table.clear()
        self._ready.clear()
        self._open.clear()

    # --- limits ---------------------------------------------------------------------------------------------------

    def set_capacity(self, resource: Resource, capacity: int | None) -> None:
        """Set a limit.

        Args:
            capacity: a negative number means unlimited. None: the resource does not exist (an unknown pool), so that no candidate
                that needs it is admitted.
        """
        if capacity is None:
            self._capacity.pop(resource, None)
        else:
            self._capacity[resource] = UNLIMITED if capacity < 0 else capacity
            self._reopen(resource)

    def capacity(self, resource: Resource) -> int | None:
        return self._capacity.get(resource)

    def used(self, resource: Resource) -> int:
        """Return how much of the resource is in use: at any time equal to the sum over the attempts that hold it."""
        return self._used.get(resource, 0)

    def free(self, resource: Resource) -> int:
        """Return how much is free: 0 for a resource that does not exist, never negative (a limit may be lowered below its use)."""
        return max(0, self._capacity.get(resource, 0) - self._used.get(resource, 0))

    def forget(self, resource: Resource) -> None:
        """Drop a resource whose owner is gone (a run that ended)."""
        self._capacity.pop(resource, None)
        self._used.pop(resource, None)
        for amount in self._wants.pop(resource, ()):
            self._waiting.pop((resource, amount), None)
            self._open.discard((resource, amount))

    # --- candidates -----------------------------------------------------------------------------------------------

    def add(self, candidate: Candidate) -> None:
        """Add a task instance that became scheduled."""
        self._queued[candidate.run, candidate.slot] = candidate
        heappush(self._ready, candidate)

    def discard(self, run: int, slot: int) -> None:
        """Remove a task instance that is not scheduled any more. Its entry stays in a heap and is dropped when it is reached."""
        self._queued.pop((run, slot), None)

    def waiting(self) -> int:
        """Return how many scheduled task instances wait for admission."""
        return len(self._queued)

    def candidates(self, at_most: int = UNLIMITED) -> list[Candidate]:
        """Return scheduled task instances that wait for admission, in any order."""
        return list(islice(self._queued.values(), at_most))

    def held(self, resource: Resource) -> list[tuple[tuple[int, int], int]]:
        """Return ((run, slot), amount) of every attempt that holds some of the resource."""
        return [(key, amount) for key, held in self._held.items() for one, amount in held if one == resource]

    def ahead_of(self, candidate: Candidate, wanted: Collection[Resource]) -> tuple[int, Candidate | None]:
        """Return how many candidates that need one of these resources come first, and the very first of them.

        Candidates of paused DAGs do not count. This examines every candidate once: only explanations for people call it.
        """
        count, first, everything = 0, None, PARALLELISM in wanted
        closed = {resource for resource, capacity in self._capacity.items() if not capacity and resource[0] == "dag"}
        for other in self._queued.values():
            if other >= candidate:
                continue
            if everything or other.needs[0][0] in wanted or any(resource in wanted for resource, _ in other.needs):
                if closed and any(resource in closed for resource, _ in other.needs):
                    continue
                count += 1
                if first is None or other < first:
                    first = other
        return count, first

    def admitted_before(self, candidate: Candidate) -> list[Candidate]:
        """Return the candidates that would be admitted first and leave too little for this one; empty if it would be admitted.

        Nothing is changed.
        """
        before = [other for other in self._queued.values() if other < candidate]
        taken: dict[Resource, int] = {}

        def fits(one: Candidate) -> bool:
            return all(self.free(r) - taken.get(r, 0) >= amount for r, amount in (*one.needs, (PARALLELISM, 1)))

        admitted = []
        for other in sorted(before):
            if fits(other):
                admitted.append(other)
                for resource, amount in (*other.needs, (PARALLELISM, 1)):
                    taken[resource] = taken.get(resource, 0) + amount
        return [] if fits(candidate) else admitted

    # --- slots ----------------------------------------------------------------------------------------------------

    def occupy(self, run: int, slot: int, needs: tuple[tuple[Resource, int], ...], *, attempt: bool = True) -> None:
        """Count an existing attempt. Also used to rebuild the counts from the rows.

        Args:
            attempt: False for a deferred task instance, which holds `needs` but does not count for parallelism.
        """
        if (run, slot) in self._held:
            return
        everything = (*needs, (PARALLELISM, 1)) if attempt else needs
        self._held[run, slot] = everything
        for resource, amount in everything:
            self._used[resource] = self._used.get(resource, 0) + amount

    def release(self, run: int, slot: int) -> None:
        """Release the resources that an ended attempt held. Releasing twice does nothing."""
        for resource, amount in self._held.pop((run, slot), ()):
            left = self._used.get(resource, 0) - amount
            if left > 0:
                self._used[resource] = left
            else:
                self._used.pop(resource, None)
            self._reopen(resource)

    def release_run(self, run: int) -> None:
        """Release the resources that all attempts of a run hold."""
        for key in [key for key in self._held if key[0] == run]:
            self.release(*key)

    def _reopen(self, resource: Resource) -> None:
        for amount in self._wants.get(resource, ()):
            self._open.add((resource, amount))

    def holders(self, resource: Resource) -> list[tuple[int, int]]:
        """Return (run, slot) of every attempt that holds some of the resource."""
        return [key for key, held in self._held.items() if any(r == resource for r, _ in held)]

    def admit(self, at_most: int = UNLIMITED) -> list[Candidate]:
        """Admit the best candidates that fit, and count the resources that they hold."""
        admitted: list[Candidate] = []
        while len(admitted) < at_most and self.free(PARALLELISM) > 0:
            candidate = self._next_fitting()
            if candidate is None:
                break
            del self._queued[candidate.run, candidate.slot]
            self.occupy(candidate.run, candidate.slot, candidate.needs)
            admitted.append(candidate)
        return admitted

    def _next_fitting(self) -> Candidate | None:
        """Return the first candidate in order that fits. The others move to the heap of the resource that refused them."""
        while True:
            heap = self._best_heap()
            if heap is None:
                return None
            candidate = heappop(heap)
            if self._queued.get((candidate.run, candidate.slot)) is not candidate:
                continue
            refusal = self.refusal(candidate)
            if refusal is None:
                return candidate
            heappush(self._waiting.setdefault(refusal, []), candidate)
            self._wants.setdefault(refusal[0], set()).add(refusal[1])

    def _best_heap(self) -> list[Candidate] | None:
        """Return the heap with the best first candidate, among the ready heap and the heaps of resources with free capacity."""
        best = self._ready or None
        for key in list(self._open):
            heap, (resource, amount) = self._waiting.get(key), key
            if not heap:
                self._waiting.pop(key, None)
                self._wants[resource].discard(amount)
                self._open.discard(key)
            elif self.free(resource) < amount:
                self._open.discard(key)
            elif best is None or heap[0] < best[0]:
                best = heap
        return best

    def refusal(self, candidate: Candidate) -> tuple[Resource, int] | None:
        """Return the first resource that has too little free, with the amount needed; None if the candidate fits."""
        for resource, amount in candidate.needs:
            if self.free(resource) < amount:
                return resource, amount
        return None

    def requeue_all(self, candidates: Iterable[Candidate]) -> None:
        """Replace all candidates by these (after a restart)."""
        self._queued = {(c.run, c.slot): c for c in candidates}
        self._ready = list(self._queued.values())
        heapify(self._ready)
        self._waiting.clear()
        self._wants.clear()
        self._open.clear()
