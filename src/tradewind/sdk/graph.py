"""Questions about a DAG as a graph: an order of its tasks, a circle in it, a part of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tradewind.model.errors import CycleError
from tradewind.sdk.dependencies import link
from tradewind.sdk.taskgroup import TaskGroup

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator


def topological_order(dag: DAG) -> tuple[BaseOperator, ...]:
    """Every task after the tasks that it waits for; otherwise near the author's order.

    Raises:
        CycleError: naming the tasks that wait for each other.
    """
    waiting = {task_id: len(task._upstream or ()) for task_id, task in dag.task_dict.items()}
    ready = deque(task for task in dag.task_dict.values() if not task._upstream)
    order: list[BaseOperator] = []
    while ready:
        task = ready.popleft()
        order.append(task)
        for task_id, child in (task._downstream or {}).items():
            waiting[task_id] -= 1
            if not waiting[task_id]:
                ready.append(child)
    if len(order) < len(dag.task_dict):
        raise CycleError(dag.fault(f"these tasks wait for each other: {' >> '.join(_circle(dag, waiting))}"))
    return tuple(order)


def _circle(dag: DAG, waiting: Mapping[str, int]) -> list[str]:
    """One circle among the tasks that never became ready, written from its first task in the author's order."""
    task = next(task for task_id, task in dag.task_dict.items() if waiting[task_id])
    trail: dict[str, None] = {}
    while task.task_id not in trail:
        trail[task.task_id] = None
        # a task that never became ready waits for another such task
        task = next(up for task_id, up in (task._upstream or {}).items() if waiting[task_id])
    path = list(trail)
    circle = path[path.index(task.task_id) :][::-1]
    number = {task_id: place for place, task_id in enumerate(dag.task_dict)}
    first = min(range(len(circle)), key=lambda place: number[circle[place]])
    circle = circle[first:] + circle[:first]
    return [*circle, circle[0]]


def reachable(tasks: Iterable[BaseOperator], upstream: bool = False) -> dict[str, BaseOperator]:
    """All tasks after the given ones (before them, with `upstream`) by id, near ones first, each once.

    The given ones are among them only where they can be reached.
    """
    found: dict[str, BaseOperator] = {}
    pending = deque(tasks)
    while pending:
        task = pending.popleft()
        for task_id, relative in ((task._upstream if upstream else task._downstream) or {}).items():
            if task_id not in found:
                found[task_id] = relative
                pending.append(relative)
    return found


def copy_with(dag: DAG, kept: set[str]) -> DAG:
    """A copy of a DAG with only the tasks in `kept`, the arrows between them, and the groups around them."""
    twin = type(dag).__new__(type(dag))
    twin.__dict__.update(dag.__dict__)
    twin.task_dict, twin.ids, twin.suffixes, twin.task_group_dict, twin.edge_info = {}, {}, {}, {}, {}
    twin.task_group = TaskGroup.create_root(twin)
    groups: dict[TaskGroup | None, TaskGroup] = {dag.task_group: twin.task_group, None: twin.task_group}
    around = _groups_around(dag, kept)
    for node_id, node in dag.ids.items():  # groups come before what is inside
        if isinstance(node, TaskGroup):
            if node in around:
                groups[node] = node.copy_into(groups[node.parent_group])
        elif node_id in kept:
            group = groups[node.task_group]
            copied = node.copy_for(twin)
            copied.task_group = group
            twin.ids[node_id] = twin.task_dict[node_id] = group.children[node_id] = copied
    for task_id, task in twin.task_dict.items():
        for child in dag.task_dict[task_id]._downstream or ():
            if child in kept:
                link(task, twin.task_dict[child], dag.get_edge_info(task_id, child).get("label"))
    return twin


def _groups_around(dag: DAG, kept: Iterable[str]) -> set[TaskGroup]:
    found: set[TaskGroup] = set()
    for task_id in kept:
        group = dag.task_dict[task_id].task_group
        while group is not None and group not in found:
            found.add(group)
            group = group.parent_group
    return found
