"""Why a task instance is not running: a list of blockers, each with one sentence, from the rules that decide.

The answer follows from the arguments alone. Blockers inside the run come first, then those outside it.

The answer is exact: each blocker alone keeps the task instance from being handed to the executor, and where there is no blocker
the next step of the scheduler hands it over (a property test compares this with the scheduler's own decisions). Sentences name
only the first few task instances, and the work is bounded by the number of instances that the task depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tradewind.kernel import expansion, integrity
from tradewind.kernel.admission import PARALLELISM, Admission, Candidate, Resource
from tradewind.kernel.causes import clear_command, decided_by, root_causes
from tradewind.kernel.domains import FAST_RULES
from tradewind.kernel.expansion import relevant
from tradewind.kernel.rules import branch_memory, setups, task_dates
from tradewind.kernel.run_data import RunData
from tradewind.kernel.topology import RULE_ALWAYS
from tradewind.kernel.trigger_rules import DECIDERS, RULE_CODES, RUN, WAIT, sentence
from tradewind.model.moments import iso
from tradewind.model.states import FINISHED, TASK_STATES, TaskState, TriggerRule

NAMED_MAX = 3
"""How many task instances a sentence names at most; the others are only mentioned or counted."""
EXAMINED_MAX = 500
"""How many upstream task instances are examined at most to find out how far the run has got."""

_FINISHED = frozenset(state.code for state in FINISHED)
_NONE = TaskState.NONE.code


class SchedulerFacts(NamedTuple):
    """What can block a task instance outside of its run, besides limits."""

    paused: bool
    no_worker: str
    """Why no connected worker host takes the attempt, a sentence; empty: one does."""
    requested_at: int
    run_id: str = ""
    """The run's id, for the commands that blockers name."""
    executor: str = ""
    """Name of the executor that runs the attempt."""


class Blocker(NamedTuple):
    """One reason why a task instance is not running."""

    rule: str
    """A short name for programs (see `airflow_dependencies.NAMES`)."""
    sentence: str
    """The reason, for people."""
    ends_with: str = ""
    """The event that can end it, in a few words; empty where no event can."""
    not_before: int | None = None
    """The blocker cannot end before this moment, as far as that is known."""
    command: str | None = None
    """The command that removes the blocker, where there is one."""
    by_hand: bool = False
    """The blocker does not end by itself: a person has to do something."""
    resource: Resource | None = None
    """The limit that is reached. The caller knows the runs and can name the holders."""


def explain(
    run: RunData,
    slot: int,
    candidate: Candidate,
    admission: Admission,
    facts: SchedulerFacts,
    own_limits: Mapping[Resource, int] | None = None,
) -> list[Blocker]:
    """Return every blocker of a task instance of a running run; an empty list: the next step of the scheduler starts it.

    Args:
        candidate: the task instance as admission sees it.
        own_limits: the limits of the definition, for a run that admission does not know yet.
    """
    state = run.task_state(slot)
    found: list[Blocker] = []
    if state in FINISHED:
        found += _finished(run, slot, facts)
    elif state is TaskState.RUNNING:
        found.append(Blocker("running", f"It is running since {iso(run.started_at[slot])}.", "it ends"))
    elif state is TaskState.RESTARTING:
        found.append(
            Blocker("restarting", "It was cleared while it ran; its attempt is being stopped first.", "its attempt has stopped")
        )
    elif state is TaskState.QUEUED:
        since = iso(run.queued_at[slot])
        text = f"It was handed to the executor {facts.executor} at {since} and has not started yet."
        found.append(Blocker("queued", text.replace("  ", " "), "its process has started"))
        if facts.no_worker:
            found.append(Blocker("no_worker", facts.no_worker, "a worker host connects", command="tradewind worker-host"))
    elif state is TaskState.DEFERRED:  # the caller knows the wait and adds it
        found.append(Blocker("deferred", "It is deferred: it continues when its wait ends.", "its wait ends"))
    elif state is TaskState.AWAITING_INPUT:
        found.append(Blocker("input", "It waits for a person's answer.", "somebody answers", by_hand=True))
    else:
        if state is not TaskState.SCHEDULED:
            found += dependencies(run, slot, facts.requested_at)
        number, date = run.instances.task(slot), run.facts.logical_date
        topology = run.topology
        no_attempt = topology.tasks[number].empty or topology.only_waits(number, date)
        # a scheduled instance gets an attempt, even if its task has been changed since to one without attempts
        if state is TaskState.SCHEDULED or not no_attempt:
            found += limits(candidate, run, admission, facts, own_limits or {})
    return found


