"""A task that a branching task did not choose is skipped, and is skipped again when it is cleared alone.

Source: Airflow's `SkipMixin.skip_all_except` and its NotPreviouslySkipped dependency.
"""

from __future__ import annotations

from tradewind.kernel.run_data import RunData
from tradewind.kernel.topology import Topology
from tradewind.model.branch import Branch
from tradewind.model.phrases import Phrase, english, phrase


def skipped_by(topology: Topology, slot: int, branch: Branch) -> set[int]:
    """Return the tasks that the decision of a branching task skips. A short circuit never skips teardowns."""
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


def skips(run: RunData, slot: int, task: int) -> bool:
    """Return whether a branching task did not choose this instance (a mapped branching task decides for its own map index)."""
    return task in run.skipped_by or (task, run.instances.index(slot)) in run.skipped_by_index


def branchers(run: RunData, slot: int) -> list[int]:
    """Return the branching task instances that did not choose this instance, ordered by slot."""
    task, index = run.instances.task(slot), run.instances.index(slot)
    return sorted(run.skipped_by.get(task, set()) | run.skipped_by_index.get((task, index), set()))


def sentence(run: RunData, slot: int) -> str:
    """Say which branching tasks skip this instance."""
    return english(not_chosen(run, slot))


def not_chosen(run: RunData, slot: int) -> Phrase:
    """Return the same as `sentence`, as a phrase."""
    return phrase("branch_not_chosen", tasks=[run.name(brancher) for brancher in branchers(run, slot)])
