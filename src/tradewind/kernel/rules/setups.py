"""Setups and teardowns.

A work task waits for every setup it lies behind, direct or not: a failed setup fails it upstream, a skipped one skips it. A
teardown waits for all that lies between its setups and itself, and runs if one of its setups succeeded. Source: Airflow's
TriggerRuleDep (indirect setups) and the rule all_done_setup_success.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tradewind.kernel.topology import Topology
from tradewind.kernel.trigger_rules import RULE_CODES, RUN, WAIT
from tradewind.model.states import FINISHED, TaskState, TriggerRule

if TYPE_CHECKING:
    from tradewind.kernel.machine import RunMachine

_SUCCESS, _SKIPPED = TaskState.SUCCESS.code, TaskState.SKIPPED.code
_FAILED, _UPSTREAM_FAILED = TaskState.FAILED.code, TaskState.UPSTREAM_FAILED.code
_FINISHED = frozenset(state.code for state in FINISHED)
_TEARDOWN_RULE = RULE_CODES[TriggerRule.ALL_DONE_SETUP_SUCCESS]


def decide(machine: RunMachine, slot: int, verdict: int) -> int:
    """The verdict of the trigger rule, corrected by setups."""
    topology, state = machine.topology, machine.state
    if topology.rules[slot] == _TEARDOWN_RULE:
        return _decide_teardown(machine, slot, verdict)
    if topology.tasks[slot].is_teardown:
        return verdict
    waiting = False
    for setup in topology.setups_of.get(slot, ()):
        code = state[setup]
        if code in (_FAILED, _UPSTREAM_FAILED):
            return _UPSTREAM_FAILED
        if code == _SKIPPED:
            return _SKIPPED
        waiting = waiting or code != _SUCCESS
    return WAIT if waiting else verdict


def _decide_teardown(machine: RunMachine, slot: int, verdict: int) -> int:
    topology, state = machine.topology, machine.state
    if verdict != RUN:
        return verdict
    own = [state[up] for up in topology.upstream(slot) if topology.tasks[up].is_setup]
    if own and all(code == _SKIPPED for code in own):
        return _SKIPPED
    if own and _SUCCESS not in own:
        return _UPSTREAM_FAILED
    if any(state[task] not in _FINISHED for task in topology.teardown_scope.get(slot, ())):
        return WAIT
    return RUN


def woken_by(topology: Topology, slot: int) -> Iterator[int]:
    """Tasks to examine again when `slot` has ended, besides its direct downstream tasks."""
    for task, needed in topology.setups_of.items():
        if slot in needed:
            yield task
    for teardown, scope in topology.teardown_scope.items():
        if slot in scope:
            yield teardown