# --- its own state ------------------------------------------------------------------------------------------------------


def _finished(run: RunData, slot: int, facts: SchedulerFacts) -> list[Blocker]:
    """Explain a finished task instance, with the reason as far as it is still in memory."""
    state, number = run.task_state(slot), run.instances.task(slot)
    absent = outside_its_dates(run, slot)
    if state is TaskState.REMOVED and absent:
        return absent
    reason = run.reasons.get(slot)
    if slot in run.gone:
        text = (
            f"It is {state.value}: {reason or integrity.GONE}. It runs again when its DAG has it again and the run is cleared."
        )
        return [Blocker("finished", text, "its task is in the DAG again", by_hand=True)]
    if reason is None and state in (TaskState.UPSTREAM_FAILED, TaskState.SKIPPED):
        reason = _why_without_running(run, slot, number)
    again = "Clear it to run it again."
    causes = root_causes(run, slot)
    if causes != [slot]:
        first = _first(causes)
        of = "" if set(causes) == set(decided_by(run, slot)) else f"The root cause is {_list(run, first)}. "
        again = f"{of}Clear {_names(run, first)} and downstream tasks to run it again."
    text = f"It is {state.value}{': ' + reason.rstrip('.') if reason else ''}. {again}"
    ends = "it is cleared" if causes == [slot] else f"{_names(run, _first(causes))} is cleared and ends in another state"
    return [Blocker("finished", text, ends, command=clear_command(run, slot, facts.run_id), by_hand=True)]


def _why_without_running(run: RunData, slot: int, task: int) -> str | None:
    """Return the reason of an end that was decided without an attempt, from the upstream task instances as they are now."""
    if branch_memory.skips(run, slot, task):
        return branch_memory.sentence(run, slot)
    bad = decided_by(run, slot)
    return f"upstream of it, {_list(run, bad)}" if bad else None


def outside_its_dates(run: RunData, slot: int) -> list[Blocker]:
    """Return a blocker where the task's own dates exclude the run's. Such a task instance is `removed` when its run starts."""
    date, task = run.facts.logical_date, run.instances.task(slot)
    if date is None:
        return []
    return [
        Blocker("dates", f"It does not belong to this run: {why}.", by_hand=True)
        for number, why in task_dates.outside(run.topology, date)
        if number == task
    ]


# --- inside its run -----------------------------------------------------------------------------------------------------


def dependencies(run: RunData, slot: int, now: int) -> list[Blocker]:
    """Return what has to happen before the task instance is scheduled: in this run, in the previous one, or by time."""
    number = run.instances.task(slot)
    found: list[Blocker] = []
    due = run.due.get(slot, 0)
    state = run.task_state(slot)
    if due > now and state in (TaskState.UP_FOR_RETRY, TaskState.UP_FOR_RESCHEDULE):
        what = "its next try" if state is TaskState.UP_FOR_RETRY else "being called again"
        reason = run.reasons.get(slot)
        text = f"It waits for {what} at {iso(due)}{f' ({reason})' if reason else ''}."
        found.append(Blocker("due", text, f"it is {iso(due)}", due))
    found += _of_the_graph(run, slot, number)
    found += _mapping(run, number)
    task = run.topology.tasks[number]
    if (task.depends_on_past or task.wait_for_downstream) and not run.past_allowed.get(number, False):
        text = run.past_reason.get(number) or "The previous run has not been examined yet."
        found.append(Blocker("past", text, "that changes in the previous run"))
    return found


