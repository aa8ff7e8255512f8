"""Which task instances a person selects, for example to clear: tasks, single map indexes, and their upstream and downstream tasks.

Inside a mapped group an instance is related to the instances of its own map index; everywhere else to all instances of a task.
Source: Airflow's `find_relevant_relatives`, `DAG.partial_subset`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from tradewind.kernel.rules import setups
from tradewind.kernel.topology import Topology

Chosen = dict[str, frozenset[int] | None]
"""Task id → its map indexes; None: all of its task instances."""


def choose(
    topology: Topology,
    task_ids: Collection[str] = (),
    instances: Iterable[tuple[str, int]] = (),
    *,
    upstream: bool = False,
    downstream: bool = False,
    in_turn: bool = False,
) -> Chosen:
    """Return the chosen tasks and instances with their upstream or downstream tasks.

    Task ids that this version of the DAG does not have are ignored. Without task ids and instances every task is chosen.

    Args:
        task_ids: tasks with all their instances.
        instances: single instances, (task id, map index). If `task_ids` names the same task, only these instances are chosen.
        upstream: add the tasks upstream of the chosen ones.
        downstream: add the tasks downstream of the chosen ones.
        in_turn: add also the tasks downstream of the tasks that `upstream` adds.
    """
    chosen: Chosen = {task_id: None for task_id in task_ids if task_id in topology.index}
    single: dict[str, set[int]] = {}
    for task_id, index in instances:
        if task_id in topology.index:
            single.setdefault(task_id, set()).add(index)
    chosen.update({task_id: frozenset(indexes) for task_id, indexes in single.items()})
    if not task_ids and not single:
        return dict.fromkeys(topology.ids)
    found = dict(chosen)
    if upstream:
        _add(found, relatives(topology, chosen, topology.upstream))
    if downstream:
        _add(found, relatives(topology, found if in_turn else chosen, topology.downstream))
    return found


def relatives(topology: Topology, chosen: Chosen, edges: Callable[[int], Iterable[int]]) -> Chosen:
    """Return the tasks that `edges` reach from the chosen tasks. A chosen task is included only if another one reaches it."""
    found: Chosen = {}
    whole = [topology.index[task_id] for task_id, indexes in chosen.items() if indexes is None]
    _add(found, {topology.ids[other]: None for other in _reached(whole, edges)})
    for task_id, indexes in chosen.items():
        if indexes is None:
            continue
        task = topology.index[task_id]
        domain = topology.domain_of.get(task)
        for other in _reached([task], edges):
            same_group = domain is not None and topology.domain_of.get(other) == domain
            _add(found, {topology.ids[other]: indexes if same_group else None})
    return found


def with_setups(topology: Topology, chosen: Chosen) -> Chosen:
    """Return the chosen tasks with the tasks that they need to run again: their setups, and the teardowns of those setups.

    If single instances of a mapped group are chosen, only the same map indexes of its setups and teardowns are added.
    """
    found = dict(chosen)
    for task_id in setups.with_setups(topology, chosen) - chosen.keys():
        domain = topology.domain_of.get(topology.index[task_id])
        inside = [chosen[other] for other in chosen if domain is not None and _domain(topology, other) == domain]
        whole = not inside or any(indexes is None for indexes in inside)
        found[task_id] = None if whole else frozenset[int]().union(*(indexes or () for indexes in inside))
    return found


def holds(chosen: Mapping[str, frozenset[int] | None], task_id: str, map_index: int) -> bool:
    """Return whether this task instance is among the chosen ones."""
    if task_id not in chosen:
        return False
    indexes = chosen[task_id]
    return indexes is None or map_index in indexes


def _domain(topology: Topology, task_id: str) -> int | None:
    return topology.domain_of.get(topology.index[task_id])


def _reached(start: Iterable[int], edges: Callable[[int], Iterable[int]]) -> set[int]:
    found: set[int] = set()
    stack = list(start)
    while stack:
        for other in edges(stack.pop()):
            if other not in found:
                found.add(other)
                stack.append(other)
    return found


def _add(found: Chosen, more: Mapping[str, frozenset[int] | None]) -> None:
    """Merge `more` into `found`; a whole task replaces its single instances."""
    for task_id, indexes in more.items():
        held = found.get(task_id, frozenset[int]())
        found[task_id] = None if held is None or indexes is None else held | indexes
