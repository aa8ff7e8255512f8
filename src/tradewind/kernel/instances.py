"""Which task instances a run has: the slot of each, the task it belongs to, and its map index.

The slots 0 … count − 1 are the tasks of the definition, in its order (in a run that was begun under another one: those of its
`layout`, and some of these slots are no task's own). A mapped task stands there as one instance of map index −1 until it is
expanded; then its slot is map index 0, and the others get slots behind all that exist.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from tradewind.model.ids import UNEXPANDED


class Instances:
    """Grows, never shrinks: an instance that is not wanted any more is `removed`."""

    __slots__ = ("between", "count", "indexes", "of", "owners")

    def __init__(self, count: int) -> None:
        self.count = count
        """Tasks."""
        self.owners = array("i")
        self.indexes = array("i")
        self.of: dict[int, array[int]] = {}
        """Slots by map index, of every task that is expanded."""
        self.between: dict[int, tuple[int, int]] = {}
        """Slots below `count` that are no task's own → (task, map index); of a task that is gone, its own slot."""

    @property
    def total(self) -> int:
        return self.count + len(self.owners)

    def task(self, slot: int) -> int:
        """The task that an instance belongs to."""
        if slot < self.count:
            return slot if not self.between or slot not in self.between else self.between[slot][0]
        return self.owners[slot - self.count]

    def index(self, slot: int) -> int:
        """Its map index."""
        if slot >= self.count:
            return self.indexes[slot - self.count]
        if slot in self.between:
            return self.between[slot][1]
        return 0 if slot in self.of else UNEXPANDED

    def slots(self, task: int) -> Sequence[int]:
        """All instances of a task, by map index."""
        return self.of.get(task) or (task,)

    def first(self, task: int) -> None:
        """The task's own slot becomes map index 0."""
        self.of[task] = array("i", (task,))

    def add(self, task: int, index: int) -> int:
        """The slot of a new instance."""
        slot = self.total
        self.owners.append(task)
        self.indexes.append(index)
        self.of[task].append(slot)
        return slot
