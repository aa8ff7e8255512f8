"""Expansion of mapped tasks: they get their instances when their dependencies are met and their lists are known.

A call adds a bounded number of instances. `RunData.expanding` holds the tasks that do not have all of theirs yet. `examination`
decides when a task is expanded.
"""

from __future__ import annotations

from tradewind.kernel import events as e
from tradewind.kernel import expansion
from tradewind.kernel.codes import NONE
from tradewind.kernel.run_data import RunData
from tradewind.kernel.run_steps import RunSteps


def restore(run: RunData) -> None:
    """Continue expansions that a restart interrupted, and count the upstream instances that downstream tasks wait for."""
    for task, slots in run.instances.expanded.items():
        want = len(slots)
        if any(run.state[slot] == NONE for slot in slots):
            want = max(want, expansion.length(run, run.topology.domains[run.topology.domain_of[task]]))
            if want > len(slots):
                run.expanding[task] = want
        count_upstream(run, task, 1, want)


def add_instances(run: RunSteps) -> bool:
    """Add as many instances as this call may write, and return whether all mapped tasks have theirs.

    Tasks that are complete are added to `just_expanded`: the caller examines them before it applies anything else.
    """
    instances = run.instances
    for task, length in sorted(run.expanding.items()):
        if task not in instances.expanded:
            instances.start_expansion(task)
            run.remember_row(task)
            count_upstream(run, task, 1, length)
            run.extra_rows += 1
            have = 1
        else:
            have = len(instances.expanded[task])
            if task not in run.topology.domain_of:
                raise AssertionError(f"{run.topology.ids[task]} is not mapped")
        count = min(length - have, run.rows_left())
        if count > 0:
            first = instances.total
            for index in range(have, have + count):
                slot = run.add_instance(task, index)
                for sweep in run.sweeps:
                    if sweep.kind in ("fail_fast", "timeout"):
                        sweep.slots.append(slot)
            run.extra_rows += count
            run.decisions.append(e.Expanded(task, first, have, count, length))
            have += count
        elif have == 1 and length == 1:
            run.decisions.append(e.Expanded(task, instances.total, 1, 0, 1))
        if have < length:
            return False
        del run.expanding[task]
        run.just_expanded.append(task)
        mark_group_dirty(run, task)
    return True


def expand_further(run: RunData, task: int) -> None:
    """Give an expanded task more instances if its list has become longer than the number of its instances."""
    if task in run.expanding:
        return
    have = len(run.instances.expanded[task])
    want = expansion.length(run, run.topology.domains[run.topology.domain_of[task]])
    if want > have:
        count_upstream(run, task, have, want, first=False)
        run.expanding[task] = want


def count_upstream(run: RunData, task: int, before: int, after: int, *, first: bool = True) -> None:
    """Let the downstream tasks of a mapped task wait for `after` instances instead of `before`.

    Downstream tasks in the same mapped group count the instance of their own map index separately.

    Args:
        first: the task was not expanded before and counted as one.
    """
    topology = run.topology
    for child in topology.downstream(task):
        change = after - before
        if task in topology.same_index_up.get(child, ()):
            change = -1 if first else 0
        if change:
            run.extra_upstream[child] = run.extra_upstream.get(child, 0) + change


def mark_group_dirty(run: RunSteps, task: int) -> None:
    """Let the downstream tasks in the same mapped group be examined."""
    for child in run.topology.downstream(task):
        if task in run.topology.same_index_up.get(child, ()):
            run.mark_dirty(child)
