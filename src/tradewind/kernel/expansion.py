"""What expands together, and over what: the part of dynamic task mapping that a definition fixes, and the lengths that a run adds.

A *domain* is a mapped task alone, or all tasks of a mapped group. Its tasks are expanded one by one, each when its own
dependencies are met, and always to the same length: the product of the lengths of its lists. Between two tasks of one group an
edge joins instances of the same map index; every other edge joins all instances.

Source: Airflow 3.3.2's TriggerRuleDep, MappedTaskUpstreamDep and `expand_mapped_task`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tradewind.kernel.trigger_rules import RUN, WAIT
from tradewind.model.definition import (
    DagDefinition,
    MapConcat,
    MapLiteral,
    MapSource,
    MapXCom,
    map_providers,
)
from tradewind.model.states import FINISHED, TaskState, TriggerRule

if TYPE_CHECKING:
    from tradewind.kernel.machine import RunMachine
    from tradewind.kernel.topology import Topology

NOT_YET = -1
"""A length that is not known because a task that provides it has not ended."""
NO_LIST = -2
"""A length that will not be known: a task that provides it ended without a list."""

FAST_RULES = frozenset(
    {TriggerRule.ONE_SUCCESS, TriggerRule.ONE_FAILED, TriggerRule.ONE_DONE, TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS}
)
"""Rules that some of the upstream task instances can fulfil. A task of a mapped group with such a rule looks at all map indexes
until it is expanded, else it would be judged by none; then its instances look at their own, as Airflow's do."""

_FINISHED = frozenset(state.code for state in FINISHED)
_SUCCESS, _SKIPPED = TaskState.SUCCESS.code, TaskState.SKIPPED.code
_UPSTREAM_FAILED = TaskState.UPSTREAM_FAILED.code


class Domain(NamedTuple):
    """What expands together."""

    name: str
    """Id of the mapped task or group."""
    sources: tuple[MapSource, ...]
    tasks: tuple[int, ...]
    providers: tuple[int, ...]
    """Tasks whose results the lists are."""
    fixed: int | None
    """Its length, where the author wrote all lists down."""


def find_domains(definition: DagDefinition, index: dict[str, int]) -> list[Domain]:
    """Every domain that has a task; none in a DAG without mapping. `index`: number of each task."""
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
    fixed = None if providers else _product([source_length({}, source) for source in sources])
    return Domain(name, sources, tasks, providers, fixed)


def source_length(lengths: dict[str, int], source: MapSource) -> int:
    """Length of one dimension, from the lengths of what its tasks returned; NO_LIST where one of them has none."""
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


def _product(lengths: Sequence[int]) -> int:
    """A dimension that has no list spoils all."""
    if lengths and min(lengths) < 0:
        return min(lengths)
    total = 1
    for length in lengths:
        total *= length
    return total


def length(machine: RunMachine, domain: Domain) -> int:
    """How many instances each task of a domain has now to have; NOT_YET or NO_LIST."""
    if domain.fixed is not None:
        return domain.fixed
    topology = machine.topology
    known = {topology.ids[provider]: _offered(machine, provider) for provider in domain.providers}
    if NOT_YET in known.values():
        return NOT_YET
    return _product([source_length(known, source) for source in domain.sources])


def _offered(machine: RunMachine, provider: int) -> int:
    """Length of what a task returned; of a mapped one, how many of its instances returned something."""
    slots = machine.instances.of.get(provider)
    state, lengths = machine.state, machine.lengths
    if slots is None:
        if state[provider] not in _FINISHED:
            return NOT_YET
        return lengths.get(provider, NO_LIST) if state[provider] == _SUCCESS else NO_LIST
    if provider in machine.growing or any(state[slot] not in _FINISHED for slot in slots):
        return NOT_YET
    return sum(1 for slot in slots if slot in lengths)


def decide(machine: RunMachine, domain: Domain, verdict: int) -> int:
    """The verdict of the trigger rule, corrected by what became of the tasks that provide the lists."""
    expanded, state = machine.instances.of, machine.state
    for provider in domain.providers:
        code = state[provider]
        if provider in expanded or code not in _FINISHED or code == _SUCCESS:
            continue
        if code != _SKIPPED:
            return _UPSTREAM_FAILED
        if verdict in (RUN, WAIT):
            verdict = _SKIPPED
    return verdict


def relevant(machine: RunMachine, slot: int, upstream: int) -> Sequence[int]:
    """The instances of another task that concern this instance."""
    instances = machine.instances
    slots = instances.of.get(upstream)
    if slots is None:
        return (upstream,)
    task = instances.task(slot)
    if joined(machine.topology, upstream, task):
        index = instances.index(slot)
        if index < 0:
            return slots if task in machine.topology.impatient else ()
        return slots[index : index + 1]
    return slots


def joined(topology: Topology, upstream: int, task: int) -> bool:
    """Does this pair of tasks meet index by index?"""
    domain_of = topology.domain_of
    mine = domain_of.get(task)
    return mine is not None and mine == domain_of.get(upstream)
