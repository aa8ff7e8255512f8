"""Why a task instance is not running: a list of blockers, each with one sentence, from the rules that decide.

The answer is computed from the arguments alone. Blockers inside the run come first, then those outside it.

The answer is exact: each blocker alone keeps the task instance from being handed to the executor, and if there is no blocker
the next step of the scheduler hands it over (a property test compares this with the decisions of the scheduler). Sentences name
only the first few task instances, and the work is bounded by the number of instances that the task depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tradewind.kernel import expansion
from tradewind.kernel.admission import PARALLELISM, Admission, Candidate, Resource
from tradewind.kernel.causes import clear_command, decided_by, root_causes
from tradewind.kernel.domains import FAST_RULES
from tradewind.kernel.expansion import relevant
from tradewind.kernel.rules import branch_memory, setups, task_dates
from tradewind.kernel.run_data import RunData
from tradewind.kernel.topology import RULE_ALWAYS
from tradewind.kernel.trigger_rules import DECIDERS, RULE_CODES, RUN, WAIT, requirement
from tradewind.model.moments import shown_moment
from tradewind.model.phrases import Argument, Phrase, english, phrase, then
from tradewind.model.states import FINISHED, TASK_STATES, TaskState, TriggerRule

NAMED_MAX = 3
"""Maximum number of task instances that a sentence names; the others are only mentioned or counted."""
EXAMINED_MAX = 500
"""Maximum number of upstream task instances that are examined to find out how far the run has got."""

_FINISHED = frozenset(state.code for state in FINISHED)
_NONE = TaskState.NONE.code


class SchedulerFacts(NamedTuple):
    """Everything outside of its run that can block a task instance, except limits."""

    paused: bool
    no_worker: Phrase | None
    """Why no connected worker host takes the attempt; None: a worker host takes it."""
    requested_at: int
    run_id: str = ""
    """The run's id, for the commands of blockers."""
    executor: str = ""
    """Name of the executor that runs the attempt."""
    waits_for: str = ""
    """What the executor says about an attempt that has not started; empty: nothing."""


class Blocker(NamedTuple):
    """One reason why a task instance is not running."""

    rule: str
    """A short name for programs (see `airflow_dependencies.NAMES`)."""
    reason: Phrase
    """The reason, for people."""
    ends: Phrase | None = None
    """The event that can end the blocker, in a few words; None if no event can."""
    not_before: int | None = None
    """The blocker cannot end before this moment, as far as known."""
    command: str | None = None
    """The command that removes the blocker, if there is one."""
    by_hand: bool = False
    """The blocker does not end by itself: a person has to act."""
    resource: Resource | None = None
    """The limit that is reached. The caller has all runs and can name the holders."""

    @property
    def sentence(self) -> str:
        """The reason in English."""
        return english(self.reason)

    @property
    def ends_with(self) -> str:
        """The event that can end the blocker, in English; empty if no event can."""
        return english(self.ends) if self.ends is not None else ""


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
        since = shown_moment(run.started_at[slot])
        found.append(Blocker("running", phrase("running", at=since), phrase("ends_ended")))
    elif state is TaskState.RESTARTING:
        found.append(Blocker("restarting", phrase("restarting"), phrase("ends_stopped")))
    elif state is TaskState.QUEUED:
        since, executor = shown_moment(run.queued_at[slot]), facts.executor
        reason = phrase("queued_at", executor=executor, at=since) if executor else phrase("queued", at=since)
        found.append(Blocker("queued", reason, phrase("ends_started")))
        if facts.waits_for:
            found.append(
                Blocker("executor", phrase("executor_says", executor=executor, reason=facts.waits_for), phrase("ends_started"))
            )
        if facts.no_worker is not None:
            command = "tradewind worker-host"
            found.append(Blocker("no_worker", facts.no_worker, phrase("ends_worker"), command=command))
    elif state is TaskState.DEFERRED:  # the caller knows the wait and adds it
        found.append(Blocker("deferred", phrase("deferred"), phrase("ends_wait")))
    elif state is TaskState.AWAITING_INPUT:
        found.append(Blocker("input", phrase("input"), phrase("ends_answered"), by_hand=True))
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
    """Explain a finished task instance, with the reason if it is still in memory."""
    state, number = run.task_state(slot), run.instances.task(slot)
    absent = outside_its_dates(run, slot)
    if state is TaskState.REMOVED and absent:
        return absent
    written = run.reasons.get(slot)
    if slot in run.gone:
        gone = phrase("gone")
        reason = phrase("finished_gone", state=state.value, reason=_translatable(written, gone) or gone)
        return [Blocker("finished", reason, phrase("ends_task_back"), by_hand=True)]
    now = _why_without_running(run, slot, number) if state in (TaskState.UPSTREAM_FAILED, TaskState.SKIPPED) else None
    why = now if written is None else _translatable(written, now)
    text = phrase("finished_because", state=state.value, reason=why) if why else phrase("finished", state=state.value)
    command, causes = clear_command(run, slot, facts.run_id), root_causes(run, slot)
    if causes == [slot]:
        return [Blocker("finished", then(text, phrase("clear_it")), phrase("ends_cleared"), command=command, by_hand=True)]
    first = _first(causes)
    if set(causes) != set(decided_by(run, slot)):
        text = then(text, phrase("root_cause", tasks=_list(run, first)))
    text = then(text, phrase("clear_causes", tasks=_names(run, first)))
    return [Blocker("finished", text, phrase("ends_other_state", tasks=_names(run, first)), command=command, by_hand=True)]


