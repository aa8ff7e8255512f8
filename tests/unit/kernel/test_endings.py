"""How runs end."""

from __future__ import annotations

import pytest

from tests.unit.kernel.machine_driver import DATE, MachineDriver, setup, task, teardown
from tradewind.kernel import events as e
from tradewind.model.definition import MapLiteral
from tradewind.model.states import Outcome, TaskState

S = TaskState


def verdict(driver: MachineDriver) -> bool | None:
    ending = driver.ending()
    return None if ending is None else ending.success


# --- which tasks decide ----------------------------------------------------------------------------------------------


@pytest.mark.spec("S189")
def test_leaves_decide_the_state_of_the_run() -> None:
    """A failure that a later task repairs does not fail the run; one at the end does."""
    driver = MachineDriver(task("a"), task("b", "a", trigger_rule="all_done")).begin()
    driver.run("a", Outcome.FAILED)
    driver.run("b")
    assert verdict(driver) is True
    driver = MachineDriver(task("a"), task("b", "a")).begin()
    driver.run("a", Outcome.FAILED)
    assert driver.state("b") is S.UPSTREAM_FAILED
    assert verdict(driver) is False


@pytest.mark.parametrize("counts", [False, True])
def test_a_teardown_decides_only_with_on_failure_fail_dagrun(counts: bool) -> None:
    """The task before the teardown counts in both cases."""
    driver = MachineDriver(setup("s"), task("w", "s"), teardown("t", "s", "w", on_failure_fail_dagrun=counts)).begin()
    driver.run("s")
    driver.run("w")
    driver.run("t", Outcome.FAILED)
    assert verdict(driver) is not counts


def test_teardowns_decide_a_dag_without_other_tasks() -> None:
    """Without other leaves the teardowns decide."""
    driver = MachineDriver(teardown("t")).begin()
    driver.run("t", Outcome.FAILED)
    assert verdict(driver) is False


def test_a_run_without_tasks_is_a_success() -> None:
    """There is nothing to wait for."""
    assert verdict(MachineDriver().begin()) is True


def test_nothing_is_decided_after_the_end() -> None:
    """Live attempts may still report; nothing follows from that."""
    driver = MachineDriver(task("a", retries=1, retry_delay=0), task("b")).begin().start("a", "b")
    driver.feed(e.RunTimedOut(driver.now))
    assert not driver.machine.unsettled
    assert driver.machine.settle(driver.now) == []


# --- fail_fast, timeout, deadlock --------------------------------------------------------------------------------------


def test_fail_fast_ends_all_other_tasks_except_teardowns() -> None:
    """Running ones fail and are stopped, waiting ones are skipped, finished ones and teardowns stay."""
    driver = MachineDriver(
        task("done"),
        task("bad"),
        task("running"),
        task("queued"),
        task("waiting", "running"),
        setup("s"),
        teardown("t", "s", "waiting"),
        fail_fast=True,
    ).begin()
    driver.run("done")
    driver.run("s")
    driver.start("bad", "running").admit("queued")
    out = driver.end("bad", Outcome.FAILED)
    assert driver.states() == {
        "done": "success",
        "bad": "failed",
        "running": "failed",
        "queued": "skipped",
        "waiting": "skipped",
        "s": "success",
        "t": "scheduled",
    }
    assert {decision.slot for decision in out if isinstance(decision, e.Stop)} == {
        driver.slot("running"),
        driver.slot("queued"),
    }
    driver.run("t")
    assert verdict(driver) is False


def test_fail_fast_applies_after_the_last_try() -> None:
    """A retry is not a failure."""
    driver = MachineDriver(task("bad", retries=1, retry_delay=0), task("other"), fail_fast=True).begin()
    driver.run("bad", Outcome.FAILED)
    assert driver.state("other") is S.SCHEDULED
    driver.run("bad", Outcome.FAILED)
    assert driver.state("other") is S.SKIPPED


def test_leaves_decide_the_state_of_a_fail_fast_run() -> None:
    """As in Airflow a failed task in the middle does not fail the run; the reason of the run names the task."""
    driver = MachineDriver(task("bad"), task("after", "bad"), fail_fast=True).begin()
    out = driver.run("bad", Outcome.FAILED)
    assert driver.states() == {"bad": "failed", "after": "skipped"}
    (end,) = [decision for decision in out if isinstance(decision, e.RunEnds)]
    assert end.success
    assert "bad failed, but fail_fast skipped what came after it" in end.cause


