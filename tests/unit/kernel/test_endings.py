"""How runs end."""

from __future__ import annotations

import pytest

from tests.unit.kernel.making import DATE, Hand, setup, task, teardown
from tradewind.kernel import events as e
from tradewind.model.definition import MapLiteral
from tradewind.model.states import Outcome, TaskState

S = TaskState


def verdict(hand: Hand) -> bool | None:
    ending = hand.ending()
    return None if ending is None else ending.success


# --- which tasks decide ----------------------------------------------------------------------------------------------


@pytest.mark.spec("S189")
def test_leaves_decide_the_state_of_the_run() -> None:
    """A failure that a later task repairs does not fail the run; one at the end does."""
    hand = Hand(task("a"), task("b", "a", trigger_rule="all_done")).begin()
    hand.run("a", Outcome.FAILED)
    hand.run("b")
    assert verdict(hand) is True
    hand = Hand(task("a"), task("b", "a")).begin()
    hand.run("a", Outcome.FAILED)
    assert hand.state("b") is S.UPSTREAM_FAILED
    assert verdict(hand) is False


@pytest.mark.parametrize("counts", [False, True])
def test_a_teardown_decides_only_with_on_failure_fail_dagrun(counts: bool) -> None:
    """What stands before it counts either way."""
    hand = Hand(setup("s"), task("w", "s"), teardown("t", "s", "w", on_failure_fail_dagrun=counts)).begin()
    hand.run("s")
    hand.run("w")
    hand.run("t", Outcome.FAILED)
    assert verdict(hand) is not counts


def test_teardowns_decide_a_dag_without_other_tasks() -> None:
    """Somebody has to."""
    hand = Hand(teardown("t")).begin()
    hand.run("t", Outcome.FAILED)
    assert verdict(hand) is False


def test_a_run_without_tasks_is_a_success() -> None:
    """There is nothing to wait for."""
    assert verdict(Hand().begin()) is True


def test_nothing_is_decided_after_the_end() -> None:
    """Attempts that still live may report; nothing follows from it."""
    hand = Hand(task("a", retries=1, retry_delay=0), task("b")).begin().start("a", "b")
    hand.feed(e.RunTimedOut(hand.now))
    assert not hand.machine.unsettled
    assert hand.machine.settle(hand.now) == []


# --- fail_fast, timeout, deadlock --------------------------------------------------------------------------------------


def test_fail_fast_ends_all_other_tasks_except_teardowns() -> None:
    """Running ones fail and are stopped, waiting ones are skipped, finished ones and teardowns stay."""
    hand = Hand(
        task("done"),
        task("bad"),
        task("running"),
        task("queued"),
        task("waiting", "running"),
        setup("s"),
        teardown("t", "s", "waiting"),
        fail_fast=True,
    ).begin()
    hand.run("done")
    hand.run("s")
    hand.start("bad", "running").admit("queued")
    out = hand.end("bad", Outcome.FAILED)
    assert hand.states() == {
        "done": "success",
        "bad": "failed",
        "running": "failed",
        "queued": "skipped",
        "waiting": "skipped",
        "s": "success",
        "t": "scheduled",
    }
    assert {decision.slot for decision in out if isinstance(decision, e.Stop)} == {hand.slot("running"), hand.slot("queued")}
    hand.run("t")
    assert verdict(hand) is False


def test_fail_fast_applies_after_the_last_try() -> None:
    """A retry is no failure yet."""
    hand = Hand(task("bad", retries=1, retry_delay=0), task("other"), fail_fast=True).begin()
    hand.run("bad", Outcome.FAILED)
    assert hand.state("other") is S.SCHEDULED
    hand.run("bad", Outcome.FAILED)
    assert hand.state("other") is S.SKIPPED


def test_leaves_decide_the_state_of_a_fail_fast_run() -> None:
    """As in Airflow a failed task in the middle leaves a success behind; the run says why."""
    hand = Hand(task("bad"), task("after", "bad"), fail_fast=True).begin()
    out = hand.run("bad", Outcome.FAILED)
    assert hand.states() == {"bad": "failed", "after": "skipped"}
    (end,) = [decision for decision in out if isinstance(decision, e.RunEnds)]
    assert end.success
    assert "bad failed, but fail_fast skipped what came after it" in end.cause


