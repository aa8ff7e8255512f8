"""Which slot of a run belongs to which task, if the run began with another definition than its current one.

In a run that began with its current definition, task number *i* has slot *i*, and further instances of mapped tasks have slots
after all tasks. Rows never change their slots. So when a run gets a newer definition, its tasks keep the slots of their rows,
and tasks without a row get slots after all rows. In both cases the number of a task is its own slot: the slot of its
unexpanded instance, or of map index 0. All other slots are not the own slot of a task: they belong to further instances of mapped
tasks, and to instances of deleted tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tradewind.kernel.domains import find_domains
from tradewind.model.definition import DagDefinition


class InstanceRow(Protocol):
    """The part of a task instance's row that identifies it."""

    @property
    def slot(self) -> int: ...
    @property
    def task_id(self) -> str: ...
    @property
    def map_index(self) -> int: ...


class Layout(NamedTuple):
    """Slots of a run and their tasks."""

    own: tuple[str | None, ...]
    """By slot: the id of the task whose own slot this is; None: it is not the own slot of a task."""
    gone: frozenset[int]
    """Slots of instances that the definition does not have, for example of a deleted task or of a task that is not mapped now."""


def fits(definition: DagDefinition, rows: Sequence[InstanceRow]) -> bool:
    """Return whether each task of this definition has the slot of its number in these rows."""
    tasks = definition.tasks
    if len(rows) < len(tasks) or any(row.task_id != task.task_id for row, task in zip(rows, tasks, strict=False)):
        return False
    mapped = mapped_tasks(definition)
    for row in rows:
        further = row.slot >= len(tasks)
        if row.task_id in mapped:
            if further is not (row.map_index > 0):
                return False
        elif further or row.map_index >= 0:
            return False
    return True


def layout(definition: DagDefinition, rows: Sequence[InstanceRow]) -> Layout:
    """Return the slots of a definition's tasks in a run with these rows."""
    mapped = mapped_tasks(definition)
    own_slot: dict[str, int] = {}
    members: dict[str, dict[int, int]] = {task_id: {} for task_id in mapped}
    for row in rows:
        if row.task_id in mapped and row.map_index >= 0:
            members[row.task_id].setdefault(row.map_index, row.slot)
        elif row.map_index < 0:
            own_slot.setdefault(row.task_id, row.slot)
    instances: set[int] = set()
    for task_id, slots in members.items():
        if 0 in slots:
            own_slot[task_id] = slots[0]
            index = 0
            while index in slots:  # instances after a gap in the map indexes are deleted
                instances.add(slots[index])
                index += 1
    size = rows[-1].slot + 1 if rows else 0
    own: list[str | None] = [None] * size
    for task in definition.tasks:
        if task.task_id in own_slot:
            own[own_slot[task.task_id]] = task.task_id
        else:
            own.append(task.task_id)
    gone = frozenset(row.slot for row in rows if own[row.slot] is None and row.slot not in instances)
    return Layout(tuple(own), gone)


def mapped_tasks(definition: DagDefinition) -> frozenset[str]:
    """Return the ids of tasks that are expanded, alone or with their group."""
    if not any(task.mapped for task in definition.tasks) and not any(group.mapped for group in definition.groups):
        return frozenset()
    index = {task.task_id: i for i, task in enumerate(definition.tasks)}
    return frozenset(definition.tasks[i].task_id for domain in find_domains(definition, index) for i in domain.tasks)
