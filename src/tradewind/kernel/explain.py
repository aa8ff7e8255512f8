"""Why a task instance is not running: one sentence for each thing in the way, from the rules that decide.

Everything is handed in, nothing is asked; the answer is ordered from what lies nearest to the task to what lies outside.

What is named is exact: each blocker alone keeps the task instance from being handed to the executor, and where none is named the
next step hands it over (a property test holds this against the scheduler's own decisions). Lists in sentences are short, and
nothing here takes longer than a look at each instance that concerns the task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tradewind.kernel import expansion, integrity
from tradewind.kernel.admission import PARALLELISM, Admission, Candidate, Resource
from tradewind.kernel.causes import clear_command, decided_by, first_causes
from tradewind.kernel.expansion import relevant
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.rules import branch_memory, setups, task_dates
from tradewind.kernel.topology import RULE_ALWAYS
from tradewind.kernel.trigger_rules import DECIDERS, RULE_CODES, RUN, WAIT, sentence
from tradewind.model.moments import iso
from tradewind.model.states import FINISHED, TASK_STATES, TaskState, TriggerRule

NAMED_MAX = 3
"""So many task instances are named in a sentence; the others are counted."""
LOOKED_AT_MAX = 500
"""So many tasks above a task are looked at to find out where its run is."""

_FINISHED = frozenset(state.code for state in FINISHED)
_NONE = TaskState.NONE.code


class Surroundings(NamedTuple):
    """What is in the way outside of the run."""

    paused: bool
    executor_ready: bool
    requested_at: int
    run_id: str = ""
    """Of the run, for the commands that blockers name."""


class Blocker(NamedTuple):
    """One thing in the way. `rule` is a word for programs, `sentence` is for people."""

    rule: str
    sentence: str
    ends_with: str = ""
    """The event that can end it, in a few words; empty where nothing does."""
    not_before: int | None = None
    """It cannot end before this moment, as far as that is known."""
    command: str | None = None
    """The command that removes it, where there is one."""
    by_hand: bool = False
    """It does not end by itself: a person has to do something."""
    resource: Resource | None = None
    """The limit that has not enough left; whoever holds it is named by whoever knows the runs."""


def explain(
    machine: RunMachine,
    slot: int,
    candidate: Candidate,
    admission: Admission,
    around: Surroundings,
    own_limits: Mapping[Resource, int] | None = None,
) -> list[Blocker]:
    """Every blocker of a task instance of a running run; empty: the next step starts it.

    Args:
        candidate: the task instance as admission sees it.
        own_limits: the limits that its definition sets, for a run of which admission does not know yet.
    """
    state = machine.task_state(slot)
    found: list[Blocker] = []
    if state in FINISHED:
        found += _finished(machine, slot, around)
    elif state is TaskState.RUNNING:
        found.append(Blocker("running", f"It is running since {iso(machine.started_at[slot])}.", "it ends"))
    elif state is TaskState.RESTARTING:
        found.append(
            Blocker("restarting", "It was cleared while it ran; its attempt is being stopped first.", "its attempt has stopped")
        )
    elif state is TaskState.QUEUED:
        since = iso(machine.queued_at[slot])
        text = f"It was handed to the executor at {since} and has not started yet."
        found.append(Blocker("queued", text, "its process has started"))
        if not around.executor_ready:
            found.append(_no_worker())
    elif state is TaskState.DEFERRED:  # whoever knows its wait says more
        found.append(Blocker("deferred", "It is deferred: it goes on when its wait is over.", "its wait is over"))
    elif state is TaskState.AWAITING_INPUT:
        found.append(Blocker("input", "It waits for a person's answer.", "somebody answers", by_hand=True))
    else:
        if state is not TaskState.SCHEDULED:
            found += dependencies(machine, slot, around.requested_at)
        number, date = machine.instances.task(slot), machine.facts.logical_date
        topology = machine.topology
        no_attempt = topology.tasks[number].empty or topology.only_waits(number, date)
        if (
            state is TaskState.SCHEDULED or not no_attempt
        ):  # it was scheduled for an attempt, whatever its task has become since
            found += limits(candidate, machine, admission, around, own_limits or {})
    return found


# --- its own state ------------------------------------------------------------------------------------------------------


def _no_worker() -> Blocker:
    return Blocker(
        "no_worker",
        "No worker host is connected; it starts when one is.",
        "a worker host connects",
        command="tradewind worker-host",
    )


def _finished(machine: RunMachine, slot: int, around: Surroundings) -> list[Blocker]:
    """Ended: with the reason, as far as the run still knows it."""
    state, number = machine.task_state(slot), machine.instances.task(slot)
    absent = outside_its_dates(machine, slot)
    if state is TaskState.REMOVED and absent:
        return absent
    reason = machine.reasons.get(slot)
    if slot in machine.gone:
        text = (
            f"It is {state.value}: {reason or integrity.GONE}. It runs again when its DAG has it again and the run is cleared."
        )
        return [Blocker("finished", text, "its task is in the DAG again", by_hand=True)]
    if reason is None and state in (TaskState.UPSTREAM_FAILED, TaskState.SKIPPED):
        reason = _why_without_running(machine, slot, number)
    again = "Clear it to run it again."
    causes = first_causes(machine, slot)
    if causes != [slot]:
        first = _first(causes)
        of = "" if set(causes) == set(decided_by(machine, slot)) else f"It began with {_list(machine, first)}. "
        again = f"{of}Clear {_names(machine, first)} and what comes after to run it again."
    text = f"It is {state.value}{': ' + reason.rstrip('.') if reason else ''}. {again}"
    ends = "it is cleared" if causes == [slot] else f"{_names(machine, _first(causes))} is cleared and ends otherwise"
    return [Blocker("finished", text, ends, command=clear_command(machine, slot, around.run_id), by_hand=True)]


def _why_without_running(machine: RunMachine, slot: int, task: int) -> str | None:
    """The reason of an end that was decided without an attempt, from what lies above it now."""
    if branch_memory.skips(machine, slot, task):
        return branch_memory.sentence(machine, slot)
    bad = decided_by(machine, slot)
    return f"above it, {_list(machine, bad)}" if bad else None


def outside_its_dates(machine: RunMachine, slot: int) -> list[Blocker]:
    """Do the task's own dates exclude the run's? Such a task instance is `removed` when its run starts."""
    date, task = machine.facts.logical_date, machine.instances.task(slot)
    if date is None:
        return []
    return [
        Blocker("dates", f"It has no part in this run: {why}.", by_hand=True)
        for number, why in task_dates.outside(machine.topology, date)
        if number == task
    ]


# --- inside its run -----------------------------------------------------------------------------------------------------


def dependencies(machine: RunMachine, slot: int, now: int) -> list[Blocker]:
    """What has to happen in this run, in the one before it, or in time, before the task instance is scheduled."""
    number = machine.instances.task(slot)
    found: list[Blocker] = []
    due = machine.due.get(slot, 0)
    state = machine.task_state(slot)
    if due > now and state in (TaskState.UP_FOR_RETRY, TaskState.UP_FOR_RESCHEDULE):
        what = "its next try" if state is TaskState.UP_FOR_RETRY else "being called again"
        reason = machine.reasons.get(slot)
        text = f"It waits for {what} at {iso(due)}{f' ({reason})' if reason else ''}."
        found.append(Blocker("due", text, f"it is {iso(due)}", due))
    found += _of_the_graph(machine, slot, number)
    found += _mapping(machine, number)
    task = machine.topology.tasks[number]
    if (task.depends_on_past or task.wait_for_downstream) and not machine.past_allowed.get(number, False):
        text = machine.past_why.get(number) or "The previous run has not been looked at yet."
        found.append(Blocker("past", text, "that changes in the previous run"))
    return found


def _of_the_graph(machine: RunMachine, slot: int, number: int) -> list[Blocker]:
    """Branches, trigger rule, setups and teardowns: as the machine examines them."""
    if branch_memory.skips(machine, slot, number):
        text = f"It is going to be skipped: {branch_memory.sentence(machine, slot)}."
        return [Blocker("branch", text, "the branching task is cleared and decides otherwise", by_hand=True)]
    topology, found = machine.topology, list[Blocker]()
    tally, rule = machine.tally(slot), topology.rules[number]
    by_rule = DECIDERS[rule](*tally) if tally[0] else RUN
    verdict = by_rule
    if topology.has_setups and topology.upstream(number):
        verdict = setups.decide(machine, slot, verdict)
    domain = topology.domain_of.get(number)
    by_list = verdict if domain is None else expansion.decide(machine, topology.domains[domain], verdict)
    bad = [] if verdict in (by_rule, WAIT) else setups.ended_otherwise(machine, slot)
    if domain is not None and by_list != verdict:
        found.append(_no_list(machine, topology.domains[domain].providers, by_list))
    elif by_rule == WAIT or (verdict >= 0 and not (bad and by_rule == RUN)):
        text = sentence(topology.tasks[number].trigger_rule, tally)
        if verdict >= 0 and not bad:  # settled, but for its next try or a past that holds back even that
            text = f"It is going to be {TASK_STATES[verdict].value}: {text[0].lower()}{text[1:]}"
        found.append(_upstream(machine, slot, text))
    if bad:
        found.append(_no_setup(machine, bad, verdict))
    elif rule != RULE_ALWAYS and topology.upstream(number):
        found += _setups(machine, slot, number)
    if rule == RULE_CODES[TriggerRule.ALL_DONE_SETUP_SUCCESS]:
        found += _torn_down_later(machine, slot, number)
    return found


def _setups(machine: RunMachine, slot: int, number: int) -> Iterator[Blocker]:
    """Setups that it lies behind without following them directly."""
    missing = _first(
        one
        for setup in machine.topology.setups_of.get(number, ())
        for one in relevant(machine, slot, setup)
        if machine.task_state(one) is not TaskState.SUCCESS
    )
    if missing:
        text = f"It waits for the setup {_list(machine, missing)}."
        yield Blocker("setup", text, f"{machine.name(missing[0])} succeeds", _soonest(machine, missing, every=True))


def _no_setup(machine: RunMachine, bad: list[int], verdict: int) -> Blocker:
    """A setup that did not succeed decides, whatever its trigger rule says."""
    text = f"It is going to be {TASK_STATES[verdict].value}: it lies behind the setup {_list(machine, _first(bad))}."
    return Blocker("setup", text, f"{machine.name(bad[0])} is cleared and succeeds", by_hand=True)


def _torn_down_later(machine: RunMachine, slot: int, number: int) -> Iterator[Blocker]:
    """A teardown waits for all that lies between its setups and itself."""
    late = _first(
        one
        for other in machine.topology.teardown_scope.get(number, ())
        for one in relevant(machine, slot, other)
        if machine.state[one] not in _FINISHED
    )
    if late:
        text = f"It tears down what {_list(machine, late)} still uses."
        yield Blocker("teardown", text, f"{machine.name(late[0])} ends", _soonest(machine, late, every=True))


def _no_list(machine: RunMachine, providers: Iterable[int], verdict: int) -> Blocker:
    """Where its list should come from there is none: that decides, whatever its trigger rule says."""
    over = [
        slot for slot in providers if machine.state[slot] in _FINISHED and machine.task_state(slot) is not TaskState.SUCCESS
    ]
    who = f"{machine.name(over[0])}, which is {machine.task_state(over[0]).value}"
    text = f"It is going to be {TASK_STATES[verdict].value}: its list comes from {who}."
    return Blocker("list", text, f"{machine.name(over[0])} is cleared and ends otherwise", by_hand=True)


def _mapping(machine: RunMachine, task: int) -> Iterator[Blocker]:
    """What keeps a mapped task from its instances."""
    if task in machine.growing:
        have, want = len(machine.instances.slots(task)), machine.growing[task]
        text = f"Its task instances are being written: {have} of {want} exist."
        yield Blocker("growing", text, "they are all written")
    domain = machine.topology.domain_of.get(task)
    if domain is None or task in machine.instances.of:
        return
    providers = machine.topology.domains[domain].providers
    growing = [machine.topology.ids[one] for one in providers if one in machine.growing]
    late = _first(
        slot for provider in providers for slot in machine.instances.slots(provider) if machine.state[slot] not in _FINISHED
    )
    if late or growing:
        who = _names(machine, late) if late else ", ".join(growing)
        text = f"It is mapped over a list that is not known yet: {who} has to end first."
        first = machine.name(late[0]) if late else growing[0]
        yield Blocker("list", text, f"{first} ends", _soonest(machine, late, every=True))


def _upstream(machine: RunMachine, slot: int, text: str) -> Blocker:
    """The trigger rule's sentence, with the first upstream tasks that have not ended, and where the run is."""
    number = machine.instances.task(slot)
    late = _first(
        one
        for up in machine.topology.upstream(number)
        for one in relevant(machine, slot, up)
        if machine.state[one] not in _FINISHED
    )
    if not late:
        return Blocker("trigger_rule", text, "a task above it is cleared and ends otherwise", by_hand=True)
    n, *ended = machine.tally(slot)
    shown = late[:NAMED_MAX]
    more = max(0, n - sum(ended) - len(shown))
    text = f"{text} Not ended: {', '.join(f'{machine.name(up)} ({_named(machine, up)})' for up in shown)}"
    text += f" and {more} more." if more else "."
    at = late
    if all(machine.state[one] == _NONE for one in late):
        at = _front(machine, late)
        moving = [one for one in at if one not in late]
        if moving:
            text += f" Its run is at {_list(machine, moving)}."
    every = machine.topology.tasks[number].trigger_rule not in expansion.FAST_RULES
    return Blocker("trigger_rule", text, f"{machine.name((at or late)[0])} ends", _soonest(machine, late, every=every))


