"""How long the lists of a mapped task are in one run, and which upstream instances count for an instance.

`domains` says which tasks are expanded together and over which lists; this module adds the data of one run: the states of the
tasks that return the lists, and the lengths of their return values. It reads the data of the run and changes nothing.

Source: Airflow 3.3.2's TriggerRuleDep, MappedTaskUpstreamDep and `expand_mapped_task`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.kernel.domains import NO_LIST, NOT_YET, Domain, product_length, share_map_index, source_length
from tradewind.kernel.run_data import RunData
from tradewind.kernel.trigger_rules import RUN, WAIT
from tradewind.model.states import FINISHED, TaskState

_FINISHED = frozenset(state.code for state in FINISHED)
_SUCCESS, _SKIPPED = TaskState.SUCCESS.code, TaskState.SKIPPED.code
_UPSTREAM_FAILED = TaskState.UPSTREAM_FAILED.code


def length(run: RunData, domain: Domain) -> int:
    """Return how many instances each task of a domain must have now; NOT_YET or NO_LIST if the number is not known."""
    if domain.fixed is not None:
        return domain.fixed
    topology = run.topology
    known = {topology.ids[provider]: _returned_length(run, provider) for provider in domain.providers}
    if NOT_YET in known.values():
        return NOT_YET
    return product_length([source_length(known, source) for source in domain.sources])


def _returned_length(run: RunData, provider: int) -> int:
    """Return the length of a task's return value; for a mapped task, how many of its instances returned something."""
    slots = run.instances.expanded.get(provider)
    state, lengths = run.state, run.lengths
    if slots is None:
        if state[provider] not in _FINISHED:
            return NOT_YET
        return lengths.get(provider, NO_LIST) if state[provider] == _SUCCESS else NO_LIST
    if provider in run.expanding or any(state[slot] not in _FINISHED for slot in slots):
        return NOT_YET
    return sum(1 for slot in slots if slot in lengths)


def decide(run: RunData, domain: Domain, verdict: int) -> int:
    """Correct the verdict of the trigger rule by the states of the tasks that return the lists.

    If such a task failed, the verdict is `upstream_failed`; if it was skipped, `skipped`.
    """
    expanded, state = run.instances.expanded, run.state
    for provider in domain.providers:
        code = state[provider]
        if provider in expanded or code not in _FINISHED or code == _SUCCESS:
            continue
        if code != _SKIPPED:
            return _UPSTREAM_FAILED
        if verdict in (RUN, WAIT):
            verdict = _SKIPPED
    return verdict


def relevant(run: RunData, slot: int, upstream: int) -> Sequence[int]:
    """Return the slots of those instances of task `upstream` that count for this task instance."""
    instances = run.instances
    slots = instances.expanded.get(upstream)
    if slots is None:
        return (upstream,)
    task = instances.task(slot)
    if share_map_index(run.topology.domain_of, upstream, task):
        index = instances.index(slot)
        if index < 0:
            return slots if task in run.topology.fast_tasks else ()
        return slots[index : index + 1]
    return slots
