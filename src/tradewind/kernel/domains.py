"""Which tasks of a definition are expanded together, and over which lists.

A *domain* is a mapped task alone, or all tasks of a mapped group. The tasks of a domain are expanded one by one, each when its
own dependencies are met, and always to the same length: the product of the lengths of the domain's lists. An edge between two
tasks of one group joins instances of the same map index; every other edge joins all instances.

This module uses only the definition. What differs from run to run (the lengths of lists, the instances) is in `expansion`.

Source: Airflow 3.3.2's TriggerRuleDep, MappedTaskUpstreamDep and `expand_mapped_task`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tradewind.model.definition import DagDefinition, MapConcat, MapLiteral, MapSource, MapXCom, map_providers
from tradewind.model.states import TriggerRule

NOT_YET = -1
"""A length that is not known yet: a task that returns the list has not ended."""
NO_LIST = -2
"""A length that will never be known: a task that should return the list has ended without a list."""

FAST_RULES = frozenset(
    {TriggerRule.ONE_SUCCESS, TriggerRule.ONE_FAILED, TriggerRule.ONE_DONE, TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS}
)
"""Trigger rules that can be met before all upstream task instances have ended.

A task of a mapped group with such a rule depends on all map indexes until it is expanded: otherwise no upstream instance would
count for it. After the expansion each instance depends on its own map index, as in Airflow."""


class Domain(NamedTuple):
    """Tasks that are expanded together."""

    name: str
    """Id of the mapped task or group."""
    sources: tuple[MapSource, ...]
    tasks: tuple[int, ...]
    providers: tuple[int, ...]
    """Tasks whose return values are the lists."""
    fixed: int | None
    """The length, if the author wrote all lists in the DAG file."""


def find_domains(definition: DagDefinition, index: dict[str, int]) -> list[Domain]:
    """Return every domain that has a task; an empty list for a DAG without mapping.

    Args:
        index: number of each task by task id.
    """
    mapped_groups = {group.group_id: group for group in definition.groups if group.mapped}
    parents = {group.group_id: group.parent for group in definition.groups}
    members: dict[str, list[int]] = {}
    found: list[Domain] = []
    for task in definition.tasks:
        i = index[task.task_id]
        if task.mapped:
            found.append(_domain(task.task_id, task.expand, (i,), index))
            continue
        group = task.group if mapped_groups else None
        while group is not None and group not in mapped_groups:
            group = parents.get(group)
        if group is not None:
            members.setdefault(group, []).append(i)
    for group_id, tasks in members.items():
        found.append(_domain(group_id, mapped_groups[group_id].expand, tuple(tasks), index))
    return found


def _domain(name: str, sources: tuple[MapSource, ...], tasks: tuple[int, ...], index: dict[str, int]) -> Domain:
    providers = tuple(sorted({index[task_id] for task_id in map_providers(sources) if task_id in index}))
    fixed = None if providers else product_length([source_length({}, source) for source in sources])
    return Domain(name, sources, tasks, providers, fixed)


def source_length(lengths: dict[str, int], source: MapSource) -> int:
    """Return the length of one list, or NO_LIST if a task that should return it returned none.

    Args:
        lengths: length of each provider's return value, by task id.
    """
    if isinstance(source, MapLiteral):
        return source.length
    if isinstance(source, MapXCom):
        return lengths.get(source.task_id, NO_LIST)
    parts = [source_length(lengths, part) for part in source.of]
    if parts and min(parts) < 0:
        return min(parts)
    if isinstance(source, MapConcat):
        return sum(parts)
    return max(parts, default=0) if source.longest else min(parts, default=0)


def product_length(lengths: Sequence[int]) -> int:
    """Return the product of the lengths; NOT_YET or NO_LIST if one of the lists has no length."""
    if lengths and min(lengths) < 0:
        return min(lengths)
    total = 1
    for length in lengths:
        total *= length
    return total


def share_map_index(domain_of: dict[int, int], upstream: int, task: int) -> bool:
    """Return whether the edge between these tasks joins instances of the same map index."""
    own = domain_of.get(task)
    return own is not None and own == domain_of.get(upstream)
