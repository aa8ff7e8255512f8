"""What has to be looked at at a date: a heap by wall-clock moment.

The wall clock may jump and the machine may sleep, so the loop never waits longer than `LONGEST_WAIT` for the earliest entry;
an entry is due when the wall clock says so.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from tradewind.model.moments import MINUTE

LONGEST_WAIT = MINUTE


class Timers:
    """Items by the moment they are due. A DAG id is kept once, with its earliest moment."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any]] = []
        self._order = 0
        self._dags: dict[str, int] = {}

    def add(self, due: int, item: Any) -> None:
        if isinstance(item, str):
            known = self._dags.get(item)
            if known is not None and known <= due:
                return
            self._dags[item] = due
        self._order += 1
        heappush(self._heap, (due, self._order, item))

    def due(self, now: int) -> list[Any]:
        """Take out everything that is due."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            due, _, item = heappop(self._heap)
            if isinstance(item, str):
                if self._dags.get(item) != due:
                    continue
                del self._dags[item]
            found.append(item)
        return found

    def next_due(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def clear(self) -> None:
        self._heap.clear()
        self._dags.clear()
