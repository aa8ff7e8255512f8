"""Many task instances are taken away at once: by fail_fast, a branch, the run's time limit, or because their dates exclude the run.

A sweep is bounded, as everything is, and outlives a restart: the row of the task that caused it keeps its `resume` mark until it
is through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from tradewind.kernel import integrity, mapping
from tradewind.kernel.codes import FAILED, NO_TASK, NONE, REMOVED, RESTARTING, RUNNING, SKIPPED, SUCCESS
from tradewind.model import states
from tradewind.model.branch import Branch
from tradewind.model.ids import UNEXPANDED

if TYPE_CHECKING:
    from tradewind.kernel.machine import RunMachine

_FINISHED = frozenset(state.code for state in states.FINISHED)


class Sweep(NamedTuple):
    """Task instances that are taken away, a bounded number a call."""

    kind: str
    """"fail_fast", "branch", "timeout" or "dates"."""
    source: int
    """The task that caused it; −1 is the run itself."""
    cause: str
    slots: deque[int]
    """Those that are left to look at."""


def begin(machine: RunMachine, kind: str, source: int, cause: str, slots: Iterable[int]) -> None:
    machine.sweeps.append(Sweep(kind, source, cause, deque(slots)))
    if source != NO_TASK:
        machine.resume.add(source)


def begin_again(machine: RunMachine, slot: int) -> None:
    """The sweep that this finished task caused was cut short by a restart."""
    decision = machine.branches.get(slot)
    if machine.state[slot] == SUCCESS and decision is not None:
        branch(machine, slot, decision)
    else:
        fail_fast(machine, slot)


def go_on(machine: RunMachine, at: int) -> bool:
    """Go on taking away; whether all of it is done. A newer definition comes first: it may add and remove task instances."""
    if not integrity.go_on(machine, at):
        return False
    if machine.sweeps and machine.growing and not mapping.grow(machine, at):
        return False
    while machine.sweeps:
        sweep = machine.sweeps[0]
        while sweep.slots:
            if not machine.room():
                return False
            _sweep_one(machine, sweep, sweep.slots.popleft(), at)
        machine.sweeps.popleft()
        if sweep.kind == "timeout":
            machine.end(False, at, sweep.cause, "timed_out")
            return True
        if sweep.source in machine.resume and machine.state[sweep.source] in _FINISHED:
            machine.resume.discard(sweep.source)
            machine.touch(sweep.source)  # its row may have been written with the mark
    return True


def _sweep_one(machine: RunMachine, sweep: Sweep, slot: int, at: int) -> None:
    code = machine.state[slot]
    if sweep.kind == "dates":
        if code == NONE:
            machine.step(slot, REMOVED, at, sweep.cause)
    elif sweep.kind == "timeout":
        if code not in _FINISHED:
            machine.take_away(slot, SKIPPED, at, sweep.cause)
    elif sweep.kind == "branch":
        if code not in (RUNNING, SUCCESS, FAILED, SKIPPED, REMOVED, RESTARTING):
            machine.take_away(slot, SKIPPED, at, sweep.cause)
    elif code not in (SUCCESS, FAILED, SKIPPED, REMOVED) and _fails_with(machine, sweep.source, slot):
        machine.take_away(slot, FAILED if code in (RUNNING, RESTARTING) else SKIPPED, at, sweep.cause)


def _fails_with(machine: RunMachine, failed: int, slot: int) -> bool:
    """Does fail_fast end this one too? Not teardowns, nor other instances of the mapped task that failed."""
    task = machine.instances.task(slot)
    return slot not in machine.gone and task != machine.instances.task(failed) and not machine.topology.tasks[task].is_teardown


def branch(machine: RunMachine, slot: int, decision: Branch) -> None:
    skipped = machine.remember_branch(slot, decision)
    if machine.instances.index(slot) == UNEXPANDED and machine.instances.task(slot) not in machine.topology.domain_of:
        at_once = sorted(task for task in skipped if task not in machine.instances.of)
        begin(machine, "branch", slot, f"{machine.name(slot)} did not choose this branch", at_once)


def fail_fast(machine: RunMachine, failed: int) -> None:
    cause = f"{machine.name(failed)} failed and the DAG is fail_fast"
    begin(machine, "fail_fast", failed, cause, range(machine.instances.total))
