"""A run in any state is verified against random definitions of its DAG, again and again, with restarts in between.

For any definitions: all tasks of the newer one have a row, tasks that it does not have are removed or still run, a machine that is
built from the rows decides nothing more, and the run ends when everything succeeds.
"""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.test_kernel_agrees import RunHistory, dags
from tests.unit.kernel.machine_driver import MachineDriver, dag, task
from tradewind.kernel import events as e
from tradewind.kernel.integrity import VerifiedVersion
from tradewind.kernel.layout import fits, layout
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.run_data import RunFacts
from tradewind.kernel.topology import Topology
from tradewind.model.definition import DagDefinition, MapLiteral
from tradewind.model.rows import TaskRow
from tradewind.model.states import TASK_TRANSITIONS, Outcome, TaskState

SAME = (
    "state",
    "fence",
    "tries",
    "unfinished",
    "active",
    "scope_left",
    "due",
    "resume",
    "requeues",
    "lengths",
    "extra_upstream",
)
LEFT = {TaskState.REMOVED, TaskState.RUNNING, TaskState.RESTARTING}


class EditedRun:
    """One run, of which only the rows survive a rebuild."""

    def __init__(self, machine: RunMachine, definition: DagDefinition, chance: Random, now: int) -> None:
        self.machine, self.definition, self.chance, self.now = machine, definition, chance, now
        self.born = set(range(machine.instances.total))
        self.verified = True

    def rows(self) -> list[TaskRow]:
        """The rows that the store holds."""
        return [self.machine.row(slot) for slot in sorted(self.born)]

    def take(self, decisions: list[e.Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, e.Added):
                self.born.add(decision.slot)
            elif isinstance(decision, e.Expanded):
                self.born.update(range(decision.slot, decision.slot + decision.added))
            elif isinstance(decision, e.Verified):
                assert not self.verified
                self.verified = True
            elif isinstance(decision, e.Move):
                assert decision.after in TASK_TRANSITIONS[decision.before]
                assert decision.slot in self.born
                gone = decision.slot in self.machine.gone
                assert not gone or decision.after is TaskState.REMOVED, "what is not in the DAG never fails"

    def rebuild(self, definition: DagDefinition, before: DagDefinition | None) -> RunMachine:
        rows = self.rows()
        shape = Topology(definition) if fits(definition, rows) else Topology(definition, layout(definition, rows))
        earlier = None if before is None else VerifiedVersion(1, before)
        machine = RunMachine.from_rows(shape, self.machine.facts, rows, earlier)
        machine.past_allowed.update(dict.fromkeys(shape.past_tasks, True))
        return machine

    def edit(self, definition: DagDefinition) -> None:
        before, self.verified = self.definition, False
        self.machine = self.rebuild(definition, before)
        self.take(self.machine.apply(e.RunStarted(self.now), settle=False))
        while self.machine.unsettled:
            if not self.verified and self.chance.random() < 0.3:
                self.machine = self.rebuild(definition, before)
                self.take(self.machine.apply(e.RunStarted(self.now), settle=False))
            self.take(self.machine.settle(self.now))
        self.definition = definition
        assert self.verified
        self.check()

    def check(self) -> None:
        machine = self.machine
        assert self.born == set(range(machine.instances.total))
        assert {machine.task_id(slot) for slot in machine.topology.numbers} == {task.task_id for task in self.definition.tasks}
        assert {machine.task_state(slot) for slot in machine.gone} <= LEFT
        if not machine.ended:
            again = self.rebuild(self.definition, None)
            assert again.settle(self.now) == []
            for name in SAME:
                assert getattr(again, name) == getattr(machine, name), name
            for code, counts in machine.counts.items():
                assert [again.counts[code][n] for n in again.topology.numbers] == [counts[n] for n in machine.topology.numbers]

    def go_on(self, event: e.Event) -> None:
        self.take(self.machine.apply(event))
        while self.machine.unsettled:
            self.take(self.machine.settle(event.at))

    def end(self) -> None:
        rounds = 0
        while not self.machine.ended:
            rounds += 1
            assert rounds < 100, "the run never ends"
            self.now += 3_600_000_000
            machine = self.machine
            for slot in range(machine.instances.total):
                state, fence = machine.task_state(slot), machine.fence[slot]
                if state is TaskState.SCHEDULED:
                    self.go_on(e.Admitted(slot, self.now))
                elif state is TaskState.QUEUED:
                    self.go_on(e.AttemptStarted(slot, fence, self.now))
                elif state is TaskState.RUNNING:
                    self.go_on(e.AttemptEnded(slot, fence, Outcome.SUCCESS, self.now, length=self.chance.randrange(3)))
                elif state is TaskState.RESTARTING:
                    self.go_on(e.AttemptVanished(slot, fence, self.now))
                elif state in (TaskState.DEFERRED, TaskState.AWAITING_INPUT):
                    self.go_on(e.WaitOver(slot, fence, self.now, Outcome.SUCCESS))
                elif state in (TaskState.UP_FOR_RETRY, TaskState.UP_FOR_RESCHEDULE):
                    self.go_on(e.TimerDue(slot, self.now))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(dags(), min_size=2, max_size=4), st.integers(0, 12), st.sampled_from([1, 3, 100]), st.integers(0, 10**6))
def test_a_run_can_be_verified_against_any_definition(
    definitions: list[DagDefinition], steps: int, budget: int, seed: int
) -> None:
    chance = Random(seed)
    history = RunHistory(definitions[0], 10**6, chance)
    history.apply(e.RunStarted(history.now))
    for _ in range(steps):
        event = history._random_event()
        if event is not None and not history.machine.ended:
            history.apply(event)
    if history.machine.ended:
        return
    history.machine.facts = RunFacts(1, "d", history.facts.logical_date, requeue_limit=1, budget=budget)
    run = EditedRun(history.machine, definitions[0], chance, history.now + 1)
    for definition in definitions[1:]:
        if not run.machine.ended:
            run.edit(definition)
    run.end()


def test_a_longer_list_gives_a_task_that_must_wait_its_further_instances() -> None:
    """A scheduled mapped task gets an upstream task and a longer list: it has to wait, but its new instances exist at once."""
    first = dag(task("a"), task("m", mapped=True, expand=(MapLiteral(1),)))
    driver = MachineDriver(*first.tasks).begin()
    run = EditedRun(driver.machine, first, Random(0), driver.now + 1)
    run.edit(dag(task("a"), task("m", "a", mapped=True, expand=(MapLiteral(3),))))
    assert [run.machine.name(slot) for slot in range(run.machine.instances.total)] == ["a", "m[0]", "m[1]", "m[2]"]
    assert {run.machine.task_state(slot) for slot in (1, 2, 3)} == {TaskState.NONE}
    run.end()
