"""Which of the scheduled task instances get a slot now.

Every limit is a *resource* with a capacity and a use: parallelism, a pool, a run's max_active_tasks, a DAG's
max_active_tasks_all_runs, a task's max_active_tis_per_dag and _per_dagrun. A scheduled task instance is a candidate in one
of two places: the ready heap, or the heap of the resource that last refused it. When something is released, only the heaps
of resources with room are looked at. So a finished task costs a few heap steps, however many thousand wait, and nothing is
ever selected by priority only to be filtered away: the best candidate that fits is taken, one that does not fit is passed
over (Airflow's rule).

Order: priority downwards, then logical date, then order of arrival in the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

Resource = tuple[str, str | int, int]
"""(kind, owner, task): ("parallelism", "", 0), ("pool", name, 0), ("run", run number, 0), ("dag_tasks", dag id, 0),
("dag_task", dag id, task key), ("run_task", run number, slot)."""

UNLIMITED = 2**62
PARALLELISM: Resource = ("parallelism", "", 0)


class Candidate(NamedTuple):
    """A scheduled task instance that wants a slot. Sorts by who comes first."""

    rank: int
    """Minus the priority weight."""
    logical_date: int
    run: int
    slot: int
    needs: tuple[tuple[Resource, int], ...]
    """Resources besides parallelism, and how much of each; the pool comes first."""


class Admission:
    """Limits, their use, and who waits for them."""

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

    # --- limits ---------------------------------------------------------------------------------------------------

    def set_capacity(self, resource: Resource, capacity: int | None) -> None:
        """Set a limit. None: the resource does not exist, and nothing that needs it is admitted (an unknown pool)."""
        if capacity is None:
            self._capacity.pop(resource, None)
        else:
            self._capacity[resource] = UNLIMITED if capacity < 0 else capacity
            self._reopen(resource)

    def capacity(self, resource: Resource) -> int | None:
        return self._capacity.get(resource)

    def used(self, resource: Resource) -> int:
        """Derived from the occupying attempts: equal to a recount at any time."""
        return self._used.get(resource, 0)

    def free(self, resource: Resource) -> int:
        """What is left; 0 for a resource that does not exist, never negative (a limit may have been lowered)."""
        return max(0, self._capacity.get(resource, 0) - self._used.get(resource, 0))

    def forget(self, resource: Resource) -> None:
        """The owner is gone (a run ended)."""
        self._capacity.pop(resource, None)
        self._used.pop(resource, None)
        for amount in self._wants.pop(resource, ()):
            self._waiting.pop((resource, amount), None)
            self._open.discard((resource, amount))

    # --- candidates -----------------------------------------------------------------------------------------------

    def add(self, candidate: Candidate) -> None:
        """A task instance became scheduled."""
        self._queued[candidate.run, candidate.slot] = candidate
        heappush(self._ready, candidate)

    def discard(self, run: int, slot: int) -> None:
        """It is not scheduled any more. Its entry in a heap is passed over when it is met."""
        self._queued.pop((run, slot), None)

    def waiting(self) -> int:
        """How many scheduled task instances have no slot."""
        return len(self._queued)

    def ahead_of(self, me: Candidate, wanted: Collection[Resource]) -> tuple[int, Candidate | None]:
        """How many candidates of DAGs that are not paused want one of these resources and come before it, and the first of them.

        Looks at every candidate once; only people ask this.
        """
        count, first, everything = 0, None, PARALLELISM in wanted
        closed = {resource for resource, capacity in self._capacity.items() if not capacity and resource[0] == "dag"}
        for other in self._queued.values():
            if other >= me:
                continue
            if everything or other.needs[0][0] in wanted or any(resource in wanted for resource, _ in other.needs):
                if closed and any(resource in closed for resource, _ in other.needs):
                    continue
                count += 1
                if first is None or other < first:
                    first = other
        return count, first

    def overtaken(self, me: Candidate) -> list[Candidate]:
        """Those that get their slots before it and leave it too little; empty where it gets its own. Nothing is changed."""
        before = [other for other in self._queued.values() if other < me]
        taken: dict[Resource, int] = {}

        def fits(one: Candidate) -> bool:
            return all(self.free(r) - taken.get(r, 0) >= amount for r, amount in (*one.needs, (PARALLELISM, 1)))

        admitted = []
        for other in sorted(before):
            if fits(other):
                admitted.append(other)
                for resource, amount in (*other.needs, (PARALLELISM, 1)):
                    taken[resource] = taken.get(resource, 0) + amount
        return [] if fits(me) else admitted

    # --- slots ----------------------------------------------------------------------------------------------------

    def occupy(self, run: int, slot: int, needs: tuple[tuple[Resource, int], ...], *, attempt: bool = True) -> None:
        """An attempt exists (also used to rebuild the counts from the rows). `attempt` False: it only waits, and holds `needs`."""
        if (run, slot) in self._held:
            return
        everything = (*needs, (PARALLELISM, 1)) if attempt else needs
        self._held[run, slot] = everything
        for resource, amount in everything:
            self._used[resource] = self._used.get(resource, 0) + amount

    def release(self, run: int, slot: int) -> None:
        """The attempt is over. Releasing what is not held does nothing."""
        for resource, amount in self._held.pop((run, slot), ()):
            left = self._used.get(resource, 0) - amount
            if left > 0:
                self._used[resource] = left
            else:
                self._used.pop(resource, None)
            self._reopen(resource)

    def release_run(self, run: int) -> None:
        """Whatever attempts of a run hold, as far as it is known, is free."""
        for key in [key for key in self._held if key[0] == run]:
            self.release(*key)

    def _reopen(self, resource: Resource) -> None:
        for amount in self._wants.get(resource, ()):
            self._open.add((resource, amount))

    def holders(self, resource: Resource) -> list[tuple[int, int]]:
        """(run, slot) of every attempt that holds some of it."""
        return [key for key, held in self._held.items() if any(r == resource for r, _ in held)]

    def admit(self, at_most: int = UNLIMITED) -> list[Candidate]:
        """Give slots to the best candidates that fit; they are occupied when this returns."""
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
        """The first candidate in order that fits. Those that do not fit move to the heap of what refuses them."""
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
        """Of the ready heap and the heaps of resources with room, the one whose first candidate comes first."""
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
        """The first resource that has not enough left for it, and how much it needs; None when it fits."""
        for resource, amount in candidate.needs:
            if self.free(resource) < amount:
                return resource, amount
        return None

    def requeue_all(self, candidates: Iterable[Candidate]) -> None:
        """Start afresh with these candidates (after a restart)."""
        self._queued = {(c.run, c.slot): c for c in candidates}
        self._ready = list(self._queued.values())
        heapify(self._ready)
        self._waiting.clear()
        self._wants.clear()
        self._open.clear()
