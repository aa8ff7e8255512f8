"""Small DAG definitions, and a driver that feeds a run machine with events."""

from __future__ import annotations

from typing import Any

from tradewind.kernel import events as e
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.run_data import RunFacts
from tradewind.kernel.topology import Topology
from tradewind.model.branch import Branch
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import DAY, SECOND
from tradewind.model.states import Outcome, TaskState, TriggerRule, WeightRule

DATE = 20_000 * DAY


def task(task_id: str, *upstream: str, **more: Any) -> TaskDefinition:
    """Return a task definition; trigger and weight rules may be given by name."""
    more["trigger_rule"] = TriggerRule(more.get("trigger_rule", "all_success"))
    more["weight_rule"] = WeightRule(more.get("weight_rule", "downstream"))
    return TaskDefinition(task_id=task_id, upstream=tuple(sorted(upstream)), **more)


def setup(task_id: str, *upstream: str, **more: Any) -> TaskDefinition:
    return task(task_id, *upstream, is_setup=True, **more)


def teardown(task_id: str, *upstream: str, **more: Any) -> TaskDefinition:
    return task(task_id, *upstream, is_teardown=True, trigger_rule=TriggerRule.ALL_DONE_SETUP_SUCCESS, **more)


def dag(*tasks: TaskDefinition, **more: Any) -> DagDefinition:
    return DagDefinition(dag_id="d", tasks=tasks, **more)


def fan(width: int) -> DagDefinition:
    """Return a DAG of one task, `width` tasks after it, and one task after these."""
    middle = tuple(f"m{number}" for number in range(width))
    return dag(task("first"), *(task(name, "first") for name in middle), task("last", *middle))


class MachineDriver:
    """Drives one run by task ids; each event takes one second. Every decision is kept in `decisions`."""

    def __init__(self, *tasks: TaskDefinition, budget: int = 2000, requeue_limit: int = 3, **dag_options: Any) -> None:
        self.topology = Topology(dag(*tasks, **dag_options))
        self.facts = RunFacts(1, "d", DATE, requeue_limit, budget)
        self.machine = RunMachine(self.topology, self.facts)
        self.now = DATE
        self.decisions: list[e.Decision] = []

    def begin(self) -> MachineDriver:
        self.feed(e.RunStarted(self._tick()))
        return self

    def feed(self, event: e.Event, *, settle: bool = True) -> list[e.Decision]:
        out = self.machine.apply(event, settle=settle)
        self.decisions += out
        return out

    def start(self, *task_ids: str) -> MachineDriver:
        """Admit these tasks and start their attempts."""
        for task_id in task_ids:
            self.admit(task_id)
            slot = self.slot(task_id)
            self.feed(e.AttemptStarted(slot, self.machine.fence[slot], self._tick()))
        return self

    def admit(self, task_id: str) -> MachineDriver:
        self.feed(e.Admitted(self.slot(task_id), self._tick()))
        return self

    def end(self, task_id: str, outcome: Outcome = Outcome.SUCCESS, **more: Any) -> list[e.Decision]:
        slot = self.slot(task_id)
        return self.feed(e.AttemptEnded(slot, self.machine.fence[slot], outcome, self._tick(), **more))

    def run(self, task_id: str, outcome: Outcome = Outcome.SUCCESS, branch: Branch | None = None) -> list[e.Decision]:
        """Run one whole attempt of a task."""
        return self.start(task_id).end(task_id, outcome, branch=branch)

    def vanish(self, task_id: str) -> list[e.Decision]:
        slot = self.slot(task_id)
        return self.feed(e.AttemptVanished(slot, self.machine.fence[slot], self._tick(), "its host died"))

    def wake(self, task_id: str) -> list[e.Decision]:
        """Fire the timer of a task at its moment."""
        slot = self.slot(task_id)
        self.now = max(self.now, self.machine.due[slot])
        return self.feed(e.TimerDue(slot, self.now))

    def past(self, task_id: str, allowed: bool) -> list[e.Decision]:
        return self.feed(e.PastChanged(self.slot(task_id), allowed, self._tick()))

    def slot(self, task_id: str) -> int:
        return self.topology.index[task_id]

    def state(self, task_id: str) -> TaskState:
        return self.machine.task_state(self.slot(task_id))

    def states(self) -> dict[str, str]:
        return {task_id: self.state(task_id).value for task_id in self.topology.ids}

    def ending(self) -> e.RunEnds | None:
        """Return the end of the run, which comes at most once; None while the run continues."""
        verdicts = [decision for decision in self.decisions if isinstance(decision, e.RunEnds)]
        assert len(verdicts) <= 1
        return verdicts[0] if verdicts else None

    def restarted(self) -> MachineDriver:
        """Return a driver of a machine that is rebuilt from the rows."""
        twin = MachineDriver.__new__(MachineDriver)
        twin.topology, twin.facts, twin.now, twin.decisions = self.topology, self.facts, self.now, []
        rows = [self.machine.row(slot) for slot in range(self.topology.count)]
        twin.machine = RunMachine.from_rows(self.topology, self.facts, rows)
        return twin

    def _tick(self) -> int:
        self.now += SECOND
        return self.now


def moves(decisions: list[e.Decision]) -> list[tuple[int, str, str]]:
    """Return (slot, before, after) of each step."""
    return [(d.slot, d.before.value, d.after.value) for d in decisions if isinstance(d, e.Move)]


def refusal(decisions: list[e.Decision]) -> str:
    """Return the cause of the refusal, which has to be the only decision."""
    (only,) = decisions
    assert isinstance(only, e.Refusal)
    return only.cause
