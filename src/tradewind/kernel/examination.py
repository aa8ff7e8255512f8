"""Computes the new state of a task instance from the states around it.

`examine` applies the checks of Airflow's scheduler in its order: the previous run, branches, the trigger rule, setups, the
lists of a mapped task. It returns a verdict that the run machine applies later in the same wave. The only data that changes
here belongs to mapped tasks: whether they wait for a list or begin to be expanded.
"""

from __future__ import annotations

from tradewind.kernel import expansion, mapping, step_causes
from tradewind.kernel.codes import DEFERRED, NEVER, NONE, REMOVED, SCHEDULED, SKIPPED, SUCCESS, UPSTREAM_FAILED
from tradewind.kernel.domains import NO_LIST, NOT_YET
from tradewind.kernel.rules import branch_memory, past, setups
from tradewind.kernel.run_data import RunData
from tradewind.kernel.run_steps import RunSteps
from tradewind.kernel.trigger_rules import DECIDERS, RUN, WAIT
from tradewind.model.phrases import english, phrase
from tradewind.model.states import SCHEDULABLE

SCHEDULABLE_CODES = frozenset(state.code for state in SCHEDULABLE)

Verdict = tuple[int, int, str]
"""(slot, state code that the task instance gets, cause)."""


def examine_wave(run: RunSteps, at: int) -> None:
    """Examine all dirty tasks against the current states, and add the verdicts to the backlog."""
    wave, expanded = sorted(run.dirty), sorted(run.dirty_expanded)
    run.dirty.clear()
    run.dirty_expanded.clear()
    for task in expanded:  # first: if a list is longer than before, downstream tasks wait for more instances
        _expand_again(run, task)
    for slot in wave:
        if not expanded or run.instances.task(slot) not in expanded:
            verdict = examine(run, slot, at)
            if verdict is not None:
                run.backlog.append(verdict)
    for task in expanded:
        examine_all(run, task, at)


def examine_expanded(run: RunSteps, at: int) -> None:
    """Examine the mapped tasks that have just got all their instances."""
    tasks, run.just_expanded = run.just_expanded, []
    for task in tasks:
        examine_all(run, task, at)


def examine(run: RunSteps, slot: int, at: int) -> Verdict | None:
    """Return the new state of this task instance, or None if it must wait."""
    code = run.state[slot]
    if code not in SCHEDULABLE_CODES or (code != NONE and run.due.get(slot, NEVER) > at):
        return None
    topology = run.topology
    task = run.instances.task(slot)
    if task in run.expanding:
        return None
    past_allows = not topology.has_past or past.allows(run, task)
    if (run.skipped_by or run.skipped_by_index) and branch_memory.skips(run, slot, task):
        if past_allows or not topology.tasks[task].wait_for_past_depends_before_skipping:
            return slot, SKIPPED, branch_memory.sentence(run, slot)
        return None
    counts = run.upstream_counts(slot)
    verdict = DECIDERS[topology.rules[task]](*counts) if counts[0] else RUN
    if topology.has_setups and topology.up_at[task] != topology.up_at[task + 1]:
        verdict = setups.decide(run, slot, verdict)
    domain = topology.domain_of.get(task)
    if domain is not None:
        verdict = expansion.decide(run, topology.domains[domain], verdict)
    if verdict == WAIT:
        return None
    if verdict == RUN:
        if not past_allows:
            return None
        if domain is not None and task not in run.instances.expanded:
            return _begin_expansion(run, task, domain)
        if topology.tasks[task].empty:
            return slot, SUCCESS, step_causes.NOTHING_TO_DO
        if topology.waits and topology.only_waits(task, run.facts.logical_date):
            return slot, DEFERRED, step_causes.ONLY_WAITS
        return slot, SCHEDULED, step_causes.DEPENDENCIES_MET
    if verdict == SKIPPED and not past_allows and topology.tasks[task].wait_for_past_depends_before_skipping:
        return None
    return slot, verdict, step_causes.TRIGGER_RULE


def examine_all(run: RunSteps, task: int, at: int) -> None:
    """Examine every instance of an expanded task, unless their shared counts show that none of them can move."""
    if task in run.expanding or not _may_move(run, task):
        return
    slots = run.instances.expanded[task]
    want = expansion.length(run, run.topology.domains[run.topology.domain_of[task]])
    if 0 <= want < len(slots):
        mapping.mark_group_dirty(run, task)
        for slot in slots[want:]:
            if run.state[slot] in SCHEDULABLE_CODES:
                run.backlog.append((slot, REMOVED, english(phrase("cause_list_shorter", count=want))))
        slots = slots[:want]
    for slot in slots:
        verdict = examine(run, slot, at)
        if verdict is not None:
            run.backlog.append(verdict)


def _begin_expansion(run: RunSteps, task: int, domain: int) -> Verdict | None:
    """Expand a mapped task whose dependencies are met. If it has no elements, it ends without being expanded."""
    length = expansion.length(run, run.topology.domains[domain])
    if length == NOT_YET:
        run.awaiting_list.add(task)
        return None
    if length == NO_LIST:
        return task, UPSTREAM_FAILED, step_causes.NO_LIST
    if length == 0:
        return task, SKIPPED, step_causes.LIST_EMPTY
    run.expanding[task] = length
    return None


def _expand_again(run: RunSteps, task: int) -> None:
    """Add instances to an expanded task if its list became longer: a list may change after a clear."""
    if _may_move(run, task):
        mapping.expand_further(run, task)


def _may_move(run: RunData, task: int) -> bool:
    """Return whether the counts that all instances share can let any instance move.

    The counts of the instances differ only by the upstream instance of the own map index; a missing one can only make them wait.
    """
    topology = run.topology
    if topology.has_setups or task in run.skipped_by or run.skipped_by_index or task in topology.fast_tasks:
        return True  # a fast rule may be met by the instance of the own map index alone
    n, s, k, f, u, r = run.common_counts(task)
    verdict = DECIDERS[topology.rules[task]](n + (task in topology.same_index_up), s, k, f, u, r) if n else RUN
    if task in topology.same_index_up and verdict == WAIT and s + k + f + u + r >= n:
        return True
    return expansion.decide(run, topology.domains[topology.domain_of[task]], verdict) != WAIT
