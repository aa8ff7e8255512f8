"""Why a task instance is not running: one sentence for each thing in the way, from the rules that decide.

Everything is handed in, nothing is asked; the answer is ordered from what lies nearest to the task to what lies outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tradewind.kernel.admission import PARALLELISM, Admission
from tradewind.kernel.expansion import relevant
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.rules import branch_memory, task_dates
from tradewind.kernel.trigger_rules import RUN, decide, sentence
from tradewind.model.moments import iso
from tradewind.model.states import FINISHED, TaskState


class Surroundings(NamedTuple):
    """What is in the way outside of the run."""

    paused: bool
    executor_ready: bool
    requested_at: int
    trouble: str | None = None
    """Why the store cannot be written, or None."""


class Blocker(NamedTuple):
    """One thing in the way. `rule` is a word for programs, `sentence` is for people."""

    rule: str
    sentence: str


def explain(machine: RunMachine, slot: int, needs: object, admission: Admission, around: Surroundings) -> list[Blocker]:
    """Every blocker of a task instance of a running run; empty: the next step starts it.

    Args:
        needs: (resource, amount) pairs that its attempt would take, besides parallelism.
    """
    state = machine.task_state(slot)
    found: list[Blocker] = []
    if around.trouble is not None:
        found.append(Blocker("store", f"Nothing can be written now: {around.trouble}."))
    if state in FINISHED:
        reason = machine.reasons.get(slot)
        found.append(Blocker("finished", f"It is {state.value}{': ' + reason if reason else ''}. Clear it to run it again."))
    elif state is TaskState.RUNNING:
        found.append(Blocker("running", f"It is running since {iso(machine.started_at[slot])}."))
    elif state is TaskState.RESTARTING:
        found.append(Blocker("restarting", "It was cleared while it ran; its attempt is being stopped first."))
    elif state is TaskState.QUEUED:
        since = iso(machine.queued_at[slot])
        found.append(Blocker("queued", f"It was handed to the executor at {since} and has not started yet."))
        if not around.executor_ready:
            found.append(Blocker("no_worker", "No worker host is connected; it starts when one is."))
    elif state is TaskState.SCHEDULED:
        found += _admission(slot, machine, needs, admission, around)
    else:
        found += dependencies(machine, slot, around.requested_at)
        if around.paused:
            found.append(Blocker("paused", "Its DAG is paused: unpause it."))
    return found


def outside_its_dates(machine: RunMachine, slot: int) -> list[Blocker]:
    """Do the task's own dates exclude the run's? Such a task instance is `removed` when its run starts."""
    date, task = machine.facts.logical_date, machine.instances.task(slot)
    if date is None:
        return []
    return [
        Blocker("dates", f"It has no part in this run: {why}.")
        for number, why in task_dates.outside(machine.topology, date)
        if number == task
    ]


def dependencies(machine: RunMachine, slot: int, now: int) -> list[Blocker]:
    """What has to happen in this run, in the one before it, or in time, before the task instance is scheduled."""
    topology = machine.topology
    number = machine.instances.task(slot)
    task = topology.tasks[number]
    found: list[Blocker] = []
    due = machine.due.get(slot, 0)
    state = machine.task_state(slot)
    if due > now and state in (TaskState.UP_FOR_RETRY, TaskState.UP_FOR_RESCHEDULE):
        what = "its next try" if state is TaskState.UP_FOR_RETRY else "being called again"
        reason = machine.reasons.get(slot)
        found.append(Blocker("due", f"It waits for {what} at {iso(due)}{f' ({reason})' if reason else ''}."))
    if branch_memory.skips(machine, slot, number):
        found.append(Blocker("branch", f"It is going to be skipped: {branch_memory.sentence(machine, slot)}."))
    tally = machine.tally(slot)
    if decide(task.trigger_rule, tally) != RUN:
        found.append(Blocker("trigger_rule", _upstream(machine, slot, sentence(task.trigger_rule, tally))))
    for setup in _instances(machine, slot, topology.setups_of.get(number, ())):
        if machine.task_state(setup) is not TaskState.SUCCESS:
            found.append(Blocker("setup", f"It waits for the setup {machine.name(setup)}, which is {_named(machine, setup)}."))
    for other in _instances(machine, slot, topology.teardown_scope.get(number, ())):
        if machine.task_state(other) not in FINISHED:
            found.append(
                Blocker("teardown", f"It tears down what {machine.name(other)} still uses ({_named(machine, other)}).")
            )
    found += _mapping(machine, number)
    if (task.depends_on_past or task.wait_for_downstream) and not machine.past_allowed.get(number, False):
        found.append(Blocker("past", machine.past_why.get(number) or "The previous run has not been looked at yet."))
    return found


def _instances(machine: RunMachine, slot: int, tasks: Iterable[int]) -> list[int]:
    """The instances of other tasks that concern this one."""
    return [one for task in tasks for one in relevant(machine, slot, task)]


def _mapping(machine: RunMachine, task: int) -> list[Blocker]:
    """What keeps a mapped task from its instances."""
    if task in machine.growing:
        have, want = len(machine.instances.slots(task)), machine.growing[task]
        return [Blocker("growing", f"Its task instances are being written: {have} of {want} exist.")]
    domain = machine.topology.domain_of.get(task)
    if domain is None or task in machine.instances.of:
        return []
    late = [
        machine.name(slot)
        for provider in machine.topology.domains[domain].providers
        for slot in machine.instances.slots(provider)
        if machine.task_state(slot) not in FINISHED
    ]
    if not late:
        return []
    more = f" and {len(late) - 3} more" if len(late) > 3 else ""
    return [Blocker("list", f"It is mapped over a list that is not known yet: {', '.join(late[:3])}{more} has to end first.")]


def _upstream(machine: RunMachine, slot: int, text: str) -> str:
    """The trigger rule's sentence, with the first upstream tasks that have not ended."""
    above = machine.topology.upstream(machine.instances.task(slot))
    open_ones = [up for up in _instances(machine, slot, above) if machine.task_state(up) not in FINISHED]
    if not open_ones:
        return text
    named = ", ".join(f"{machine.name(up)} ({_named(machine, up)})" for up in open_ones[:3])
    more = f" and {len(open_ones) - 3} more" if len(open_ones) > 3 else ""
    return f"{text} Not ended: {named}{more}."


