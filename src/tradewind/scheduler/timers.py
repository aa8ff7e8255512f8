"""Timers: items that are due at a moment of the wall clock, in a heap.

The wall clock may jump and the machine may sleep, so the loop never waits longer than `LONGEST_WAIT` for the earliest entry. An
entry is due when the wall clock has reached its moment.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

from tradewind.model.moments import MINUTE

LONGEST_WAIT = MINUTE
PRUNE_MIN = 1000
"""With fewer entries pruning does nothing."""


class Timers:
    """Items by the moment at which they are due. A DAG id (an item of type str) is kept once, with its earliest moment."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any]] = []
        self._order = 0
        self._dags: dict[str, int] = {}
        self._pruned = 0
        """Number of entries after the last pruning."""

    def add(self, due: int, item: Any) -> None:
        if isinstance(item, str):
            known = self._dags.get(item)
            if known is not None and known <= due:
                return
            self._dags[item] = due
        self._order += 1
        heappush(self._heap, (due, self._order, item))

    def due(self, now: int) -> list[Any]:
        """Remove and return all due items."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            due, _, item = heappop(self._heap)
            if isinstance(item, str):
                if self._dags.get(item) != due:
                    continue
                del self._dags[item]
            found.append(item)
        return found

    def prune(self, is_wanted: Callable[[Any], bool]) -> None:
        """Remove unwanted and duplicate entries, if there are at least twice as many as after the last pruning.

        Args:
            is_wanted: whether an item is still needed. It is not called for DAG ids.
        """
        if len(self._heap) <= 2 * self._pruned + PRUNE_MIN:
            return
        kept: dict[tuple[int, Any], tuple[int, int, Any]] = {}
        for entry in self._heap:
            due, _, item = entry
            if self._dags.get(item) == due if isinstance(item, str) else is_wanted(item):
                kept[due, item] = entry
        self._heap = list(kept.values())
        heapify(self._heap)
        self._pruned = len(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def next_due(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def clear(self) -> None:
        self._heap.clear()
        self._dags.clear()
