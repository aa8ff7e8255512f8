"""Setups and teardowns."""

from __future__ import annotations

import pytest

from tests.unit.kernel.machine_driver import MachineDriver, setup, task, teardown
from tradewind.kernel.rules.setups import with_setups
from tradewind.kernel.topology import Topology
from tradewind.model.definition import DagDefinition
from tradewind.model.states import Outcome, TaskState

S = TaskState


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        (Outcome.SUCCESS, Outcome.SUCCESS, "scheduled"),
        (Outcome.SUCCESS, Outcome.FAILED, "scheduled"),
        (Outcome.SUCCESS, Outcome.SKIPPED, "scheduled"),
        (Outcome.FAILED, Outcome.SKIPPED, "upstream_failed"),
        (Outcome.FAILED, Outcome.FAILED, "upstream_failed"),
        (Outcome.SKIPPED, Outcome.SKIPPED, "skipped"),
    ],
)
def test_a_teardown_runs_when_one_of_its_setups_succeeded(first: Outcome, second: Outcome, state: str) -> None:
    """All skipped: skipped. None succeeded: upstream_failed."""
    driver = MachineDriver(setup("s1"), setup("s2"), teardown("t", "s1", "s2")).begin()
    driver.run("s1", first)
    assert driver.state("t") is S.NONE
    driver.run("s2", second)
    assert driver.state("t").value == state


@pytest.mark.parametrize(
    ("outcome", "state"), [(Outcome.FAILED, "upstream_failed"), (Outcome.SKIPPED, "skipped"), (Outcome.SUCCESS, "scheduled")]
)
def test_a_task_waits_for_its_indirect_setups(outcome: Outcome, state: str) -> None:
    """Also when its trigger rule does not depend on them."""
    tasks = (
        setup("s"),
        task("a", "s", trigger_rule="always"),
        task("b", "a", trigger_rule="all_done"),
        teardown("t", "s", "b"),
    )
    driver = MachineDriver(*tasks).begin()
    driver.run("a")
    assert driver.state("b") is S.NONE, "its rule is met, its setup has not ended"
    driver.run("s", outcome)
    assert driver.state("b").value == state


def test_a_task_after_the_teardown_does_not_need_the_setup() -> None:
    """The scope of a setup ends at its teardowns."""
    tasks = (setup("s"), teardown("t", "s"), task("beyond", "t", trigger_rule="all_done"))
    assert Topology(DagDefinition("d", tasks)).setups_of == {}
    endless = (setup("s"), task("a", "s"), task("b", "a"))
    assert Topology(DagDefinition("d", endless)).setups_of == {2: (0,)}


def test_a_task_with_rule_always_waits_for_no_setup() -> None:
    """The rule `always` waits for nothing."""
    driver = MachineDriver(setup("s"), task("a", "s"), task("b", "a", trigger_rule="always"), teardown("t", "s", "b")).begin()
    assert driver.state("b") is S.SCHEDULED


def test_a_rule_may_skip_a_task_while_its_setups_run() -> None:
    """A setup that runs delays only the start."""
    driver = MachineDriver(setup("s"), task("a", "s", trigger_rule="always"), task("b", "a"), teardown("t", "s", "b")).begin()
    driver.run("a", Outcome.SKIPPED)
    assert driver.state("s") is S.SCHEDULED
    assert driver.state("b") is S.SKIPPED


def test_a_teardown_waits_for_all_tasks_in_its_scope() -> None:
    """`late` is no direct upstream task of the teardown, but in the scope of its setup."""
    tasks = (
        setup("s"),
        task("late", "s"),
        task("eager", "late", trigger_rule="always"),
        teardown("t", "s", "eager"),
    )
    driver = MachineDriver(*tasks).begin()
    driver.run("s")
    driver.run("eager")
    driver.start("late")
    assert driver.state("t") is S.NONE
    twin = driver.restarted()
    for one in (driver, twin):
        one.end("late")
        assert one.state("t") is S.SCHEDULED


@pytest.mark.parametrize(
    ("chosen", "more"),
    [
        ("a", {"s", "t"}),
        ("b", {"s", "t"}),
        ("s", {"t"}),
        ("t", set()),
        ("beyond", set()),
        ("c", {"endless"}),
        ("before", set()),
    ],
)
def test_with_setups_adds_setups_and_their_teardowns(chosen: str, more: set[str]) -> None:
    """Setups whose scope includes the task, direct or not; not those whose teardown comes before it."""
    tasks = (
        task("before"),
        setup("s", "before"),
        task("a", "s"),
        task("b", "a"),
        teardown("t", "s", "b"),
        task("beyond", "t"),
        setup("endless"),
        task("c", "endless"),
    )
    assert with_setups(Topology(DagDefinition("d", tasks)), {chosen}) == {chosen} | more
