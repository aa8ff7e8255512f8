"""The graph of a DAG's tasks: topological order, cycles, reachable tasks, subsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tradewind.model.errors import CycleError
from tradewind.sdk import open_dags
from tradewind.sdk.dependencies import link
from tradewind.sdk.params import ParamsDict
from tradewind.sdk.taskgroup import TaskGroup

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator


def topological_order(dag: DAG) -> tuple[BaseOperator, ...]:
    """All tasks, each after its upstream tasks; otherwise close to the order of creation.

    Raises:
        CycleError: the dependencies contain a cycle; the message lists its tasks.
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
        path = " >> ".join(_find_cycle(dag, waiting))
        raise CycleError(dag.located_message(f"the dependencies contain a cycle: {path}"))
    return tuple(order)


def _find_cycle(dag: DAG, waiting: Mapping[str, int]) -> list[str]:
    """One cycle among the tasks that never became ready, starting with its task that was created first."""
    task = next(task for task_id, task in dag.task_dict.items() if waiting[task_id])
    trail: dict[str, None] = {}
    while task.task_id not in trail:
        trail[task.task_id] = None
        # each task that never became ready has such a task upstream
        task = next(up for task_id, up in (task._upstream or {}).items() if waiting[task_id])
    path = list(trail)
    cycle = path[path.index(task.task_id) :][::-1]
    number = {task_id: index for index, task_id in enumerate(dag.task_dict)}
    first = min(range(len(cycle)), key=lambda index: number[cycle[index]])
    cycle = cycle[first:] + cycle[:first]
    return [*cycle, cycle[0]]


def reachable(tasks: Iterable[BaseOperator], upstream: bool = False) -> dict[str, BaseOperator]:
    """All downstream tasks of the given ones (upstream tasks, with `upstream`) by id, near ones first, each once.

    A given task is included only if it can be reached from another one.
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


def edge_labels(dag: DAG) -> tuple[tuple[str, str, str], ...]:
    """(upstream task, downstream task, label), sorted. The label of a group's dependency is that of each of its edges."""
    ends: dict[str, list[str]] = {}
    for group in dag.task_group_dict.values() if dag.edge_info else ():
        ends[group.downstream_join_id] = [task.task_id for task in group.get_leaves()]
        ends[group.upstream_join_id] = [task.task_id for task in group.get_roots()]
    found: dict[tuple[str, str], str] = {}
    for before, infos in dag.edge_info.items():
        for after, info in infos.items():
            for up in ends.get(before, [before]):
                for down in ends.get(after, [after]):
                    if down in dag.task_dict and up in (dag.task_dict[down]._upstream or ()):
                        found[up, down] = str(info["label"])
    return tuple(sorted((up, down, label) for (up, down), label in found.items()))


def copy_with(dag: DAG, kept: set[str]) -> DAG:
    """A copy of a DAG with only the tasks in `kept`, the dependencies between them, and the groups around them."""
    subset = type(dag).__new__(type(dag))
    subset.__dict__.update(dag.__dict__)
    subset.task_dict, subset.ids, subset.suffixes, subset.task_group_dict, subset.edge_info = {}, {}, {}, {}, {}
    subset.task_group = TaskGroup.create_root(subset)
    groups: dict[TaskGroup | None, TaskGroup] = {dag.task_group: subset.task_group, None: subset.task_group}
    around = _groups_around(dag, kept)
    for node_id, node in dag.ids.items():  # a group is created before its tasks
        if isinstance(node, TaskGroup):
            if node in around:
                groups[node] = node.copy_into(groups[node.parent_group])
        elif node_id in kept:
            group = groups[node.task_group]
            copied = node.copy_for(subset)
            copied.task_group = group
            subset.ids[node_id] = subset.task_dict[node_id] = group.children[node_id] = copied
    for task_id, task in subset.task_dict.items():
        for child in dag.task_dict[task_id]._downstream or ():
            if child in kept:
                link(task, subset.task_dict[child], dag.get_edge_info(task_id, child).get("label"))
    joins = {one for group in subset.task_group_dict.values() for one in (group.upstream_join_id, group.downstream_join_id)}
    for before, infos in dag.edge_info.items():
        for after, info in infos.items():
            if before in joins | kept and after in joins | kept and (before in joins or after in joins):
                subset.set_edge_info(before, after, info)
    return subset


def _groups_around(dag: DAG, kept: Iterable[str]) -> set[TaskGroup]:
    found: set[TaskGroup] = set()
    for task_id in kept:
        group = dag.task_dict[task_id].task_group
        while group is not None and group not in found:
            found.add(group)
            group = group.parent_group
    return found


def move_into(source: DAG, group: TaskGroup) -> None:
    """Move every task and group of one DAG, with their dependencies, into a group of another. The emptied DAG is not registered.

    Ids inside the group get its prefix. The tasks keep what the source DAG gave them: parameters, macros, filters, folders of
    templates.

    Raises:
        DuplicateTaskId: the other DAG already uses an id.
    """
    target = group.dag
    tasks = list(source.task_dict.values())
    neighbours = {id(task): (list((task._upstream or {}).values()), list((task._downstream or {}).values())) for task in tasks}
    labels = dict(source.edge_info)
    parents: dict[int, TaskGroup] = {id(source.task_group): group}
    for inner in source.task_group_dict.values():
        known = parents[id(inner.parent_group)]
        made = parents[id(inner)] = TaskGroup(inner.id_in_group, inner.prefix_group_id, known, default_args=inner.default_args)
        if "subdag" in vars(inner):
            vars(made)["subdag"] = vars(inner)["subdag"]
    before = {id(task): task.task_id for task in tasks}
    for task in tasks:
        place = parents[id(task.task_group)]
        task.task_id, task._dag, task._upstream, task._downstream = task.id_in_group, None, None, None
        task._params = ParamsDict({**source.params._params, **task.params._params})
        place.add(task)
    for task in tasks:
        for child in neighbours[id(task)][1]:
            label = labels.get(before[id(task)], {}).get(before[id(child)], {}).get("label")
            link(task, child, label)
    target.user_defined_macros = {**(source.user_defined_macros or {}), **(target.user_defined_macros or {})} or None
    target.user_defined_filters = {**(source.user_defined_filters or {}), **(target.user_defined_filters or {})} or None
    folders = dict.fromkeys((*(target.template_searchpath or ()), *(source.template_searchpath or ())))
    target.template_searchpath = list(folders) or None
    source.task_dict.clear()
    source.ids.clear()
    open_dags.forget(source)