def _translatable(written: str | None, now: Phrase | None) -> str | Phrase | None:
    """Return a stored reason, which is a text. If `now` says the same, return `now`, which can be translated."""
    text = written.rstrip(".") if written else None
    return now if now is not None and text == english(now) else text


def _why_without_running(run: RunData, slot: int, task: int) -> Phrase | None:
    """Return why a task instance ended without an attempt, computed from the current states of its upstream task instances."""
    if branch_memory.skips(run, slot, task):
        return branch_memory.not_chosen(run, slot)
    bad = decided_by(run, slot)
    return phrase("upstream_of_it", tasks=_list(run, bad)) if bad else None


def outside_its_dates(run: RunData, slot: int) -> list[Blocker]:
    """Return a blocker if the task's own dates exclude the run's date. Such a task instance is `removed` when its run starts."""
    date, task = run.facts.logical_date, run.instances.task(slot)
    if date is None:
        return []
    return [
        Blocker("dates", phrase("dates", reason=why), by_hand=True)
        for number, why in task_dates.outside(run.topology, date)
        if number == task
    ]


# --- inside its run -----------------------------------------------------------------------------------------------------


def dependencies(run: RunData, slot: int, now: int) -> list[Blocker]:
    """Return what must happen before the task instance is scheduled: in this run, in the previous one, or by time."""
    number = run.instances.task(slot)
    found: list[Blocker] = []
    due = run.due.get(slot, 0)
    state = run.task_state(slot)
    if due > now and state in (TaskState.UP_FOR_RETRY, TaskState.UP_FOR_RESCHEDULE):
        found.append(Blocker("due", _due(state, shown_moment(due), run.reasons.get(slot)), _at(due), due))
    found += _of_the_graph(run, slot, number)
    found += _mapping(run, number)
    task = run.topology.tasks[number]
    if (task.depends_on_past or task.wait_for_downstream) and not run.past_allowed.get(number, False):
        reason = run.past_reason.get(number) or phrase("past_unknown")
        found.append(Blocker("past", reason, phrase("ends_past")))
    return found


def _due(state: TaskState, at: str, reason: str | None) -> Phrase:
    """Return what a task instance in state `up_for_retry` or `up_for_reschedule` waits for."""
    if state is TaskState.UP_FOR_RETRY:
        return phrase("due_retry_because", at=at, reason=reason) if reason else phrase("due_retry", at=at)
    return phrase("due_reschedule_because", at=at, reason=reason) if reason else phrase("due_reschedule", at=at)


def _at(moment: int) -> Phrase:
    """Return the event that a moment has come."""
    return phrase("ends_at", at=shown_moment(moment))


def _of_the_graph(run: RunData, slot: int, number: int) -> list[Blocker]:
    """Return blockers from branches, the trigger rule, setups and teardowns, in the order in which `examination` checks them."""
    if branch_memory.skips(run, slot, number):
        reason = phrase("branch", reason=branch_memory.not_chosen(run, slot))
        return [Blocker("branch", reason, phrase("ends_branch"), by_hand=True)]
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
        reason = requirement(topology.tasks[number].trigger_rule, tally)
        if verdict >= 0 and not bad:  # the verdict is known, but waits for the next try, or the previous run blocks even a skip
            reason = phrase("going_to_be", state=TASK_STATES[verdict].value, reason=reason)
        found.append(_upstream(run, slot, reason))
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
        ends = phrase("ends_succeeds", task=run.name(missing[0]))
        yield Blocker("setup", phrase("setup", tasks=_list(run, missing)), ends, _soonest(run, missing, every=True))


