"""A task instance that a person runs, whatever it waits for."""

from __future__ import annotations

import pytest

from tests.unit.kernel.making import Hand, moves, refusal, task
from tradewind.kernel import events as e
from tradewind.model.branch import Branch
from tradewind.model.definition import MapXCom
from tradewind.model.moments import SECOND
from tradewind.model.states import Outcome, TaskState

S = TaskState


def run_now(hand: Hand, task_id: str) -> list[e.Decision]:
    return hand.feed(e.RunNow(hand.slot(task_id), hand.now, "run by ann"))


def chain() -> Hand:
    """a has started; c is run although neither it nor b is done."""
    hand = Hand(task("a"), task("b", "a"), task("c", "b")).begin().start("a")
    assert moves(run_now(hand, "c")) == [(2, "none", "scheduled")]
    return hand


def test_a_task_run_by_hand_stays_scheduled_while_upstream_tasks_run() -> None:
    """Nothing that an upstream task comes to takes it back."""
    hand = chain()
    hand.end("a")
    hand.run("b", Outcome.FAILED)
    assert hand.states() == {"a": "success", "b": "failed", "c": "scheduled"}
    assert hand.ending() is None
    hand.run("c")
    assert hand.states()["c"] == "success"
    ending = hand.ending()
    assert ending is not None
    assert ending.success


def test_a_task_run_by_hand_stays_scheduled_after_a_restart() -> None:
    hand = chain().restarted()
    assert hand.machine.settle(hand.now) == []
    hand.end("a")
    hand.run("c")
    assert hand.states() == {"a": "success", "b": "scheduled", "c": "success"}
    assert (hand.machine.tries[2], hand.machine.fence[2]) == (1, 1)


def test_the_retry_of_a_task_run_by_hand_waits_for_its_delay() -> None:
    """The start was ordered, not the whole life."""
    hand = Hand(task("a"), task("b", "a", retries=1, retry_delay=0)).begin().start("a")
    run_now(hand, "b")
    hand.run("b", Outcome.FAILED)
    assert hand.state("b") is S.UP_FOR_RETRY
    hand.end("a")
    assert hand.state("b") is S.SCHEDULED
    assert hand.machine.tries[1] == 2


def test_a_retry_and_a_reschedule_can_be_run_before_they_are_due() -> None:
    """A retry is the next try, a reschedule goes on with its own; their timers find nothing due."""
    hand = Hand(task("r", retries=1, retry_delay=60 * SECOND), task("s")).begin()
    hand.run("r", Outcome.FAILED)
    hand.start("s").end("s", Outcome.RESCHEDULE, reschedule_at=hand.now + 60 * SECOND)
    for task_id, tries in (("r", 2), ("s", 1)):
        due = hand.machine.due[hand.slot(task_id)]
        run_now(hand, task_id)
        assert (hand.state(task_id), hand.machine.tries[hand.slot(task_id)]) == (S.SCHEDULED, tries)
        assert refusal(hand.feed(e.TimerDue(hand.slot(task_id), due))) == "nothing is due"


def test_an_empty_task_run_by_hand_succeeds_at_once() -> None:
    hand = Hand(task("a"), task("b", "a", empty=True), task("c", "b")).begin()
    assert moves(run_now(hand, "b")) == [(1, "none", "success"), (2, "none", "scheduled")]


@pytest.mark.spec("S173")
def test_only_schedulable_states_can_be_run_by_hand() -> None:
    """None, up_for_retry and up_for_reschedule; what has ended is cleared first."""
    hand = Hand(task("a"), task("b")).begin()
    assert refusal(run_now(hand, "a")) == "it is scheduled"
    assert refusal(run_now(hand.admit("a"), "a")) == "it is queued"
    hand.feed(e.AttemptStarted(0, 1, hand.now))
    assert refusal(run_now(hand, "a")) == "it is running"
    hand.end("a")
    assert refusal(run_now(hand, "a")) == "it is success"
    hand.run("b")
    assert hand.ending() is not None
    assert refusal(run_now(hand, "b")) == "its run has ended"


def test_a_mapped_task_cannot_be_run_before_its_expansion() -> None:
    hand = Hand(task("list"), task("each", "list", mapped=True, expand=(MapXCom("list"),))).begin()
    assert "it is mapped" in refusal(run_now(hand, "each"))
    hand.start("list").end("list", length=2)
    assert hand.machine.instances.total == 3


def test_a_branch_skips_a_task_that_was_run_by_hand() -> None:
    """That is no dependency but a decision about it: until it runs, the branch has the last word."""
    hand = Hand(task("choose"), task("left", "choose"), task("right", "choose")).begin().start("choose")
    run_now(hand, "left")
    hand.end("choose", branch=Branch("follow", ("right",)))
    assert hand.states() == {"choose": "success", "left": "skipped", "right": "scheduled"}
