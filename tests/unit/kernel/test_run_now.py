"""A task instance that a person runs although its dependencies are not met."""

from __future__ import annotations

import pytest

from tests.unit.kernel.machine_driver import MachineDriver, moves, refusal, task
from tradewind.kernel import events as e
from tradewind.model.branch import Branch
from tradewind.model.definition import MapXCom
from tradewind.model.moments import SECOND
from tradewind.model.states import Outcome, TaskState

S = TaskState


def run_now(driver: MachineDriver, task_id: str) -> list[e.Decision]:
    return driver.feed(e.RunNow(driver.slot(task_id), driver.now, "run by ann"))


def chain() -> MachineDriver:
    """Return a driver in which `a` has started and `c` was run by hand, although neither `a` nor `b` is finished."""
    driver = MachineDriver(task("a"), task("b", "a"), task("c", "b")).begin().start("a")
    assert moves(run_now(driver, "c")) == [(2, "none", "scheduled")]
    return driver


def test_a_task_run_by_hand_stays_scheduled_while_upstream_tasks_run() -> None:
    """No end of an upstream task changes it."""
    driver = chain()
    driver.end("a")
    driver.run("b", Outcome.FAILED)
    assert driver.states() == {"a": "success", "b": "failed", "c": "scheduled"}
    assert driver.ending() is None
    driver.run("c")
    assert driver.states()["c"] == "success"
    ending = driver.ending()
    assert ending is not None
    assert ending.success


def test_a_task_run_by_hand_stays_scheduled_after_a_restart() -> None:
    driver = chain().restarted()
    assert driver.machine.settle(driver.now) == []
    driver.end("a")
    driver.run("c")
    assert driver.states() == {"a": "success", "b": "scheduled", "c": "success"}
    assert (driver.machine.tries[2], driver.machine.fence[2]) == (1, 1)


def test_the_retry_of_a_task_run_by_hand_waits_for_its_delay() -> None:
    """Only the start ignores dependencies."""
    driver = MachineDriver(task("a"), task("b", "a", retries=1, retry_delay=0)).begin().start("a")
    run_now(driver, "b")
    driver.run("b", Outcome.FAILED)
    assert driver.state("b") is S.UP_FOR_RETRY
    driver.end("a")
    assert driver.state("b") is S.SCHEDULED
    assert driver.machine.tries[1] == 2


def test_a_retry_and_a_reschedule_can_be_run_before_they_are_due() -> None:
    """A retry is the next try, a reschedule continues its own; their timers are refused afterwards."""
    driver = MachineDriver(task("r", retries=1, retry_delay=60 * SECOND), task("s")).begin()
    driver.run("r", Outcome.FAILED)
    driver.start("s").end("s", Outcome.RESCHEDULE, reschedule_at=driver.now + 60 * SECOND)
    for task_id, tries in (("r", 2), ("s", 1)):
        due = driver.machine.due[driver.slot(task_id)]
        run_now(driver, task_id)
        assert (driver.state(task_id), driver.machine.tries[driver.slot(task_id)]) == (S.SCHEDULED, tries)
        assert refusal(driver.feed(e.TimerDue(driver.slot(task_id), due))) == "nothing is due"


def test_an_empty_task_run_by_hand_succeeds_at_once() -> None:
    driver = MachineDriver(task("a"), task("b", "a", empty=True), task("c", "b")).begin()
    assert moves(run_now(driver, "b")) == [(1, "none", "success"), (2, "none", "scheduled")]


@pytest.mark.spec("S173")
def test_only_schedulable_states_can_be_run_by_hand() -> None:
    """None, up_for_retry and up_for_reschedule; a finished task instance has to be cleared first."""
    driver = MachineDriver(task("a"), task("b")).begin()
    assert refusal(run_now(driver, "a")) == "it is scheduled"
    assert refusal(run_now(driver.admit("a"), "a")) == "it is queued"
    driver.feed(e.AttemptStarted(0, 1, driver.now))
    assert refusal(run_now(driver, "a")) == "it is running"
    driver.end("a")
    assert refusal(run_now(driver, "a")) == "it is success"
    driver.run("b")
    assert driver.ending() is not None
    assert refusal(run_now(driver, "b")) == "its run has ended"


def test_a_mapped_task_cannot_be_run_before_its_expansion() -> None:
    driver = MachineDriver(task("list"), task("each", "list", mapped=True, expand=(MapXCom("list"),))).begin()
    assert "it is mapped" in refusal(run_now(driver, "each"))
    driver.start("list").end("list", length=2)
    assert driver.machine.instances.total == 3


def test_a_branch_skips_a_task_that_was_run_by_hand() -> None:
    """A branch is no dependency: until the task instance runs, the branch may still skip it."""
    driver = MachineDriver(task("choose"), task("left", "choose"), task("right", "choose")).begin().start("choose")
    run_now(driver, "left")
    driver.end("choose", branch=Branch("follow", ("right",)))
    assert driver.states() == {"choose": "success", "left": "skipped", "right": "scheduled"}
