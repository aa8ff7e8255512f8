"""Which task instances a run has: the slot of each, its task, and its map index.

The slots 0 … count − 1 belong to the tasks of the definition, in its order (in a run that began with another definition: in the
order of its `layout`, and some of these slots are not the own slot of a task). A mapped task has one instance of map index −1 there
until it is expanded; then this slot becomes map index 0, and the other instances get new slots after all existing ones.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from tradewind.model.ids import UNEXPANDED


class Instances:
    """The task instances of a run. Instances are added and never deleted: an instance that is not needed gets state `removed`."""

    __slots__ = ("between", "count", "expanded", "indexes", "owners")

    def __init__(self, count: int) -> None:
        self.count = count
        """Slots of tasks; slots from `count` on belong to further instances of mapped tasks."""
        self.owners = array("i")
        self.indexes = array("i")
        self.expanded: dict[int, array[int]] = {}
        """Expanded task → its slots by map index."""
        self.between: dict[int, tuple[int, int]] = {}
        """Slots below `count` that are not the own slot of a task → (task, map index). For a deleted task: its own slot."""

    @property
    def total(self) -> int:
        return self.count + len(self.owners)

    def task(self, slot: int) -> int:
        """Return the task that an instance belongs to."""
        if slot < self.count:
            return slot if not self.between or slot not in self.between else self.between[slot][0]
        return self.owners[slot - self.count]

    def index(self, slot: int) -> int:
        """Return the map index of an instance; −1 if its task is not expanded."""
        if slot >= self.count:
            return self.indexes[slot - self.count]
        if slot in self.between:
            return self.between[slot][1]
        return 0 if slot in self.expanded else UNEXPANDED

    def slots(self, task: int) -> Sequence[int]:
        """Return the slots of all instances of a task, by map index."""
        return self.expanded.get(task) or (task,)

    def start_expansion(self, task: int) -> None:
        """Make the task's own slot its map index 0."""
        self.expanded[task] = array("i", (task,))

    def add(self, task: int, index: int) -> int:
        """Add an instance to an expanded task, and return its slot."""
        slot = self.total
        self.owners.append(task)
        self.indexes.append(index)
        self.expanded[task].append(slot)
        return slot
