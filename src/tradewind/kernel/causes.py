"""Which task instances decided that another one ended without running, and the command that lets it run again.

A task instance that is `upstream_failed`, or `skipped` without an attempt of its own, ends like that again when it alone is
cleared: what has to be cleared is the first cause above it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from tradewind.kernel.expansion import relevant
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.rules import branch_memory
from tradewind.model.states import FINISHED, TaskState

LOOKED_AT_MAX = 500
"""So many task instances above one are looked at."""
_NAMED_MAX = 3
"""So many causes are named in a command."""

_FINISHED = frozenset(state.code for state in FINISHED)
_WITHOUT_ATTEMPT = (TaskState.UPSTREAM_FAILED, TaskState.SKIPPED)
_FAILED = (TaskState.FAILED, TaskState.UPSTREAM_FAILED)


def decided_by(machine: RunMachine, slot: int) -> list[int]:
    """The task instances next above it that decided its end; empty where an attempt of its own, or a person, did."""
    state, task = machine.task_state(slot), machine.instances.task(slot)
    if state not in _WITHOUT_ATTEMPT:
        return []
    if state is TaskState.SKIPPED and branch_memory.skips(machine, slot, task):
        return branch_memory.branchers(machine, slot)
    if machine.started_at[slot]:
        return []
    topology = machine.topology
    bad = [
        one
        for up in (*topology.upstream(task), *topology.setups_of.get(task, ()))
        for one in relevant(machine, slot, up)[:LOOKED_AT_MAX]
        if machine.state[one] in _FINISHED and machine.task_state(one) is not TaskState.SUCCESS
    ]
    failed = [one for one in bad if machine.task_state(one) in _FAILED]
    return failed if failed and state is TaskState.UPSTREAM_FAILED else bad


def first_causes(machine: RunMachine, slot: int) -> list[int]:
    """The task instances, however far above, with which it began, by number; `[slot]` where it decided its end itself."""
    found, stack, seen = list[int](), [slot], {slot}
    while stack and len(seen) < LOOKED_AT_MAX:
        one = stack.pop()
        above = decided_by(machine, one)
        if not above:
            found.append(one)
        for other in above:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return sorted(found) or [slot]


def clear_command(machine: RunMachine, slot: int, run_id: str) -> str:
    """The command that clears what decided its end, and what follows from it."""
    causes = first_causes(machine, slot)
    head, run = f"tradewind tasks clear {machine.facts.dag_id}", f"--run-id {shlex.quote(run_id)}"
    if causes == [slot]:
        index = machine.instances.index(slot)
        return f"{head} -t {pattern([_id(machine, slot)])}{f' --map-index {index}' if index >= 0 else ''} {run}"
    only = " --only-failed" if machine.task_state(slot) is TaskState.UPSTREAM_FAILED else ""
    names = list(dict.fromkeys(_id(machine, one) for one in causes))
    if len(names) > _NAMED_MAX:
        return f"{head} -t {pattern([_id(machine, slot)])} --upstream{only} {run}"
    return f"{head} -t {pattern(names)} --downstream{only} {run}"


def pattern(task_ids: Iterable[str]) -> str:
    """A regular expression, quoted for a shell, that fits exactly these task ids."""
    names = [task_id.replace(".", r"\.") for task_id in task_ids]
    return shlex.quote(f"^{names[0]}$" if len(names) == 1 else f"^({'|'.join(names)})$")


def _id(machine: RunMachine, slot: int) -> str:
    return machine.task_id(slot)
