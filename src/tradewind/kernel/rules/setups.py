"""Setups and teardowns.

A work task waits for every setup it lies behind, direct or not: a failed setup fails it upstream, a skipped one skips it. Its
own trigger rule may fail or skip it earlier, and `always` waits for nothing. A teardown waits for all that lies between its
setups and itself, and runs if one of its setups succeeded. Source: Airflow's TriggerRuleDep (indirect setups) and the rule
all_done_setup_success, which a task that is no teardown may have too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tradewind.kernel.expansion import relevant
from tradewind.kernel.topology import RULE_ALWAYS, Topology
from tradewind.kernel.trigger_rules import RULE_CODES, RUN, WAIT
from tradewind.model.states import FINISHED, TaskState, TriggerRule

if TYPE_CHECKING:
    from tradewind.kernel.machine import RunMachine

_SUCCESS, _SKIPPED = TaskState.SUCCESS.code, TaskState.SKIPPED.code
_FAILED, _UPSTREAM_FAILED = TaskState.FAILED.code, TaskState.UPSTREAM_FAILED.code
_FINISHED = frozenset(state.code for state in FINISHED)
_RULE_SETUP_SUCCESS = RULE_CODES[TriggerRule.ALL_DONE_SETUP_SUCCESS]


def decide(machine: RunMachine, slot: int, verdict: int) -> int:
    """The verdict of the trigger rule, corrected by setups. Asked only where the DAG has setups and the task upstream tasks."""
    topology = machine.topology
    task = machine.instances.task(slot)
    rule = topology.rules[task]
    if rule == RULE_ALWAYS:
        return verdict
    missing = False
    needed = topology.setups_of.get(task, ())
    for code in [machine.state[one] for setup in needed for one in relevant(machine, slot, setup)]:
        if code in (_FAILED, _UPSTREAM_FAILED):
            return _UPSTREAM_FAILED
        if code == _SKIPPED:
            return _SKIPPED
        missing = missing or code != _SUCCESS
    if rule == _RULE_SETUP_SUCCESS and verdict == RUN:
        verdict = _own_setups(machine, slot)
    return WAIT if missing and verdict == RUN else verdict


def ended_otherwise(machine: RunMachine, slot: int) -> list[int]:
    """The setups it lies behind that ended without success; what `decide` looks at first."""
    return [
        one
        for setup in machine.topology.setups_of.get(machine.instances.task(slot), ())
        for one in relevant(machine, slot, setup)
        if machine.state[one] in (_FAILED, _UPSTREAM_FAILED, _SKIPPED)
    ]


def _own_setups(machine: RunMachine, slot: int) -> int:
    """all_done_setup_success, once all direct upstream tasks are done."""
    topology, state = machine.topology, machine.state
    task = machine.instances.task(slot)
    own = [state[one] for up in topology.upstream(task) if topology.tasks[up].is_setup for one in relevant(machine, slot, up)]
    if own and all(code == _SKIPPED for code in own):
        return _SKIPPED
    if own and _SUCCESS not in own:
        return _UPSTREAM_FAILED
    if machine.topology.domains:
        scope = topology.teardown_scope.get(task, ())
        over = all(state[one] in _FINISHED for other in scope for one in relevant(machine, slot, other))
        return RUN if over else WAIT
    return WAIT if machine.scope_left.get(task, 0) else RUN


def with_setups(shape: Topology, chosen: Collection[str]) -> set[str]:
    """The chosen tasks with what they need to run again: the setups they lie behind, and the teardowns of those.

    A setup counts when it has no teardown, or one below the task. Source: Airflow's `DAG.partial_subset`, as `clear` uses it.
    """
    found = set(chosen)
    if not shape.has_setups:
        return found
    tasks = shape.tasks
    teardowns = {
        i: [down for down in shape.downstream(i) if tasks[down].is_teardown] for i in range(shape.count) if tasks[i].is_setup
    }
    needed = {shape.index[name] for name in chosen if tasks[shape.index[name]].is_setup}
    for setup, over in teardowns.items():
        behind = shape.descendants(setup)
        before = set[int]().union(*(shape.ancestors(teardown) for teardown in over)) if over else behind
        work = behind & before
        if any(not tasks[i].is_teardown and not tasks[i].is_setup and tasks[i].task_id in chosen for i in work):
            needed.add(setup)
    for setup in needed:
        found.add(shape.ids[setup])
        found.update(shape.ids[teardown] for teardown in teardowns[setup])
    return found


def follow(machine: RunMachine, slot: int, step: int) -> None:
    """`slot` has ended (`step` 1), or has not any more (−1): tell those who wait for it without being its children."""
    topology, left = machine.topology, machine.scope_left
    if topology.domains:  # how many instances there will be is not known: they are looked at when it matters
        task = machine.instances.task(slot)
        for other in (*topology.teardowns_over.get(task, ()), *topology.needed_by.get(task, ())) if step > 0 else ():
            machine.look_at(other)
        return
    for teardown in topology.teardowns_over.get(slot, ()):
        left[teardown] -= step
        if not left[teardown]:
            machine.dirty.add(teardown)
    if step > 0:
        machine.dirty.update(topology.needed_by.get(slot, ()))
