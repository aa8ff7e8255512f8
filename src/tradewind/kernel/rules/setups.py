"""Setups and teardowns.

A work task waits for every setup whose scope it is in, direct upstream task or not: a failed setup makes it `upstream_failed`,
a skipped one skips it. Its own trigger rule may fail or skip it earlier, and the rule `always` waits for nothing. A teardown
waits for all tasks between its setups and itself, and runs if one of its setups succeeded. Source: Airflow's TriggerRuleDep
(indirect setups) and the rule all_done_setup_success, which other tasks than teardowns may have, too.
"""

from __future__ import annotations

from collections.abc import Collection

from tradewind.kernel.expansion import relevant
from tradewind.kernel.run_data import RunData
from tradewind.kernel.topology import RULE_ALWAYS, Topology
from tradewind.kernel.trigger_rules import RULE_CODES, RUN, WAIT
from tradewind.model.states import FINISHED, TaskState, TriggerRule

_SUCCESS, _SKIPPED = TaskState.SUCCESS.code, TaskState.SKIPPED.code
_FAILED, _UPSTREAM_FAILED = TaskState.FAILED.code, TaskState.UPSTREAM_FAILED.code
_FINISHED = frozenset(state.code for state in FINISHED)
_RULE_SETUP_SUCCESS = RULE_CODES[TriggerRule.ALL_DONE_SETUP_SUCCESS]


def decide(run: RunData, slot: int, verdict: int) -> int:
    """Correct the verdict of the trigger rule by the states of setups.

    Called only if the DAG has setups and the task has upstream tasks.
    """
    topology = run.topology
    task = run.instances.task(slot)
    rule = topology.rules[task]
    if rule == RULE_ALWAYS:
        return verdict
    missing = False
    needed = topology.setups_of.get(task, ())
    for code in [run.state[one] for setup in needed for one in relevant(run, slot, setup)]:
        if code in (_FAILED, _UPSTREAM_FAILED):
            return _UPSTREAM_FAILED
        if code == _SKIPPED:
            return _SKIPPED
        missing = missing or code != _SUCCESS
    if rule == _RULE_SETUP_SUCCESS and verdict == RUN:
        verdict = _own_setups(run, slot)
    return WAIT if missing and verdict == RUN else verdict


def unsuccessful(run: RunData, slot: int) -> list[int]:
    """Return the indirect setups of this task instance that ended without success. `decide` checks them first."""
    return [
        one
        for setup in run.topology.setups_of.get(run.instances.task(slot), ())
        for one in relevant(run, slot, setup)
        if run.state[one] in (_FAILED, _UPSTREAM_FAILED, _SKIPPED)
    ]


def _own_setups(run: RunData, slot: int) -> int:
    """Apply the rule all_done_setup_success, once all direct upstream tasks are finished."""
    topology, state = run.topology, run.state
    task = run.instances.task(slot)
    own = [state[one] for up in topology.upstream(task) if topology.tasks[up].is_setup for one in relevant(run, slot, up)]
    if own and all(code == _SKIPPED for code in own):
        return _SKIPPED
    if own and _SUCCESS not in own:
        return _UPSTREAM_FAILED
    if run.topology.domains:
        scope = topology.teardown_scope.get(task, ())
        finished = all(state[one] in _FINISHED for other in scope for one in relevant(run, slot, other))
        return RUN if finished else WAIT
    return WAIT if run.scope_left.get(task, 0) else RUN


def with_setups(topology: Topology, chosen: Collection[str]) -> set[str]:
    """Return the chosen tasks with the tasks that they need to run again: their setups, and the teardowns of those setups.

    A setup is included if it has no teardown, or a teardown downstream of the task. Source: Airflow's `DAG.partial_subset`, as
    `clear` uses it.
    """
    found = set(chosen)
    if not topology.has_setups:
        return found
    tasks = topology.tasks
    teardowns = {
        i: [down for down in topology.downstream(i) if tasks[down].is_teardown]
        for i in range(topology.count)
        if tasks[i].is_setup
    }
    needed = {topology.index[name] for name in chosen if tasks[topology.index[name]].is_setup}
    for setup, over in teardowns.items():
        behind = topology.descendants(setup)
        before = set[int]().union(*(topology.ancestors(teardown) for teardown in over)) if over else behind
        work = behind & before
        if any(not tasks[i].is_teardown and not tasks[i].is_setup and tasks[i].task_id in chosen for i in work):
            needed.add(setup)
    for setup in needed:
        found.add(topology.ids[setup])
        found.update(topology.ids[teardown] for teardown in teardowns[setup])
    return found
