"""A task that a branch did not choose is skipped, and stays skipped when it is cleared alone.

Source: Airflow's `SkipMixin.skip_all_except` and its NotPreviouslySkipped dependency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.kernel.topology import Topology
from tradewind.model.branch import Branch

if TYPE_CHECKING:
    from tradewind.kernel.machine import RunMachine


def skipped_by(topology: Topology, slot: int, branch: Branch) -> set[int]:
    """The tasks that a branching task's decision skips. Teardowns are never skipped by a short circuit."""
    if branch.kind == "follow":
        followed = {topology.index[name] for name in branch.tasks if name in topology.index}
        kept = set(followed)
        for task in followed:
            kept |= topology.descendants(task)
        return {task for task in topology.downstream(slot) if task not in kept}
    if branch.kind == "stop":
        below = set(topology.downstream(slot)) if branch.direct_only else topology.descendants(slot)
        return {task for task in below if not topology.tasks[task].is_teardown}
    return {topology.index[name] for name in branch.tasks if name in topology.index}


def skips(machine: RunMachine, slot: int, task: int) -> bool:
    """Did a branch not choose this instance: one that is not mapped, or that of its own map index?"""
    return task in machine.skips or (task, machine.instances.index(slot)) in machine.skips_at


def branchers(machine: RunMachine, slot: int) -> list[int]:
    """The task instances whose choice skips it."""
    task, index = machine.instances.task(slot), machine.instances.index(slot)
    return sorted(machine.skips.get(task, set()) | machine.skips_at.get((task, index), set()))


def sentence(machine: RunMachine, slot: int) -> str:
    """Which branching tasks skip it."""
    names = ", ".join(machine.name(brancher) for brancher in branchers(machine, slot))
    return f"{names} did not choose this branch"