@pytest.mark.spec("S188")
def test_dagrun_timeout_fails_the_run() -> None:
    """dagrun_timeout: unfinished task instances are skipped, living attempts stopped."""
    hand = Hand(task("done"), task("running"), task("waiting", "running")).begin()
    hand.run("done")
    hand.start("running")
    out = hand.feed(e.RunTimedOut(hand.now + 1))
    assert hand.states() == {"done": "success", "running": "skipped", "waiting": "skipped"}
    assert [decision.slot for decision in out if isinstance(decision, e.Stop)] == [1]
    assert verdict(hand) is False
    late = hand.feed(e.AttemptEnded(1, 1, Outcome.SUCCESS, hand.now))
    assert isinstance(late[0], e.Refusal)


def test_a_deadlocked_run_fails() -> None:
    """all_skipped is never met where one upstream task has no part in the run and another one is skipped."""
    hand = Hand(
        task("gone", end_date=DATE - 1), task("skips"), task("stuck", "gone", "skips", trigger_rule="all_skipped")
    ).begin()
    hand.run("skips", Outcome.SKIPPED)
    ending = hand.ending()
    assert ending is not None
    assert not ending.success
    assert ending.cause == "deadlock: 1 tasks can never start (the first: stuck)"


def test_a_rescheduled_task_whose_rule_cannot_be_met_is_a_deadlock() -> None:
    """all_skipped cannot be met beside a task that has no part in the run; the sensor asks to be called again all the same."""
    hand = Hand(task("gone", end_date=DATE - 1), task("other"), task("stuck", "gone", trigger_rule="all_skipped")).begin()
    hand.feed(e.RunNow(hand.slot("stuck"), hand.now, "a person asked"))
    hand.start("stuck")
    later = hand.now + 60
    hand.feed(e.AttemptEnded(hand.slot("stuck"), 1, Outcome.RESCHEDULE, hand.now, reschedule_at=later))
    hand.feed(e.TimerDue(hand.slot("stuck"), later))
    assert verdict(hand) is None
    hand.run("other")
    assert verdict(hand) is False


def test_waiting_for_another_run_is_no_deadlock() -> None:
    """Until the previous run says yes; then a task that is stuck for another reason is."""
    stuck = task("stuck", "gone", depends_on_past=True, trigger_rule="all_skipped")
    hand = Hand(task("gone", end_date=DATE - 1), stuck).begin()
    assert verdict(hand) is None
    hand.past("stuck", False)
    assert verdict(hand) is None
    hand.past("stuck", True)
    assert verdict(hand) is False


# --- the past ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S283")
def test_depends_on_past_blocks_until_the_previous_run_allows() -> None:
    """depends_on_past: no word means no."""
    hand = Hand(task("t", depends_on_past=True)).begin()
    assert hand.state("t") is S.NONE
    hand.past("t", True)
    assert hand.state("t") is S.SCHEDULED


def test_a_blocking_previous_run_drops_verdicts_that_are_not_applied() -> None:
    """Decided on good news, but for want of room not carried out when the bad news comes."""
    hand = Hand(task("t", mapped=True, expand=(MapLiteral(5),), depends_on_past=True), budget=2).begin()
    hand.past("t", True)
    while not (begun := hand.machine.state.count(S.SCHEDULED.code)):
        assert hand.machine.unsettled
        hand.machine.settle(hand.now)
    assert begun < 5
    hand.machine.budget = 2000
    hand.past("t", False)
    assert hand.machine.state.count(S.SCHEDULED.code) == begun
    hand.past("t", True)
    assert hand.machine.state.count(S.SCHEDULED.code) == 5


@pytest.mark.parametrize(("holds", "state"), [(False, "skipped"), (True, "none")])
def test_a_skip_waits_for_the_previous_run_only_with_its_argument(holds: bool, state: str) -> None:
    """wait_for_past_depends_before_skipping."""
    dependent = task("t", "a", depends_on_past=True, wait_for_past_depends_before_skipping=holds)
    hand = Hand(task("a"), dependent).begin()
    hand.run("a", Outcome.SKIPPED)
    assert hand.state("t").value == state
    hand.past("t", True)
    assert hand.state("t") is S.SKIPPED
