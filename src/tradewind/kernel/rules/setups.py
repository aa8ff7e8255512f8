"""Setups and teardowns.

A work task waits for every setup it lies behind, direct or not: a failed setup fails it upstream, a skipped one skips it. Its
own trigger rule may fail or skip it earlier, and `always` waits for nothing. A teardown waits for all that lies between its
setups and itself, and runs if one of its setups succeeded. Source: Airflow's TriggerRuleDep (indirect setups) and the rule
all_done_setup_success, which a task that is no teardown may have too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.kernel.topology import RULE_ALWAYS
from tradewind.kernel.trigger_rules import RULE_CODES, RUN, WAIT
from tradewind.model.states import TaskState, TriggerRule

if TYPE_CHECKING:
    from tradewind.kernel.machine import RunMachine

_SUCCESS, _SKIPPED = TaskState.SUCCESS.code, TaskState.SKIPPED.code
_FAILED, _UPSTREAM_FAILED = TaskState.FAILED.code, TaskState.UPSTREAM_FAILED.code
_RULE_SETUP_SUCCESS = RULE_CODES[TriggerRule.ALL_DONE_SETUP_SUCCESS]


def decide(machine: RunMachine, slot: int, verdict: int) -> int:
    """The verdict of the trigger rule, corrected by setups. Asked only where the DAG has setups and the task upstream tasks."""
    topology = machine.topology
    rule = topology.rules[slot]
    if rule == RULE_ALWAYS:
        return verdict
    missing = False
    for setup in topology.setups_of.get(slot, ()):
        code = machine.state[setup]
        if code in (_FAILED, _UPSTREAM_FAILED):
            return _UPSTREAM_FAILED
        if code == _SKIPPED:
            return _SKIPPED
        missing = missing or code != _SUCCESS
    if rule == _RULE_SETUP_SUCCESS and verdict == RUN:
        verdict = _own_setups(machine, slot)
    return WAIT if missing and verdict == RUN else verdict


def _own_setups(machine: RunMachine, slot: int) -> int:
    """all_done_setup_success, once all direct upstream tasks are done."""
    topology, state = machine.topology, machine.state
    own = [state[up] for up in topology.upstream(slot) if topology.tasks[up].is_setup]
    if own and all(code == _SKIPPED for code in own):
        return _SKIPPED
    if own and _SUCCESS not in own:
        return _UPSTREAM_FAILED
    return WAIT if machine.scope_left.get(slot, 0) else RUN


def follow(machine: RunMachine, slot: int, step: int) -> None:
    """`slot` has ended (`step` 1), or has not any more (−1): tell those who wait for it without being its children."""
    topology, left = machine.topology, machine.scope_left
    for teardown in topology.teardowns_over.get(slot, ()):
        left[teardown] -= step
        if not left[teardown]:
            machine.dirty.add(teardown)
    if step > 0:
        machine.dirty.update(topology.needed_by.get(slot, ()))
