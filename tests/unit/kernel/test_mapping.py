"""Mapped tasks in the run machine: when they are expanded, what they cost, and which tasks wait for which instances."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from tests.unit.kernel.machine_driver import DATE, MachineDriver, dag, task
from tradewind.kernel import events as e
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.run_data import RunData, RunFacts
from tradewind.kernel.topology import Topology
from tradewind.model.definition import GroupDefinition, MapConcat, MapLiteral, MapXCom, MapZip, TaskDefinition
from tradewind.model.states import Outcome, TaskState


def mapped(task_id: str, *upstream: str, over: tuple[Any, ...], **more: Any) -> TaskDefinition:
    return task(task_id, *upstream, mapped=True, expand=over, **more)


def shown(driver: MachineDriver) -> dict[str, str]:
    """State by name and map index."""
    machine = driver.machine
    return {machine.name(slot): machine.task_state(slot).value for slot in range(machine.instances.total)}


def run_slot(driver: MachineDriver, slot: int, outcome: Outcome = Outcome.SUCCESS, **more: Any) -> None:
    driver.feed(e.Admitted(slot, driver.now))
    fence = driver.machine.fence[slot]
    driver.feed(e.AttemptStarted(slot, fence, driver.now))
    driver.feed(e.AttemptEnded(slot, fence, outcome, driver.now, **more))


def test_a_mapped_task_is_expanded_when_the_length_is_known() -> None:
    driver = MachineDriver(task("a"), mapped("m", "a", over=(MapXCom("a"), MapLiteral(2))), task("z", "m")).begin()
    assert shown(driver) == {"a": "scheduled", "m": "none", "z": "none"}
    run_slot(driver, 0, length=2)
    assert shown(driver) == {"a": "success", "m[0]": "scheduled", "z": "none", **{f"m[{i}]": "scheduled" for i in (1, 2, 3)}}
    for slot in (3, 4, 5):
        run_slot(driver, slot)
    assert shown(driver)["z"] == "none", "one instance is missing"
    run_slot(driver, 1)
    assert shown(driver)["z"] == "scheduled"


@pytest.mark.parametrize(
    ("source", "lengths", "expected"),
    [
        (MapZip((MapXCom("a"), MapXCom("b"))), (2, 3), 2),
        (MapZip((MapXCom("a"), MapXCom("b")), longest=True), (2, 3), 3),
        (MapConcat((MapXCom("a"), MapXCom("b"))), (2, 3), 5),
        (MapConcat((MapXCom("a"), MapLiteral(4))), (0, 9), 4),
    ],
)
def test_length_of_combined_lists(source: Any, lengths: tuple[int, int], expected: int) -> None:
    driver = MachineDriver(task("a"), task("b"), mapped("m", "a", "b", over=(source,))).begin()
    for slot, length in enumerate(lengths):
        run_slot(driver, slot, length=length)
    assert len(driver.machine.instances.slots(2)) == expected


@pytest.mark.parametrize(
    ("outcome", "rule", "state"),
    [
        (Outcome.FAILED, "all_done", "upstream_failed"),
        (Outcome.SKIPPED, "none_failed", "skipped"),
        (Outcome.SUCCESS, "all_done", "upstream_failed"),  # it returned nothing
    ],
)
def test_without_a_list_there_are_no_instances(outcome: Outcome, rule: str, state: str) -> None:
    driver = MachineDriver(task("a"), mapped("m", "a", over=(MapXCom("a"),), trigger_rule=rule)).begin()
    run_slot(driver, 0, outcome)
    assert shown(driver)["m"] == state


@pytest.mark.parametrize("put_together", [MapZip, MapConcat])
def test_a_missing_list_does_not_end_the_wait_for_another_list(put_together: Any) -> None:
    both = (put_together((MapXCom("a"), MapXCom("b"))),)
    driver = MachineDriver(task("a"), task("b"), mapped("m", "a", "b", over=both, trigger_rule="always")).begin()
    run_slot(driver, 0)
    assert shown(driver)["m"] == "none"
    run_slot(driver, 1, length=2)
    assert shown(driver)["m"] == "upstream_failed"


def test_a_rule_that_is_met_early_waits_for_the_list() -> None:
    driver = MachineDriver(
        task("a"), task("b"), mapped("m", "a", "b", over=(MapXCom("a"),), trigger_rule="one_success")
    ).begin()
    run_slot(driver, 1)
    assert shown(driver)["m"] == "none"
    run_slot(driver, 0, length=1)
    assert shown(driver)["m[0]"] == "scheduled"


def test_map_indexes_of_a_group_are_independent() -> None:
    group = GroupDefinition("g", mapped=True, expand=(MapXCom("a"),))
    driver = MachineDriver(
        task("a"), task("x", "a", group="g"), task("y", "x", group="g"), task("z", "y"), groups=(group,)
    ).begin()
    run_slot(driver, 0, length=2)
    first, second = driver.machine.instances.slots(1)
    run_slot(driver, second)
    assert (shown(driver)["y[0]"], shown(driver)["y[1]"]) == ("none", "scheduled")
    run_slot(driver, first, Outcome.FAILED)
    assert shown(driver)["y[0]"] == "upstream_failed"
    assert shown(driver)["z"] == "upstream_failed"


def test_fail_fast_does_not_end_other_instances_of_the_failed_task() -> None:
    driver = MachineDriver(mapped("m", over=(MapLiteral(3),)), task("other"), fail_fast=True).begin()
    run_slot(driver, driver.machine.instances.slots(0)[1], Outcome.FAILED)
    assert shown(driver) == {"m[0]": "scheduled", "m[1]": "failed", "m[2]": "scheduled", "other": "skipped"}


def test_events_during_an_expansion_are_applied() -> None:
    """A failure under fail_fast during an expansion also ends the instances that are added later."""
    driver = MachineDriver(task("a"), task("bad"), mapped("m", "a", over=(MapXCom("a"),)), budget=4, fail_fast=True).begin()
    driver.start("bad")
    run_slot(driver, 0, length=20)
    assert driver.machine.expanding
    driver.end("bad", Outcome.FAILED)
    while driver.machine.unsettled:
        driver.machine.mark_written()
        driver.decisions += driver.machine.settle(driver.now)
    assert {state for name, state in shown(driver).items() if name.startswith("m[")} == {"skipped"}
    assert len(driver.machine.instances.slots(2)) == 20


def lived(width: int, *, waiting: int = 0) -> RunMachine:
    """a → width instances → last, everything succeeds; `waiting`: so many instances of another task wait for all of them."""
    tasks = [task("a"), mapped("m", "a", over=(MapXCom("a"),)), task("last", "m")]
    if waiting:
        tasks.append(mapped("w", "m", over=(MapLiteral(waiting),)))
    machine = RunMachine(Topology(dag(*tasks)), RunFacts(1, "d", DATE))
    todo = machine.apply(e.RunStarted(DATE))
    while todo or machine.unsettled:
        following: list[e.Decision] = []
        for decision in todo:
            if isinstance(decision, e.Move) and decision.after is TaskState.SCHEDULED:
                following += machine.apply(e.Admitted(decision.slot, DATE))
                fence = machine.fence[decision.slot]
                following += machine.apply(e.AttemptStarted(decision.slot, fence, DATE))
                following += machine.apply(e.AttemptEnded(decision.slot, fence, Outcome.SUCCESS, DATE, length=width))
        machine.mark_written()
        following += machine.settle(DATE)
        todo = following
    assert machine.ended
    return machine


def test_an_instance_takes_at_most_100_bytes() -> None:
    count = 20_000
    machine = lived(count)
    shared = {"topology", "facts", "_handlers", "instances"}
    parts = [getattr(machine, name) for name in RunData.__slots__ if name not in shared]
    instances = machine.instances
    parts += [instances.owners, instances.indexes, *instances.expanded.values(), *machine.counts.values()]
    assert sum(sys.getsizeof(part) for part in parts) / count <= 100


def test_the_cost_of_an_instance_does_not_grow_with_their_number() -> None:
    """Nor with the number of downstream instances: a finished instance costs its direct downstream tasks."""

    def cost(width: int, waiting: int, lives: int) -> float:
        best = float("inf")
        for _ in range(lives):
            began = time.process_time()
            lived(width, waiting=waiting)
            best = min(best, time.process_time() - began)
        return best / (width + waiting)

    few = cost(100, 100, 10)
    assert cost(20_000, 0, 2) < 10 * few
    assert cost(5_000, 5_000, 2) < 10 * few