@pytest.mark.spec("S188")
def test_dagrun_timeout_fails_the_run() -> None:
    """Unfinished task instances are skipped, and live attempts are stopped."""
    driver = MachineDriver(task("done"), task("running"), task("waiting", "running")).begin()
    driver.run("done")
    driver.start("running")
    out = driver.feed(e.RunTimedOut(driver.now + 1))
    assert driver.states() == {"done": "success", "running": "skipped", "waiting": "skipped"}
    assert [decision.slot for decision in out if isinstance(decision, e.Stop)] == [1]
    assert verdict(driver) is False
    late = driver.feed(e.AttemptEnded(1, 1, Outcome.SUCCESS, driver.now))
    assert isinstance(late[0], e.Refusal)


def test_a_deadlocked_run_fails() -> None:
    """all_skipped is never met where one upstream task is removed and another one is skipped."""
    driver = MachineDriver(
        task("gone", end_date=DATE - 1), task("skips"), task("stuck", "gone", "skips", trigger_rule="all_skipped")
    ).begin()
    driver.run("skips", Outcome.SKIPPED)
    ending = driver.ending()
    assert ending is not None
    assert not ending.success
    assert ending.cause == "deadlock: tasks that can never start: 1 (the first: stuck)"


def test_a_rescheduled_task_whose_rule_cannot_be_met_is_a_deadlock() -> None:
    """all_skipped cannot be met with a removed upstream task; the sensor is rescheduled nevertheless."""
    driver = MachineDriver(
        task("gone", end_date=DATE - 1), task("other"), task("stuck", "gone", trigger_rule="all_skipped")
    ).begin()
    driver.feed(e.RunNow(driver.slot("stuck"), driver.now, "a person asked"))
    driver.start("stuck")
    later = driver.now + 60
    driver.feed(e.AttemptEnded(driver.slot("stuck"), 1, Outcome.RESCHEDULE, driver.now, reschedule_at=later))
    driver.feed(e.TimerDue(driver.slot("stuck"), later))
    assert verdict(driver) is None
    driver.run("other")
    assert verdict(driver) is False


def test_waiting_for_another_run_is_no_deadlock() -> None:
    """Until the previous run allows; then a task that is stuck for another reason makes a deadlock."""
    stuck = task("stuck", "gone", depends_on_past=True, trigger_rule="all_skipped")
    driver = MachineDriver(task("gone", end_date=DATE - 1), stuck).begin()
    assert verdict(driver) is None
    driver.past("stuck", False)
    assert verdict(driver) is None
    driver.past("stuck", True)
    assert verdict(driver) is False


# --- the past ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S283")
def test_depends_on_past_blocks_until_the_previous_run_allows() -> None:
    """Without an event of the previous run the task waits."""
    driver = MachineDriver(task("t", depends_on_past=True)).begin()
    assert driver.state("t") is S.NONE
    driver.past("t", True)
    assert driver.state("t") is S.SCHEDULED


def test_a_blocking_previous_run_drops_verdicts_that_are_not_applied() -> None:
    """The verdict was decided when the previous run allowed it, but did not fit into the budget before the previous run
    changed.
    """
    driver = MachineDriver(task("t", mapped=True, expand=(MapLiteral(5),), depends_on_past=True), budget=2).begin()
    driver.past("t", True)
    while not (begun := driver.machine.state.count(S.SCHEDULED.code)):
        assert driver.machine.unsettled
        driver.machine.settle(driver.now)
    assert begun < 5
    driver.machine.budget = 2000
    driver.past("t", False)
    assert driver.machine.state.count(S.SCHEDULED.code) == begun
    driver.past("t", True)
    assert driver.machine.state.count(S.SCHEDULED.code) == 5


@pytest.mark.parametrize(("holds", "state"), [(False, "skipped"), (True, "none")])
def test_a_skip_waits_for_the_previous_run_only_with_its_argument(holds: bool, state: str) -> None:
    """The argument is wait_for_past_depends_before_skipping."""
    dependent = task("t", "a", depends_on_past=True, wait_for_past_depends_before_skipping=holds)
    driver = MachineDriver(task("a"), dependent).begin()
    driver.run("a", Outcome.SKIPPED)
    assert driver.state("t").value == state
    driver.past("t", True)
    assert driver.state("t") is S.SKIPPED
