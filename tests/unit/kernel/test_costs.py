"""What a run costs: decisions per call, bytes per task, time per task."""

from __future__ import annotations

import sys
import time

import pytest

from tests.unit.kernel.machine_driver import DATE, MachineDriver, fan, task
from tradewind.kernel import events as e
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.run_data import RunData, RunFacts
from tradewind.kernel.topology import Topology
from tradewind.model.states import Outcome, TaskState


def live_through(topology: Topology) -> RunMachine:
    """Run every task to success, one event at a time, in calls of bounded size."""
    machine = RunMachine(topology, RunFacts(1, "d", DATE))
    todo = machine.apply(e.RunStarted(DATE))
    while todo or machine.unsettled:
        following: list[e.Decision] = []
        for decision in todo:
            if isinstance(decision, e.Move) and decision.after is TaskState.SCHEDULED:
                following += machine.apply(e.Admitted(decision.slot, DATE))
                fence = machine.fence[decision.slot]
                following += machine.apply(e.AttemptStarted(decision.slot, fence, DATE))
                following += machine.apply(e.AttemptEnded(decision.slot, fence, Outcome.SUCCESS, DATE))
        machine.mark_written()
        following += machine.settle(DATE)
        todo = following
    return machine


@pytest.mark.parametrize("budget", [1, 7, 100])
def test_no_call_exceeds_its_budget(budget: int) -> None:
    """A wave of 500 takes several calls, `unsettled` says that more follows, and nothing is lost or decided twice."""
    driver = MachineDriver(*fan(500).tasks, budget=budget).begin()
    out = driver.run("first")
    assert len(out) <= max(budget, 1)
    chunks = [out]
    while driver.machine.unsettled:
        chunks.append(driver.machine.settle(driver.now))
        assert 0 < len(chunks[-1]) <= budget
    scheduled = [d.slot for chunk in chunks for d in chunk if isinstance(d, e.Move) and d.after is TaskState.SCHEDULED]
    assert scheduled == list(range(1, 501))


def test_events_between_two_calls_are_applied() -> None:
    """A verdict in the backlog is not applied to a task instance that has ended meanwhile."""
    driver = MachineDriver(
        task("bad"), task("first"), *(task(f"m{i}", "first") for i in range(10)), budget=3, fail_fast=True
    ).begin()
    driver.start("bad")
    driver.run("first")
    assert driver.machine.unsettled
    driver.end("bad", Outcome.FAILED)
    while driver.machine.unsettled:
        driver.decisions += driver.machine.settle(driver.now)
    assert {driver.state(f"m{i}") for i in range(10)} == {TaskState.SKIPPED}
    assert driver.ending() is not None


def test_a_restart_between_two_calls_loses_nothing() -> None:
    """The backlog is not stored: it follows from the rows."""
    driver = MachineDriver(*fan(20).tasks, budget=5).begin()
    driver.run("first")
    twin = driver.restarted()
    while twin.machine.unsettled:
        twin.machine.settle(twin.now)
    assert sum(twin.machine.task_state(slot) is TaskState.SCHEDULED for slot in range(22)) == 20


def test_a_batch_is_settled_once() -> None:
    """The immediate effects of all events come first, then everything that follows from them."""
    driver = MachineDriver(task("a"), task("b"), task("c", "a", "b")).begin().start("a", "b")
    for slot in (0, 1):
        out = driver.feed(e.AttemptEnded(slot, 1, Outcome.SUCCESS, driver.now), settle=False)
        assert [d.slot for d in out if isinstance(d, e.Move)] == [slot]
    assert driver.machine.unsettled
    (step,) = driver.machine.settle(driver.now)
    assert isinstance(step, e.Move)
    assert (step.slot, step.after) == (2, TaskState.SCHEDULED)


def test_settling_wave_by_wave() -> None:
    """One wave is one pass of Airflow's scheduler: each empty task in a row takes one wave."""
    driver = (
        MachineDriver(task("a"), *(task(f"e{i}", f"e{i - 1}" if i else "a", empty=True) for i in range(4))).begin().start("a")
    )
    driver.feed(e.AttemptEnded(0, 1, Outcome.SUCCESS, driver.now), settle=False)
    for wave in range(4):
        steps = [d.slot for d in driver.machine.settle(driver.now, waves=1) if isinstance(d, e.Move)]
        assert steps == [wave + 1]
    assert driver.machine.ended or driver.machine.settle(driver.now)


@pytest.mark.parametrize("stage", ["fresh", "scheduled", "ended"])
def test_a_run_takes_at_most_100_bytes_a_task(stage: str) -> None:
    """Arrays and dictionaries of one machine, without the topology that all runs share."""
    count = 20_000
    topology = Topology(fan(count - 2))
    if stage == "ended":
        machine = live_through(topology)
        assert machine.ended
    else:
        machine = RunMachine(topology, RunFacts(1, "d", DATE))
        machine.apply(e.RunStarted(DATE))
        if stage == "scheduled":
            machine.apply(e.Admitted(0, DATE))
            machine.apply(e.AttemptStarted(0, 1, DATE))
            machine.apply(e.AttemptEnded(0, 1, Outcome.SUCCESS, DATE))
            while machine.unsettled:
                machine.mark_written()
                machine.settle(DATE)
            machine.decisions = []
        machine.mark_written()
    shared = {"topology", "facts", "_handlers"}
    parts = [getattr(machine, name) for name in RunData.__slots__ if name not in shared]
    total = sum(sys.getsizeof(part) for part in parts) + sum(sys.getsizeof(counter) for counter in machine.counts.values())
    assert total / count <= 100


def test_the_cost_of_a_task_does_not_grow_with_the_run() -> None:
    """From 100 to 100,000 tasks: a generous factor leaves room for caches and for a busy machine, none for a square."""

    def cost(width: int, lives: int) -> float:
        topology = Topology(fan(width))
        best = float("inf")
        for _ in range(lives):
            began = time.process_time()
            assert live_through(topology).ended
            best = min(best, time.process_time() - began)
        return best / topology.count

    assert cost(100_000, 1) < 5 * cost(100, 20)


def test_the_cost_of_a_task_does_not_grow_with_the_scope_of_a_setup() -> None:
    """One setup and one teardown around 20,000 tasks: each end updates one counter of the teardown."""

    def cost(width: int, lives: int) -> float:
        middle = [task(f"m{i}", "s") for i in range(width)]
        behind = [task(f"w{i}", f"m{i}") for i in range(width)]
        ends = [step.task_id for step in behind]
        closing = task("t", "s", *ends, is_teardown=True, trigger_rule="all_done_setup_success")
        best = float("inf")
        for _ in range(lives):
            began = time.process_time()
            topology = Topology(MachineDriver(task("s", is_setup=True), *middle, *behind, closing).topology.definition)
            assert live_through(topology).ended
            best = min(best, time.process_time() - began)
        return best / topology.count

    assert cost(10_000, 3) < 5 * cost(100, 10)