def _of_the_graph(run: RunData, slot: int, number: int) -> list[Blocker]:
    """Return blockers by branches, the trigger rule, setups and teardowns, in the order in which `examination` checks them."""
    if branch_memory.skips(run, slot, number):
        text = f"It is going to be skipped: {branch_memory.sentence(run, slot)}."
        return [Blocker("branch", text, "the branching task is cleared and chooses this branch", by_hand=True)]
    topology, found = run.topology, list[Blocker]()
    tally, rule = run.upstream_counts(slot), topology.rules[number]
    by_rule = DECIDERS[rule](*tally) if tally[0] else RUN
    verdict = by_rule
    if topology.has_setups and topology.upstream(number):
        verdict = setups.decide(run, slot, verdict)
    domain = topology.domain_of.get(number)
    by_list = verdict if domain is None else expansion.decide(run, topology.domains[domain], verdict)
    bad = [] if verdict in (by_rule, WAIT) else setups.unsuccessful(run, slot)
    if domain is not None and by_list != verdict:
        found.append(_no_list(run, topology.domains[domain].providers, by_list))
    elif by_rule == WAIT or (verdict >= 0 and not (bad and by_rule == RUN)):
        text = sentence(topology.tasks[number].trigger_rule, tally)
        if verdict >= 0 and not bad:  # decided, but it waits for its next try, or the previous run blocks even a skip
            text = f"It is going to be {TASK_STATES[verdict].value}: {text[0].lower()}{text[1:]}"
        found.append(_upstream(run, slot, text))
    if bad:
        found.append(_no_setup(run, bad, verdict))
    elif rule != RULE_ALWAYS and topology.upstream(number):
        found += _setups(run, slot, number)
    if rule == RULE_CODES[TriggerRule.ALL_DONE_SETUP_SUCCESS]:
        found += _torn_down_later(run, slot, number)
    return found


def _setups(run: RunData, slot: int, number: int) -> Iterator[Blocker]:
    """Yield a blocker for indirect setups that have not succeeded."""
    missing = _first(
        one
        for setup in run.topology.setups_of.get(number, ())
        for one in relevant(run, slot, setup)
        if run.task_state(one) is not TaskState.SUCCESS
    )
    if missing:
        text = f"It waits for the setup {_list(run, missing)}."
        yield Blocker("setup", text, f"{run.name(missing[0])} succeeds", _soonest(run, missing, every=True))


def _no_setup(run: RunData, bad: list[int], verdict: int) -> Blocker:
    """Return the blocker for a setup that did not succeed: it decides, whatever the trigger rule says."""
    text = f"It is going to be {TASK_STATES[verdict].value}: it needs the setup {_list(run, _first(bad))}."
    return Blocker("setup", text, f"{run.name(bad[0])} is cleared and succeeds", by_hand=True)


def _torn_down_later(run: RunData, slot: int, number: int) -> Iterator[Blocker]:
    """Yield a blocker for unfinished tasks between a teardown's setups and the teardown."""
    late = _first(
        one
        for other in run.topology.teardown_scope.get(number, ())
        for one in relevant(run, slot, other)
        if run.state[one] not in _FINISHED
    )
    if late:
        text = f"It is a teardown and waits for {_list(run, late)}."
        yield Blocker("teardown", text, f"{run.name(late[0])} ends", _soonest(run, late, every=True))


def _no_list(run: RunData, providers: Iterable[int], verdict: int) -> Blocker:
    """Return the blocker for a provider of a list that ended without one: it decides, whatever the trigger rule says."""
    ended = [slot for slot in providers if run.state[slot] in _FINISHED and run.task_state(slot) is not TaskState.SUCCESS]
    who = f"{run.name(ended[0])}, which is {run.task_state(ended[0]).value}"
    text = f"It is going to be {TASK_STATES[verdict].value}: it is mapped over the list of {who}."
    return Blocker("list", text, f"{run.name(ended[0])} is cleared and ends in another state", by_hand=True)


