"""Why a task instance ended without running: the task instances that decided it, and the command that lets it run again.

If only a task instance that is `upstream_failed`, or `skipped` without an attempt, is cleared, it ends in the same state again.
The root cause upstream of it has to be cleared, too.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from tradewind.kernel.expansion import relevant
from tradewind.kernel.rules import branch_memory
from tradewind.kernel.run_data import RunData
from tradewind.model.states import FINISHED, TaskState

EXAMINED_MAX = 500
"""Maximum number of upstream task instances that are examined."""
_NAMED_MAX = 3
"""Maximum number of causes that a command names."""

_FINISHED = frozenset(state.code for state in FINISHED)
_WITHOUT_ATTEMPT = (TaskState.UPSTREAM_FAILED, TaskState.SKIPPED)
_FAILED = (TaskState.FAILED, TaskState.UPSTREAM_FAILED)


def decided_by(run: RunData, slot: int) -> list[int]:
    """Return the upstream task instances that decided the end of this one; empty if its own attempt, or a person, decided it."""
    state, task = run.task_state(slot), run.instances.task(slot)
    if state not in _WITHOUT_ATTEMPT:
        return []
    if state is TaskState.SKIPPED and branch_memory.skips(run, slot, task):
        return branch_memory.branchers(run, slot)
    if run.started_at[slot]:
        return []
    topology = run.topology
    bad = [
        one
        for up in (*topology.upstream(task), *topology.setups_of.get(task, ()))
        for one in relevant(run, slot, up)[:EXAMINED_MAX]
        if run.state[one] in _FINISHED and run.task_state(one) is not TaskState.SUCCESS
    ]
    failed = [one for one in bad if run.task_state(one) in _FAILED]
    return failed if failed and state is TaskState.UPSTREAM_FAILED else bad


def root_causes(run: RunData, slot: int) -> list[int]:
    """Return the task instances, direct upstream or not, that first led to the end of this one, ordered by slot.

    `[slot]` if its own attempt, or a person, decided its end.
    """
    found, stack, seen = list[int](), [slot], {slot}
    while stack and len(seen) < EXAMINED_MAX:
        one = stack.pop()
        deciding = decided_by(run, one)
        if not deciding:
            found.append(one)
        for other in deciding:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return sorted(found) or [slot]


def clear_command(run: RunData, slot: int, run_id: str) -> str:
    """Return the command that clears the root causes of a task instance's end, together with their downstream tasks."""
    causes = root_causes(run, slot)
    head, in_run = f"tradewind tasks clear {run.facts.dag_id}", f"--run-id {shlex.quote(run_id)}"
    if causes == [slot]:
        index = run.instances.index(slot)
        return f"{head} -t {pattern([run.task_id(slot)])}{f' --map-index {index}' if index >= 0 else ''} {in_run}"
    only = " --only-failed" if run.task_state(slot) is TaskState.UPSTREAM_FAILED else ""
    names = list(dict.fromkeys(run.task_id(one) for one in causes))
    if len(names) > _NAMED_MAX:
        return f"{head} -t {pattern([run.task_id(slot)])} --upstream{only} {in_run}"
    return f"{head} -t {pattern(names)} --downstream{only} {in_run}"


def pattern(task_ids: Iterable[str]) -> str:
    """Return a regular expression, quoted for a shell, that matches exactly these task ids."""
    names = [task_id.replace(".", r"\.") for task_id in task_ids]
    return shlex.quote(f"^{names[0]}$" if len(names) == 1 else f"^({'|'.join(names)})$")
