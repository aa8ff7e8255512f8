"""Which slot of a run belongs to which task, when the run was begun under another definition than the one it has now.

In a run that was made for its definition, task number *i* stands in slot *i*, and further instances of mapped tasks stand behind
all tasks. Rows keep their slots for ever. So when a run meets a newer definition, its tasks stand where their rows are, and tasks
without a row get slots behind all rows. The number of a task is its own slot in both cases: that of its unexpanded instance, or of
map index 0. Between them lie slots that are no task's own: further instances of mapped tasks, and instances of tasks that are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tradewind.kernel.expansion import find_domains
from tradewind.model.definition import DagDefinition


class Placed(Protocol):
    """The part of a task instance's row that says whose it is."""

    @property
    def slot(self) -> int: ...
    @property
    def task_id(self) -> str: ...
    @property
    def map_index(self) -> int: ...


class Layout(NamedTuple):
    """Slots of a run and their tasks."""

    own: tuple[str | None, ...]
    """By slot: the task whose own slot this is; None: another instance of some task."""
    gone: frozenset[int]
    """Slots of instances that the definition does not have, or not in this form."""


def fits(definition: DagDefinition, rows: Sequence[Placed]) -> bool:
    """Do these rows stand where this definition has its tasks?"""
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


def layout(definition: DagDefinition, rows: Sequence[Placed]) -> Layout:
    """Where the tasks of a definition stand in a run with these rows."""
    mapped = mapped_tasks(definition)
    place: dict[str, int] = {}
    members: dict[str, dict[int, int]] = {task_id: {} for task_id in mapped}
    for row in rows:
        if row.task_id in mapped and row.map_index >= 0:
            members[row.task_id].setdefault(row.map_index, row.slot)
        elif row.map_index < 0:
            place.setdefault(row.task_id, row.slot)
    instances: set[int] = set()
    for task_id, slots in members.items():
        if 0 in slots:
            place[task_id] = slots[0]
            index = 0
            while index in slots:  # what stands behind a gap belongs to nothing
                instances.add(slots[index])
                index += 1
    size = rows[-1].slot + 1 if rows else 0
    own: list[str | None] = [None] * size
    for task in definition.tasks:
        if task.task_id in place:
            own[place[task.task_id]] = task.task_id
        else:
            own.append(task.task_id)
    gone = frozenset(row.slot for row in rows if own[row.slot] is None and row.slot not in instances)
    return Layout(tuple(own), gone)


def mapped_tasks(definition: DagDefinition) -> frozenset[str]:
    """Tasks that are expanded, alone or with their group."""
    if not any(task.mapped for task in definition.tasks) and not any(group.mapped for group in definition.groups):
        return frozenset()
    index = {task.task_id: i for i, task in enumerate(definition.tasks)}
    return frozenset(definition.tasks[i].task_id for domain in find_domains(definition, index) for i in domain.tasks)
