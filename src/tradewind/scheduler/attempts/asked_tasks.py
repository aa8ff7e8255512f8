"""The tasks that a request or a wait names: by id, or by a task group."""

from __future__ import annotations

from tradewind.model.definition import DagDefinition
from tradewind.model.waits import TasksWait
from tradewind.wire.messages import GetTaskStates, ListRows


def asked_tasks(asked: GetTaskStates | ListRows | TasksWait, definition: DagDefinition) -> set[str]:
    """The ids that a request names, and those of the tasks in the group that it names."""
    wanted = set(asked.task_ids)
    if asked.group is not None:
        groups = _with_inner(definition, asked.group)
        wanted.update(task.task_id for task in definition.tasks if task.group in groups)
    return wanted


def _with_inner(definition: DagDefinition, group: str) -> set[str]:
    """A task group and all groups inside it; an empty set if there is no such group."""
    parents = {one.group_id: one.parent for one in definition.groups}
    if group not in parents:
        return set()
    found = {group}
    grown = True
    while grown:
        inner = {name for name, parent in parents.items() if parent in found} - found
        found |= inner
        grown = bool(inner)
    return found
