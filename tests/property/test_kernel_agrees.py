"""The run machine and the slow reference agree, for any DAG and any sequence of events.

Random DAGs (every trigger rule, branches, setups, teardowns, fail_fast, retries, previous runs, task dates, empty tasks) are
driven through random events: late, repeated and stale reports, lost workers, retries that are due, timeouts, tasks that a
person runs by hand. After every event the rows of both have to be equal, a machine rebuilt from the rows has to equal the live
one, and a replay of the events has to give the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tradewind.kernel import events as e
from tradewind.kernel import reference
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.run_data import RunFacts
from tradewind.kernel.topology import Topology
from tradewind.model.branch import Branch
from tradewind.model.definition import (
    DagDefinition,
    GroupDefinition,
    MapConcat,
    MapLiteral,
    MapSource,
    MapXCom,
    MapZip,
    TaskDefinition,
    map_providers,
)
from tradewind.model.moments import DAY, SECOND
from tradewind.model.states import FINISHED, TASK_TRANSITIONS, Outcome, TaskState, TriggerRule
from tradewind.model.wait_plans import MomentPlan, TasksPlan, WaitPlan

DATE = 20_000 * DAY
PLAIN_RULES = [rule for rule in TriggerRule if rule is not TriggerRule.ALL_DONE_SETUP_SUCCESS]

INSTANCES_MAX = 200
"""Chains of mapped tasks multiply, and the reference needs the square of the number of instances for each event. Hypothesis drops a
run with more instances than this, and draws another."""

COMES_BACK = (Outcome.RESCHEDULE, Outcome.MISSING, Outcome.DEFERRED)
WAITS = [None, None, WaitPlan(MomentPlan("epoch", 0), DAY), WaitPlan(TasksPlan("up"), DAY)]


@st.composite
def dags(draw: st.DrawFn) -> DagDefinition:
    """Draw a DAG of up to nine tasks; the upstream tasks of each are drawn from those before it."""
    count = draw(st.integers(1, 9))
    with_mapping = draw(st.booleans())
    groups = draw(st.sampled_from([(), (), ("g",), ("g", "g.h")])) if with_mapping else ()
    group_sources: list[MapSource] = []
    with_waits = draw(st.sampled_from([False, False, True]))
    with_setups, with_past, with_dates = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    simple_rules = draw(st.booleans())
    tasks: list[TaskDefinition] = []
    for number in range(count):
        ids = [task.task_id for task in tasks]
        upstream = set(draw(st.lists(st.sampled_from(ids), unique=True, max_size=4))) if ids else set[str]()
        role = draw(st.sampled_from(["work", "work", "setup", "teardown"])) if with_setups else "work"
        rule = TriggerRule.ALL_SUCCESS if simple_rules else draw(st.sampled_from(list(TriggerRule)))
        if role == "teardown":
            rule = TriggerRule.ALL_DONE_SETUP_SUCCESS
            known_setups = [task.task_id for task in tasks if task.is_setup]
            upstream |= set(draw(st.lists(st.sampled_from(known_setups), max_size=2))) if known_setups else set()
        group = draw(st.sampled_from([None, *groups])) if groups else None
        mapped = with_mapping and group is None and draw(st.booleans())
        sources: tuple[MapSource, ...] = ()
        if mapped or (group is not None and not group_sources):
            outside = [one.task_id for one in tasks if one.group is None]
            sources = tuple(draw(st.lists(map_sources(outside), min_size=1, max_size=2)))
            if group is not None:
                group_sources = list(sources)
        providers = set(map_providers(sources if mapped else group_sources if group is not None else ()))
        if mapped or (group is not None and draw(st.booleans())):
            upstream |= providers
        past = draw(st.sampled_from(["", "", "depends", "downstream", "holds skips"])) if with_past else ""
        tasks.append(
            TaskDefinition(
                task_id=f"t{number}",
                upstream=tuple(sorted(upstream)),
                trigger_rule=rule,
                group=group,
                mapped=mapped,
                expand=sources if mapped else (),
                retries=draw(st.sampled_from([0, 0, 1, 2])),
                retry_delay=draw(st.sampled_from([0, 5, 60])) * SECOND,
                empty=role == "work" and draw(st.sampled_from([False, False, False, True])),
                wait=draw(st.sampled_from(WAITS)) if with_waits else None,
                is_setup=role == "setup",
                is_teardown=role == "teardown",
                on_failure_fail_dagrun=role == "teardown" and draw(st.booleans()),
                depends_on_past=past != "",
                wait_for_downstream=past == "downstream",
                wait_for_past_depends_before_skipping=past == "holds skips",
                start_date=draw(st.sampled_from([None, None, DATE - DAY, DATE + DAY])) if with_dates else None,
                end_date=draw(st.sampled_from([None, None, DATE - DAY, DATE + DAY])) if with_dates else None,
            )
        )
    begins = draw(st.sampled_from([None, DATE - DAY, DATE + DAY])) if with_dates else None
    all_groups = (
        GroupDefinition("g", mapped=True, expand=tuple(group_sources) or (MapLiteral(2),)),
        GroupDefinition("g.h", parent="g"),
    )
    return DagDefinition(
        "d",
        tuple(tasks),
        groups=all_groups[: len(groups)],
        start_date=begins,
        fail_fast=draw(st.sampled_from([False, False, True])),
    )


def map_sources(tasks: list[str]) -> st.SearchStrategy[MapSource]:
    """Draw what a task is mapped over: short lists, return values, and combinations of both."""
    simple: st.SearchStrategy[MapSource] = st.builds(MapLiteral, st.integers(0, 3))
    if tasks:
        simple |= st.builds(MapXCom, st.sampled_from(tasks))
    pairs = st.tuples(simple, simple)
    return simple | simple | st.builds(MapZip, pairs, st.booleans()) | st.builds(MapConcat, pairs)


def split_expansions(decisions: list[e.Decision]) -> list[e.Decision]:
    """Split expansions into single instances: how many a decision has depends on what else the call did."""
    found: list[e.Decision] = []
    for decision in decisions:
        if isinstance(decision, e.Expanded):
            found += [
                decision._replace(slot=decision.slot + i, first_index=decision.first_index + i, added=1)
                for i in range(decision.added)
            ]
        else:
            found.append(decision)
    return found


class RunHistory:
    """One run, driven in the machine and in the reference at the same time."""

    def __init__(self, definition: DagDefinition, budget: int, chance: Random) -> None:
        self.definition = definition
        self.topology = Topology(definition)
        date = DATE if chance.random() < 0.9 else None
        self.facts = RunFacts(1, "d", date, requeue_limit=1, budget=budget)
        self.machine = RunMachine(self.topology, self.facts)
        self.snapshot = reference.Snapshot(definition, now=1, logical_date=date, requeue_limit=1)
        self.chance = chance
        self.providers = {self.topology.ids[task] for task in self.topology.mapped_over}
        self.now = DATE
        self.story: list[tuple[e.Event, list[e.Decision]]] = []
        self.interrupted: list[e.Event] = []
        """Events during which the machine was rebuilt."""
        self.woken: set[e.TimerDue] = set()

    # --- one event ------------------------------------------------------------------------------------------------

    def apply(self, event: e.Event) -> None:
        """Give an event to both, and compare their decisions."""
        assume(self.machine.instances.total <= INSTANCES_MAX)
        immediate = self.machine.apply(event, settle=False)
        while self.machine.sweeps:
            if self.chance.random() < 0.3:
                self.machine = self._rebuilt()
                if self.topology.domains:
                    self.interrupted.append(event)
                if isinstance(event, e.RunStarted | e.RunTimedOut):  # the scheduler notices these anew
                    immediate += self.machine.apply(event, settle=False)
            immediate += self.machine.settle(event.at, 0)
        refused = any(isinstance(decision, e.Refusal) for decision in immediate)
        assert reference.apply_event(self.snapshot, event) is not refused, (event, immediate)
        self._record_slots()
        expected = reference.decide_all(self.snapshot)
        reference.apply_decisions(self.snapshot, expected)
        settled = self.machine.settle(event.at)
        while self.machine.unsettled:
            settled += self.machine.settle(event.at)
        assert self._as_decided(settled) == expected
        self._record_slots()
        self.story.append((event, immediate + settled))
        self._compare_rows()
        self._moves_are_legal(immediate + settled)
        if not self.machine.ended:
            self._restart()

    def _record_slots(self) -> None:
        """Give the reference the slots of further instances of mapped tasks."""
        instances = self.machine.instances
        for slot in range(self.topology.count, instances.total):
            self.snapshot.slots[slot] = (self.topology.ids[instances.task(slot)], instances.index(slot))

    def _key(self, slot: int) -> tuple[str, int]:
        instances = self.machine.instances
        return self.topology.ids[instances.task(slot)], instances.index(slot)

    def _fixed(self, task: int) -> bool:
        """Whether the lists are literal: the reference expands these when the run starts, without a decision."""
        return self.topology.domains[self.topology.domain_of[task]].fixed is not None

    def _as_decided(self, decisions: list[e.Decision]) -> frozenset[reference.Decision]:
        return frozenset(
            reference.RunDecision(d.success)
            if isinstance(d, e.RunEnds)
            else reference.TaskDecision(*self._key(d.slot), d.after)
            if isinstance(d, e.Move)
            else reference.Expansion(self.topology.ids[d.task], d.length)
            for d in decisions
            if isinstance(d, e.RunEnds | e.Move) or (isinstance(d, e.Expanded) and not self._fixed(d.task))
        )

    def _compare_rows(self) -> None:
        assert len(self.snapshot.rows) == self.machine.instances.total
        for slot in range(self.machine.instances.total):
            task_id = self._key(slot)
            row, mine = self.snapshot.rows[task_id], self.machine.row(slot)
            assert (
                self.machine.task_state(slot),
                mine.fence,
                mine.try_number,
                mine.resume,
                mine.requeues,
                mine.due_at or None,
            ) == (
                row.state,
                row.fence,
                row.try_number,
                row.resume,
                row.requeues,
                row.due_at,
            ), task_id
        assert self.machine.ended == (self.snapshot.success is not None)

    def _moves_are_legal(self, decisions: list[e.Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, e.Move):
                assert decision.after in TASK_TRANSITIONS[decision.before]

    # --- restart and replay -----------------------------------------------------------------------------------------

    def _restart(self) -> None:
        """Check that a machine built from the rows equals the machine that wrote them, and decides nothing more."""
        live, again = self.machine, self._rebuilt()
        assert again.settle(self.now) == []
        assert not again.unsettled
        for name in (
            "state",
            "fence",
            "tries",
            "counts",
            "unfinished",
            "active",
            "skipped_by",
            "scope_left",
            "due",
            "resume",
            "requeues",
            "skipped_by_index",
            "lengths",
            "extra_upstream",
        ):
            assert getattr(again, name) == getattr(live, name), name
        if self.chance.random() < 0.2:
            self.machine = again

    def _rebuilt(self) -> RunMachine:
        """Return the machine that a restart builds from the rows."""
        live = self.machine
        rows = [live.row(slot) for slot in range(live.instances.total)]
        again = RunMachine.from_rows(self.topology, self.facts, rows)
        again.past_allowed.update(live.past_allowed)
        return again

    def replay(self) -> None:
        """Check that the same events give the same decisions in a machine that settles after each event."""
        machine = RunMachine(self.topology, self.facts)
        for event, decisions in self.story:
            decided = machine.apply(event)
            while machine.unsettled:
                decided += machine.settle(event.at)
            if event in self.interrupted:  # what grows after a restart comes in another order
                assert sorted(map(repr, split_expansions(decided))) == sorted(map(repr, split_expansions(decisions))), event
            else:
                assert split_expansions(decided) == split_expansions(decisions), event

    # --- a history --------------------------------------------------------------------------------------------------

    def run_through(self, steps: int) -> None:
        """Apply random events, then let everything succeed: the run has to end."""
        self.apply(e.RunStarted(self.now))
        for _ in range(steps):
            # a microsecond more each time: what ends apart is not due together, for each is woken by an event of its own
            self._timers(self.now + self.chance.choice([0, 1, 5, 30]) * SECOND + 1)
            event = self._random_event()
            if event is not None:
                self.apply(event)
        for slot in self.topology.past_tasks:
            self.apply(e.PastChanged(slot, True, self.now))
        rounds = 0
        while not self.machine.ended:
            rounds += 1
            assert rounds < 100, "the run never ends"
            for slot in self._in(TaskState.SCHEDULED):
                self.apply(e.Admitted(slot, self.now))
            for slot in self._in(TaskState.QUEUED):
                self.apply(e.AttemptStarted(slot, self.machine.fence[slot], self.now))
            for slot in self._in(TaskState.RUNNING):
                self.apply(e.AttemptEnded(slot, self.machine.fence[slot], Outcome.SUCCESS, self.now, length=self._length(slot)))
            for slot in (*self._in(TaskState.DEFERRED), *self._in(TaskState.AWAITING_INPUT)):
                self.apply(e.WaitOver(slot, self.machine.fence[slot], self.now))
            self._timers(self.now + 60 * SECOND)
        self.replay()

    def _in(self, state: TaskState) -> list[int]:
        return [slot for slot in range(self.machine.instances.total) if self.machine.task_state(slot) is state]

    def _timers(self, until: int) -> None:
        """Advance to `until`, and fire the timers before it, in order."""
        while not self.machine.ended and (soon := min(self._waking(until), default=None)) is not None:
            self.now = soon[0]
            self.woken.add(e.TimerDue(soon[1], soon[0]))
            self.apply(e.TimerDue(soon[1], soon[0]))
        self.now = until

    def _waking(self, until: int) -> list[tuple[int, int]]:
        """Return (due, slot) up to `until`, without timers that have fired (the previous run may block their tasks)."""
        asleep = (*self._in(TaskState.UP_FOR_RETRY), *self._in(TaskState.UP_FOR_RESCHEDULE))
        due = [(self.machine.due[slot], slot) for slot in asleep]
        return [(moment, slot) for moment, slot in due if moment <= until and e.TimerDue(slot, moment) not in self.woken]

    def _random_event(self) -> e.Event | None:
        chance, machine = self.chance, self.machine
        slot = chance.randrange(machine.instances.total)
        fence = machine.fence[slot] - (1 if chance.random() < 0.05 else 0)
        by_state: dict[TaskState, Callable[[], e.Event]] = {
            TaskState.SCHEDULED: lambda: e.Admitted(slot, self.now),
            TaskState.QUEUED: lambda: self._of_queued(slot, fence),
            TaskState.RUNNING: lambda: self._end(slot, fence),
            TaskState.DEFERRED: lambda: self._of_deferred(slot, fence),
            TaskState.AWAITING_INPUT: lambda: self._of_deferred(slot, fence),
        }
        state = machine.task_state(slot)
        roll = chance.random()
        if roll < 0.004:
            return None if machine.ended else e.RunTimedOut(self.now)
        if self.topology.past_tasks and roll < 0.1:
            return e.PastChanged(chance.choice(self.topology.past_tasks), chance.random() < 0.6, self.now)
        if roll > 0.94:
            return e.RunNow(slot, self.now, "a person asked")
        if state in by_state:
            return by_state[state]()
        # what does not apply: late, repeated and stale news
        if roll < 0.2 and (state in FINISHED or fence):
            late: list[e.Event] = [e.AttemptEnded(slot, max(fence, 0), Outcome.SUCCESS, self.now), e.Admitted(slot, self.now)]
            return chance.choice(late)
        return None

    def _of_queued(self, slot: int, fence: int) -> e.Event:
        roll = self.chance.random()
        if roll < 0.8:
            return e.AttemptStarted(slot, fence, self.now)
        if roll < 0.9:
            return e.AttemptVanished(slot, fence, self.now)
        return self._end(slot, fence)

    def _of_deferred(self, slot: int, fence: int) -> e.Event:
        """Return the end of a wait: the task continues, or ends."""
        ends = [None, None, Outcome.SUCCESS, Outcome.SKIPPED, Outcome.FAILED, Outcome.FAILED_FINAL]
        return e.WaitOver(slot, fence, self.now, self.chance.choice(ends))

    def _end(self, slot: int, fence: int) -> e.AttemptEnded:
        outcome = self.chance.choice([*[Outcome.SUCCESS] * 5, Outcome.FAILED, Outcome.FAILED, *Outcome])
        later = self.now + self.chance.choice([0, 7, 40]) * SECOND if outcome in COMES_BACK else None
        branch = self._branch(slot) if outcome is Outcome.SUCCESS and self.chance.random() < 0.35 else None
        override = self.chance.choice([None, None, 3 * SECOND]) if outcome is Outcome.FAILED else None
        length = self._length(slot) if outcome is Outcome.SUCCESS else None
        return e.AttemptEnded(
            slot, fence, outcome, self.now, reschedule_at=later, retry_delay=override, branch=branch, length=length
        )

    def _length(self, slot: int) -> int | None:
        """Return the length that a task offers to mapped tasks."""
        if self.topology.ids[self.machine.instances.task(slot)] not in self.providers:
            return None
        return self.chance.choice([None, 0, 1, 2, 3])

    def _branch(self, slot: int) -> Branch:
        task = self.machine.instances.task(slot)
        children = [self.topology.ids[child] for child in self.topology.downstream(task)]
        some = tuple(child for child in children if self.chance.random() < 0.5)
        return self.chance.choice(
            [Branch("follow", some), Branch("skip", some), Branch("stop"), Branch("stop", direct_only=True)]
        )


@settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dags(), st.integers(0, 60), st.sampled_from([1, 3, 2000]), st.integers(0, 2**32))
def test_the_machine_agrees_with_the_reference(definition: DagDefinition, steps: int, budget: int, seed: int) -> None:
    """Machine and reference agree after every event, in every row, through restarts and in a replay."""
    RunHistory(definition, budget, Random(seed)).run_through(steps)