def _mapping(run: RunData, task: int) -> Iterator[Blocker]:
    """Yield blockers that keep a mapped task from being expanded."""
    if task in run.expanding:
        have, want = len(run.instances.slots(task)), run.expanding[task]
        text = f"Its task instances are being created: {have} of {want} exist."
        yield Blocker("expanding", text, "they are all created")
    domain = run.topology.domain_of.get(task)
    if domain is None or task in run.instances.expanded:
        return
    providers = run.topology.domains[domain].providers
    growing = [run.topology.ids[one] for one in providers if one in run.expanding]
    late = _first(slot for provider in providers for slot in run.instances.slots(provider) if run.state[slot] not in _FINISHED)
    if late or growing:
        who = _names(run, late) if late else ", ".join(growing)
        text = f"It is mapped over a list that is not known yet: {who} has to end first."
        first = run.name(late[0]) if late else growing[0]
        yield Blocker("list", text, f"{first} ends", _soonest(run, late, every=True))


def _upstream(run: RunData, slot: int, text: str) -> Blocker:
    """Return the blocker of the trigger rule: its sentence, the first unfinished upstream tasks, and how far the run has got."""
    number = run.instances.task(slot)
    late = _first(
        one for up in run.topology.upstream(number) for one in relevant(run, slot, up) if run.state[one] not in _FINISHED
    )
    if not late:
        return Blocker("trigger_rule", text, "an upstream task is cleared and ends in another state", by_hand=True)
    n, *ended = run.upstream_counts(slot)
    shown = late[:NAMED_MAX]
    more = max(0, n - sum(ended) - len(shown))
    text = f"{text} Not ended: {', '.join(f'{run.name(up)} ({_named(run, up)})' for up in shown)}"
    text += f" and {more} more." if more else "."
    at = late
    if all(run.state[one] == _NONE for one in late):
        at = _front(run, late)
        moving = [one for one in at if one not in late]
        if moving:
            text += f" The run has reached {_list(run, moving)}."
    every = run.topology.tasks[number].trigger_rule not in FAST_RULES
    return Blocker("trigger_rule", text, f"{run.name((at or late)[0])} ends", _soonest(run, late, every=every))


def _front(run: RunData, slots: list[int]) -> list[int]:
    """Return upstream task instances that are active, or that wait for something else than their upstream tasks."""
    topology, found = run.topology, list[int]()
    stack, seen = list(reversed(slots)), set(slots)
    while stack and len(found) < NAMED_MAX and len(seen) < EXAMINED_MAX:
        slot = stack.pop()
        if run.state[slot] != _NONE:
            found.append(slot)
            continue
        late = [
            one
            for up in topology.upstream(run.instances.task(slot))
            for one in _first(one for one in relevant(run, slot, up) if run.state[one] not in _FINISHED)
        ]
        if not late:
            found.append(slot)
        for one in reversed(late):
            if one not in seen:
                seen.add(one)
                stack.append(one)
    return found


def _soonest(run: RunData, late: list[int], *, every: bool) -> int | None:
    """Return the earliest moment at which these can have ended, None where it is not known.

    Args:
        every: all of them have to end; else one of them is enough.
    """
    moments = [run.due.get(one, 0) if run.state[one] not in _FINISHED else 0 for one in late]
    found = max(moments, default=0) if every else min(moments, default=0)
    return found or None


def _first(slots: Iterable[int]) -> list[int]:
    """Return the first few, one more than a sentence names."""
    found = []
    for slot in slots:
        found.append(slot)
        if len(found) == NAMED_MAX + 1:
            break
    return found


def _names(run: RunData, slots: list[int]) -> str:
    more = " and others" if len(slots) > NAMED_MAX else ""
    return ", ".join(run.name(one) for one in slots[:NAMED_MAX]) + more


