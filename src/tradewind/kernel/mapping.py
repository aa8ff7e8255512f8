"""Mapped tasks get their instances: when their dependencies are met and their lists are known, a bounded number a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.kernel import events as e
from tradewind.kernel import expansion
from tradewind.kernel.codes import NEVER, NONE, SKIPPED, UPSTREAM_FAILED

if TYPE_CHECKING:
    from tradewind.kernel.machine import RunMachine


def go_on(machine: RunMachine) -> None:
    """What was cut short by a restart; and how many instances those behind it have to wait for."""
    for task, slots in machine.instances.of.items():
        want = len(slots)
        if any(machine.state[slot] == NONE for slot in slots):
            want = max(want, expansion.length(machine, machine.topology.domains[machine.topology.domain_of[task]]))
            if want > len(slots):
                machine.growing[task] = want
        widen(machine, task, 1, want)


def begin(machine: RunMachine, task: int, domain: int) -> tuple[int, int, str] | None:
    """The dependencies of a mapped task are met: it grows, or ends as it stands."""
    length = expansion.length(machine, machine.topology.domains[domain])
    if length == expansion.NOT_YET:
        machine.listless.add(task)
        return None
    if length == expansion.NO_LIST:
        return task, UPSTREAM_FAILED, "a task that it is mapped over ended without a list"
    if length == 0:
        return task, SKIPPED, "the list that it is mapped over is empty"
    begin_to_grow(machine, task, length)
    return None


def begin_to_grow(machine: RunMachine, task: int, length: int) -> None:
    machine.growing[task] = length


def grow(machine: RunMachine, at: int) -> bool:
    """Add instances to mapped tasks; whether all have theirs. Then they are examined, before anything is applied."""
    instances = machine.instances
    for task, length in sorted(machine.growing.items()):
        if task not in instances.of:
            instances.first(task)
            machine.touch(task)
            widen(machine, task, 1, length)
            machine.spent += 1
            have = 1
        else:
            have = len(instances.of[task])
            if task not in machine.topology.domain_of:
                raise AssertionError(f"{machine.topology.ids[task]} is not mapped")
        count = min(length - have, machine.room())
        if count > 0:
            first = instances.total
            for index in range(have, have + count):
                slot = new_instance(machine, task, index)
                for sweep in machine.sweeps:
                    if sweep.kind in ("fail_fast", "timeout"):
                        sweep.slots.append(slot)
            machine.spent += count
            machine.out.append(e.Expanded(task, first, have, count, length))
            have += count
        elif have == 1 and length == 1:
            machine.out.append(e.Expanded(task, instances.total, 1, 0, 1))
        if have < length:
            return False
        del machine.growing[task]
        machine.grown.append(task)
        look_inside(machine, task)
    grown, machine.grown = machine.grown, []
    for task in grown:
        machine.examine_all(task, at)
    return True


def new_instance(machine: RunMachine, task: int, index: int) -> int:
    slot = machine.instances.add(task, index)
    machine.state.append(NONE)
    machine.fence.append(0)
    machine.tries.append(0)
    machine.queued_at.append(NEVER)
    machine.started_at.append(NEVER)
    machine.unfinished += 1
    return slot


def widen(machine: RunMachine, task: int, before: int, after: int, *, first: bool = True) -> None:
    """Those behind a mapped task wait for so many instances instead of so many before; its own index counts apart.

    `first`: it was not expanded before, and counted as one.
    """
    topology = machine.topology
    for child in topology.downstream(task):
        step = after - before
        if task in topology.inner_up.get(child, ()):
            step = -1 if first else 0
        if step:
            machine.wider[child] = machine.wider.get(child, 0) + step


def look_inside(machine: RunMachine, task: int) -> None:
    """The tasks behind it in its group may be concerned."""
    for child in machine.topology.downstream(task):
        if task in machine.topology.inner_up.get(child, ()):
            machine.look_at(child)
