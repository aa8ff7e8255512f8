"""The rows of the grid: groups and tasks of a DAG, each group before its members, upstream before downstream.

The order is Airflow's (`TaskGroup.topological_sort`): the children of each group are sorted by the edges between them, where an
edge of a task inside a child counts as an edge of the child. Children without an order between them keep the order of the DAG file.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from tradewind.model.definition import DagDefinition, GroupDefinition, TaskDefinition

TASK, GROUP, MAPPED_TASK, MAPPED_GROUP = range(4)
"""Kinds of rows. The tasks of a mapped group are mapped tasks."""


class GridRow(NamedTuple):
    """One row of the grid."""

    id: str
    """Id of the task or group."""
    kind: int
    parent: int
    """Row of the group that contains it; −1: it is in no group."""
    end: int
    """The row after the last row inside a group; for a task the row after it."""
    task: int
    """Number of the task in the definition; −1 for a group."""


def grid_rows(definition: DagDefinition) -> list[GridRow]:
    """Return the rows of a DAG from top to bottom."""
    groups = {group.group_id: group for group in definition.groups}
    members: dict[str | None, list[str | int]] = {None: []}
    placed: set[str] = set()

    def place(group_id: str | None) -> None:
        """Add a group to the members of its parent when its first task or subgroup is added."""
        if group_id is None or group_id in placed or group_id not in groups:
            return
        placed.add(group_id)
        parent = groups[group_id].parent
        place(parent)
        members.setdefault(parent if parent in groups else None, []).append(group_id)
        members.setdefault(group_id, [])

    for number, task in enumerate(definition.tasks):
        place(task.group)
        members[task.group if task.group in groups else None].append(number)
    for group in definition.groups:
        place(group.group_id)
    children = {group: _sorted(found, edges) for (group, found), edges in _with_edges(definition, groups, members)}
    return _flattened(definition.tasks, groups, children)


def _with_edges(
    definition: DagDefinition, groups: dict[str, GroupDefinition], members: dict[str | None, list[str | int]]
) -> list[tuple[tuple[str | None, list[str | int]], set[tuple[str | int, str | int]]]]:
    """Each group with its members and the edges between them."""
    lines: dict[str | None, tuple[str | None, ...]] = {None: (None,)}

    def line(group: str | None) -> tuple[str | None, ...]:
        """The groups from the root down to this one."""
        if group not in groups:
            return (None,)
        if group not in lines:
            lines[group] = (*line(groups[group].parent), group)
        return lines[group]

    edges: dict[str | None, set[tuple[str | int, str | int]]] = {group: set() for group in members}
    numbers = {task.task_id: number for number, task in enumerate(definition.tasks)}
    for number, task in enumerate(definition.tasks):
        below = line(task.group)
        for name in task.upstream:
            up = numbers[name]
            above = line(definition.tasks[up].group)
            if above is below:  # most edges stay inside one group
                edges[below[-1]].add((up, number))
                continue
            depth = 0
            while depth + 1 < min(len(above), len(below)) and above[depth + 1] == below[depth + 1]:
                depth += 1
            first = above[depth + 1] if depth + 1 < len(above) else up
            second = below[depth + 1] if depth + 1 < len(below) else number
            assert first is not None
            assert second is not None
            edges[below[depth]].add((first, second))
    return [((group, found), edges[group]) for group, found in members.items()]


def _sorted(members: list[str | int], edges: set[tuple[str | int, str | int]]) -> list[str | int]:
    """Return the members, upstream first, otherwise in their order. If edges of groups form a cycle, the first remaining member
    comes next.
    """
    if not edges:
        return members
    places = {member: place for place, member in enumerate(members)}
    down: dict[int, list[int]] = {}
    missing = [0] * len(members)
    for up, low in edges:
        down.setdefault(places[up], []).append(places[low])
        missing[places[low]] += 1
    ready = [place for place, count in enumerate(missing) if count == 0]
    done = bytearray(len(members))
    order: list[str | int] = []
    next_left = 0
    while len(order) < len(members):
        if not ready:
            while done[next_left]:
                next_left += 1
            ready = [next_left]
        place = heapq.heappop(ready)
        if done[place]:
            continue
        done[place] = 1
        order.append(members[place])
        for low_place in down.get(place, ()):
            missing[low_place] -= 1
            if missing[low_place] == 0 and not done[low_place]:
                heapq.heappush(ready, low_place)
    return order


def _flattened(
    tasks: tuple[TaskDefinition, ...], groups: dict[str, GroupDefinition], children: dict[str | None, list[str | int]]
) -> list[GridRow]:
    rows: list[GridRow] = []
    # (remaining members, row of the group, whether the group is mapped)
    stack: list[tuple[list[str | int], int, bool]] = [(list(reversed(children[None])), -1, False)]
    while stack:
        left, parent, mapped = stack[-1]
        if not left:
            stack.pop()
            if parent >= 0:
                rows[parent] = rows[parent]._replace(end=len(rows))
            continue
        one = left.pop()
        place = len(rows)
        if isinstance(one, int):
            task = tasks[one]
            kind = MAPPED_TASK if mapped or task.mapped else TASK
            rows.append(GridRow(task.task_id, kind, parent, place + 1, one))
        else:
            inside = mapped or groups[one].mapped
            rows.append(GridRow(one, MAPPED_GROUP if groups[one].mapped else GROUP, parent, place + 1, -1))
            stack.append((list(reversed(children.get(one, []))), place, inside))
    return rows