def _list(run: RunData, slots: list[int]) -> str:
    """Return names with states: `a (running), b (failed) and others`."""
    more = " and others" if len(slots) > NAMED_MAX else ""
    return ", ".join(f"{run.name(one)} ({_named(run, one)})" for one in slots[:NAMED_MAX]) + more


def _named(run: RunData, slot: int) -> str:
    state = run.task_state(slot)
    return "not started" if state is TaskState.NONE else state.value


# --- limits over all runs -------------------------------------------------------------------------------------------------


def limits(
    candidate: Candidate, run: RunData, admission: Admission, facts: SchedulerFacts, own: Mapping[Resource, int]
) -> list[Blocker]:
    """Return the limits that are reached; where none is, the candidates that come first and take the slots that are left."""
    dag_id, found = run.facts.dag_id, list[Blocker]()
    if facts.paused:
        command = f"tradewind dags unpause {dag_id}"
        found.append(Blocker("paused", "Its DAG is paused: unpause it.", "the DAG is unpaused", command=command, by_hand=True))
    for resource, amount in (*candidate.needs, (PARALLELISM, 1)):
        kind, owner, _ = resource
        capacity = admission.capacity(resource)
        if capacity is None:
            capacity = own.get(resource)
        if kind == "dag":
            continue
        used = admission.used(resource)
        if capacity is None:
            command = f"tradewind pools set {owner} {amount}"
            text = f"There is no pool {owner!r}. Create it: tradewind pools set {owner} SLOTS DESCRIPTION"
            found.append(Blocker("pool", text, "the pool is created", command=command, by_hand=True))
        elif max(0, capacity - used) < amount:
            found.append(_full(resource, used, capacity, amount))
    if not found and run.task_state(candidate.slot) is TaskState.SCHEDULED:
        found += _others_first(candidate, admission)
    return found


def _others_first(candidate: Candidate, admission: Admission) -> list[Blocker]:
    """Return a blocker where slots are free but others get them in the next step, for example after a limit was raised."""
    others = admission.admitted_before(candidate)
    if not others:
        return []
    text = f"{len(others)} task instances come before it and take what is free."
    return [Blocker("position", text, "one of them ends", resource=candidate.needs[0][0])]


def _full(resource: Resource, used: int, capacity: int, amount: int) -> Blocker:
    kind, owner, _ = resource
    ends = "one of the task instances that hold it ends"
    if kind == "parallelism":
        text = f"core.parallelism is reached: {used} of {capacity} attempts are live."
        return Blocker("parallelism", text, ends, resource=resource)
    if kind == "executor":
        text = f"The {owner} has no free slot: {used} of {capacity} attempts are live."
        return Blocker("parallelism", text, ends, resource=resource)
    if kind == "pool":
        command = f"tradewind pools set {owner} {used + amount}"
        if amount > capacity:
            text = f"It needs {amount} slots, but pool {owner} has only {capacity}: it can never start."
            return Blocker("pool", text, "the pool is made larger", command=command, by_hand=True, resource=resource)
        text = f"Pool {owner} has {max(0, capacity - used)} of {capacity} slots free; it needs {amount}."
        return Blocker("pool", text, ends, command=command, resource=resource)
    if kind == "run":
        text = f"The run has {used} live task instances; its max_active_tasks is {capacity}."
        return Blocker("max_active_tasks", text, ends, resource=resource)
    if kind == "dag_tasks":
        text = f"{owner} has {used} live task instances over all its runs; its max_active_tasks_all_runs is {capacity}."
        return Blocker("max_active_tasks_all_runs", text, ends, resource=resource)
    if kind == "run_task":
        text = f"{used} of {capacity} allowed instances of this task are live in this run."
        return Blocker("max_active_tis_per_dagrun", text, ends, resource=resource)
    task = kind.removeprefix("dag_task:")
    text = f"{used} of {capacity} allowed instances of {task} are live over all runs of {owner}."
    return Blocker("max_active_tis_per_dag", text, ends, resource=resource)