def _named(machine: RunMachine, slot: int) -> str:
    state = machine.task_state(slot)
    return "not started" if state is TaskState.NONE else state.value


def _admission(slot: int, machine: RunMachine, needs: object, admission: Admission, around: Surroundings) -> list[Blocker]:
    found: list[Blocker] = []
    for resource, amount in needs if isinstance(needs, tuple) else ():
        kind, owner, _ = resource
        capacity = admission.capacity(resource)
        if kind == "dag":
            if around.paused:
                found.append(Blocker("paused", "Its DAG is paused: unpause it."))
        elif capacity is None:
            found.append(
                Blocker("pool", f"There is no pool {owner!r}. Create it: tradewind pools set {owner} SLOTS DESCRIPTION")
            )
        elif admission.free(resource) < amount:
            found.append(Blocker(*_full(kind, str(owner), admission.used(resource), capacity, amount)))
    if admission.free(PARALLELISM) < 1:
        limit = admission.capacity(PARALLELISM)
        found.append(
            Blocker("parallelism", f"core.parallelism is reached: {admission.used(PARALLELISM)} of {limit} attempts are live.")
        )
    ahead = admission.ahead_of(machine.facts.number, slot)
    if found and ahead:
        found.append(Blocker("position", f"{ahead} task instances that want the same pool come before it."))
    return found


def _full(kind: str, owner: str, used: int, capacity: int, amount: int) -> tuple[str, str]:
    if kind == "pool":
        if amount > capacity:
            return kind, f"It wants {amount} slots, but pool {owner} has only {capacity}: it can never start."
        return kind, f"Pool {owner} has {capacity - used} of {capacity} slots free; it wants {amount}."
    if kind == "run":
        return "max_active_tasks", f"The run has {used} live task instances; its max_active_tasks is {capacity}."
    if kind == "run_task":
        return "max_active_tis_per_dagrun", f"{used} of {capacity} allowed instances of this task are live in this run."
    task = kind.removeprefix("dag_task:")
    return "max_active_tis_per_dag", f"{used} of {capacity} allowed instances of {task} are live over all runs of {owner}."