def _front(machine: RunMachine, slots: list[int]) -> list[int]:
    """Where the work above these is: task instances that move, or wait for something else than their upstream tasks."""
    topology, found = machine.topology, list[int]()
    stack, seen = list(reversed(slots)), set(slots)
    while stack and len(found) < NAMED_MAX and len(seen) < LOOKED_AT_MAX:
        slot = stack.pop()
        if machine.state[slot] != _NONE:
            found.append(slot)
            continue
        late = [
            one
            for up in topology.upstream(machine.instances.task(slot))
            for one in _first(one for one in relevant(machine, slot, up) if machine.state[one] not in _FINISHED)
        ]
        if not late:
            found.append(slot)
        for one in reversed(late):
            if one not in seen:
                seen.add(one)
                stack.append(one)
    return found


def _soonest(machine: RunMachine, late: list[int], *, every: bool) -> int | None:
    """Before this moment they have not ended: of all of them where every one counts, else of the first to come."""
    moments = [machine.due.get(one, 0) if machine.state[one] not in _FINISHED else 0 for one in late]
    found = max(moments, default=0) if every else min(moments, default=0)
    return found or None


def _first(slots: Iterable[int]) -> list[int]:
    """The first few."""
    found = []
    for slot in slots:
        found.append(slot)
        if len(found) == NAMED_MAX + 1:
            break
    return found