def _no_setup(run: RunData, bad: list[int], verdict: int) -> Blocker:
    """Return the blocker for a setup that did not succeed: its state decides, whatever the trigger rule says."""
    reason = phrase("setup_needed", state=TASK_STATES[verdict].value, tasks=_list(run, _first(bad)))
    return Blocker("setup", reason, phrase("ends_cleared_succeeds", task=run.name(bad[0])), by_hand=True)


def _torn_down_later(run: RunData, slot: int, number: int) -> Iterator[Blocker]:
    """Yield a blocker for unfinished tasks between a teardown's setups and the teardown."""
    late = _first(
        one
        for other in run.topology.teardown_scope.get(number, ())
        for one in relevant(run, slot, other)
        if run.state[one] not in _FINISHED
    )
    if late:
        ends = phrase("ends_task_ends", task=run.name(late[0]))
        yield Blocker("teardown", phrase("teardown", tasks=_list(run, late)), ends, _soonest(run, late, every=True))


def _no_list(run: RunData, providers: Iterable[int], verdict: int) -> Blocker:
    """Return the blocker for a task that should return a list and ended without one: it decides, whatever the rule says."""
    ended = [slot for slot in providers if run.state[slot] in _FINISHED and run.task_state(slot) is not TaskState.SUCCESS]
    name, task_state = run.name(ended[0]), run.task_state(ended[0]).value
    reason = phrase("list_ended", state=TASK_STATES[verdict].value, task=name, task_state=task_state)
    return Blocker("list", reason, phrase("ends_other_state", tasks=name), by_hand=True)


def _mapping(run: RunData, task: int) -> Iterator[Blocker]:
    """Yield blockers that keep a mapped task from being expanded."""
    if task in run.expanding:
        have, want = len(run.instances.slots(task)), run.expanding[task]
        yield Blocker("expanding", phrase("expanding", have=have, want=want), phrase("ends_created"))
    domain = run.topology.domain_of.get(task)
    if domain is None or task in run.instances.expanded:
        return
    providers = run.topology.domains[domain].providers
    growing = [run.topology.ids[one] for one in providers if one in run.expanding]
    late = _first(slot for provider in providers for slot in run.instances.slots(provider) if run.state[slot] not in _FINISHED)
    if late or growing:
        reason = phrase("list_unknown", tasks=_names(run, late) if late else [*growing])
        ends = phrase("ends_task_ends", task=run.name(late[0]) if late else growing[0])
        yield Blocker("list", reason, ends, _soonest(run, late, every=True))


def _upstream(run: RunData, slot: int, reason: Phrase) -> Blocker:
    """Return the blocker of the trigger rule: its reason, the first unfinished upstream tasks, and how far the run has got."""
    number = run.instances.task(slot)
    late = _first(
        one for up in run.topology.upstream(number) for one in relevant(run, slot, up) if run.state[one] not in _FINISHED
    )
    if not late:
        return Blocker("trigger_rule", reason, phrase("ends_upstream_other_state"), by_hand=True)
    n, *ended = run.upstream_counts(slot)
    shown = [_in_state(run, up) for up in late[:NAMED_MAX]]
    more = max(0, n - sum(ended) - len(shown))
    reason = then(reason, phrase("not_ended", tasks=phrase("and_more", items=shown, more=more) if more else shown))
    at = late
    if all(run.state[one] == _NONE for one in late):
        at = _front(run, late)
        moving = [one for one in at if one not in late]
        if moving:
            reason = then(reason, phrase("reached", tasks=_list(run, moving)))
    every = run.topology.tasks[number].trigger_rule not in FAST_RULES
    ends = phrase("ends_task_ends", task=run.name((at or late)[0]))
    return Blocker("trigger_rule", reason, ends, _soonest(run, late, every=every))


def _front(run: RunData, slots: list[int]) -> list[int]:
    """Return upstream task instances that are active, or that wait for something other than their upstream tasks."""
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
    """Return the earliest moment at which these task instances can have ended, None if it is not known.

    Args:
        every: True: all of them have to end; False: one of them is enough.
    """
    moments = [run.due.get(one, 0) if run.state[one] not in _FINISHED else 0 for one in late]
    found = max(moments, default=0) if every else min(moments, default=0)
    return found or None