def _names(machine: RunMachine, slots: list[int]) -> str:
    more = " and others" if len(slots) > NAMED_MAX else ""
    return ", ".join(machine.name(one) for one in slots[:NAMED_MAX]) + more


def _list(machine: RunMachine, slots: list[int]) -> str:
    """`a (running), b (failed) and others`."""
    more = " and others" if len(slots) > NAMED_MAX else ""
    return ", ".join(f"{machine.name(one)} ({_named(machine, one)})" for one in slots[:NAMED_MAX]) + more


def _named(machine: RunMachine, slot: int) -> str:
    state = machine.task_state(slot)
    return "not started" if state is TaskState.NONE else state.value


# --- limits over all runs -------------------------------------------------------------------------------------------------


def limits(
    candidate: Candidate, machine: RunMachine, admission: Admission, around: Surroundings, own: Mapping[Resource, int]
) -> list[Blocker]:
    """Limits that leave no room for it now; and, where all do, those who come before it and take what is left."""
    dag_id, found = machine.facts.dag_id, list[Blocker]()
    if around.paused:
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
    if not found and machine.task_state(candidate.slot) is TaskState.SCHEDULED:
        found += _overtaken(candidate, admission)
    return found


def _overtaken(candidate: Candidate, admission: Admission) -> list[Blocker]:
    """Between a change of a limit and the next step: there is room, but others get it."""
    others = admission.overtaken(candidate)
    if not others:
        return []
    text = f"{len(others)} task instances come before it and take what is free."
    return [Blocker("position", text, "one of them ends", resource=candidate.needs[0][0])]


def _full(resource: Resource, used: int, capacity: int, amount: int) -> Blocker:
    kind, owner, _ = resource
    ends = "one of those that hold it ends"
    if kind == "parallelism":
        text = f"core.parallelism is reached: {used} of {capacity} attempts are live."
        return Blocker("parallelism", text, ends, resource=resource)
    if kind == "pool":
        command = f"tradewind pools set {owner} {used + amount}"
        if amount > capacity:
            text = f"It wants {amount} slots, but pool {owner} has only {capacity}: it can never start."
            return Blocker("pool", text, "the pool is made larger", command=command, by_hand=True, resource=resource)
        text = f"Pool {owner} has {max(0, capacity - used)} of {capacity} slots free; it wants {amount}."
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