def _first(slots: Iterable[int]) -> list[int]:
    """Return the first few slots, one more than a sentence names."""
    found = []
    for slot in slots:
        found.append(slot)
        if len(found) == NAMED_MAX + 1:
            break
    return found


def _names(run: RunData, slots: list[int]) -> Argument:
    """Return the names of task instances: `a, b and others`."""
    names: list[str | Phrase] = [run.name(one) for one in slots[:NAMED_MAX]]
    return phrase("and_others", items=names) if len(slots) > NAMED_MAX else names


def _list(run: RunData, slots: list[int]) -> Argument:
    """Return the names of task instances with their states: `a (running), b (failed) and others`."""
    named = [_in_state(run, one) for one in slots[:NAMED_MAX]]
    return phrase("and_others", items=named) if len(slots) > NAMED_MAX else named


def _in_state(run: RunData, slot: int) -> str | Phrase:
    """Return the name of a task instance with its state: `a (running)`."""
    name, state = run.name(slot), run.task_state(slot)
    started = state is not TaskState.NONE
    return phrase("task_in_state", task=name, state=state.value) if started else phrase("task_not_started", task=name)


# --- limits over all runs -------------------------------------------------------------------------------------------------


def limits(
    candidate: Candidate, run: RunData, admission: Admission, facts: SchedulerFacts, own: Mapping[Resource, int]
) -> list[Blocker]:
    """Return the limits that are reached; if none is, the candidates that come first and take the remaining slots."""
    dag_id, found = run.facts.dag_id, list[Blocker]()
    if facts.paused:
        command = f"tradewind dags unpause {dag_id}"
        found.append(Blocker("paused", phrase("paused"), phrase("ends_unpaused"), command=command, by_hand=True))
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
            reason = phrase("pool_missing", pool=owner)
            found.append(Blocker("pool", reason, phrase("ends_pool_created"), command=command, by_hand=True))
        elif max(0, capacity - used) < amount:
            found.append(_full(resource, used, capacity, amount))
    if not found and run.task_state(candidate.slot) is TaskState.SCHEDULED:
        found += _others_first(candidate, admission)
    return found


def _others_first(candidate: Candidate, admission: Admission) -> list[Blocker]:
    """Return a blocker if slots are free but others get them in the next step, for example after a limit was raised."""
    others = admission.admitted_before(candidate)
    if not others:
        return []
    reason = phrase("position", count=len(others))
    return [Blocker("position", reason, phrase("ends_one_ends"), resource=candidate.needs[0][0])]


def _full(resource: Resource, used: int, capacity: int, amount: int) -> Blocker:
    kind, owner, _ = resource
    ends = phrase("ends_holder")
    if kind == "parallelism":
        return Blocker("parallelism", phrase("parallelism", used=used, capacity=capacity), ends, resource=resource)
    if kind == "executor":
        reason = phrase("executor_full", executor=owner, used=used, capacity=capacity)
        return Blocker("parallelism", reason, ends, resource=resource)
    if kind == "pool":
        command = f"tradewind pools set {owner} {used + amount}"
        if amount > capacity:
            reason = phrase("pool_too_small", amount=amount, pool=owner, capacity=capacity)
            ends = phrase("ends_pool_larger")
            return Blocker("pool", reason, ends, command=command, by_hand=True, resource=resource)
        reason = phrase("pool_full", pool=owner, free=max(0, capacity - used), capacity=capacity, amount=amount)
        return Blocker("pool", reason, ends, command=command, resource=resource)
    if kind == "run":
        return Blocker("max_active_tasks", phrase("max_active_tasks", used=used, capacity=capacity), ends, resource=resource)
    if kind == "dag_tasks":
        reason = phrase("max_active_tasks_all_runs", dag=owner, used=used, capacity=capacity)
        return Blocker("max_active_tasks_all_runs", reason, ends, resource=resource)
    if kind.startswith("run_task:"):
        reason = phrase("max_active_tis_per_dagrun", used=used, capacity=capacity)
        return Blocker("max_active_tis_per_dagrun", reason, ends, resource=resource)
    task = kind.removeprefix("dag_task:")
    reason = phrase("max_active_tis_per_dag", used=used, capacity=capacity, task=task, dag=owner)
    return Blocker("max_active_tis_per_dag", reason, ends, resource=resource)
