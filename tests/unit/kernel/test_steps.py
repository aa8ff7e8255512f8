"""Steps between states: which are taken, which are refused, which cannot be."""

from __future__ import annotations

import pytest

from tests.unit.kernel.making import DATE, Hand, refusal, task
from tradewind.kernel import events as e
from tradewind.model.branch import Branch
from tradewind.model.moments import DAY, SECOND
from tradewind.model.states import FINISHED, RUN_TRANSITIONS, TASK_STATES, TASK_TRANSITIONS, Outcome, RunState, TaskState

S = TaskState


def grand_tour() -> Hand:
    """One run that leads task instances through every state the machine gives by itself."""
    hand = Hand(
        task("sensor"),
        task("fragile", retries=1, retry_delay=SECOND),
        task("after", "fragile"),
        task("skips"),
        task("old", end_date=DATE - DAY),
        task("nothing", empty=True),
    ).begin()
    hand.start("sensor").end("sensor", Outcome.RESCHEDULE, reschedule_at=hand.now + 9 * SECOND)
    hand.run("fragile", Outcome.FAILED)
    hand.wake("fragile")
    hand.run("fragile", Outcome.FAILED)
    hand.run("skips", Outcome.SKIPPED)
    hand.wake("sensor")
    hand.run("sensor")
    return hand


def test_every_step_of_the_machine_is_in_the_table() -> None:
    """And every task instance starts without a state and ends in a finished one."""
    hand = grand_tour()
    steps = [decision for decision in hand.decisions if isinstance(decision, e.Move)]
    assert all(step.after in TASK_TRANSITIONS[step.before] for step in steps)
    assert all(hand.state(task_id) in FINISHED for task_id in hand.topology.ids)


def test_the_machine_reaches_every_state_that_it_can_give() -> None:
    """Triggers, people who are asked and people who clear give the other three; whoever builds one of them changes this set."""
    reached = {step.after for step in grand_tour().decisions if isinstance(step, e.Move)}
    assert set(TaskState) - reached == {S.NONE, S.DEFERRED, S.AWAITING_INPUT, S.RESTARTING}


def test_every_state_can_be_reached_and_left() -> None:
    """The table has no island and no trap: from every state a way leads to every other one."""
    for start in TaskState:
        known, frontier = set[TaskState](), [start]
        while frontier:
            for after in TASK_TRANSITIONS[frontier.pop()] - known:
                known.add(after)
                frontier.append(after)
        assert known == set(TaskState), start
    assert set(RUN_TRANSITIONS) == set().union(*RUN_TRANSITIONS.values()) == set(RunState)


@pytest.mark.spec("S150")
def test_states_have_airflows_names() -> None:
    """`shutdown`, a running task told to stop, is called `restarting` since Airflow 2."""
    described = (
        "scheduled queued running success failed skipped upstream_failed up_for_retry up_for_reschedule removed restarting"
    )
    assert set(described.split()) <= {state.value for state in TaskState}
    assert S.NONE in TaskState


@pytest.mark.parametrize("state", list(TaskState))
def test_an_illegal_step_raises_with_task_and_states(state: TaskState) -> None:
    """Rather a run in quarantine than a row nobody can explain."""
    for after in set(TaskState) - TASK_TRANSITIONS[state]:
        hand = Hand(task("t"))
        hand.machine.state[0] = state.code
        with pytest.raises(AssertionError, match=f"run 1, task t: {state.value} → {after.value} is no legal step"):
            hand.machine.step(0, after.code, DATE, "because")
    assert TASK_STATES[state.code] is state


# --- fences ----------------------------------------------------------------------------------------------------------


def test_every_attempt_has_its_own_fence() -> None:
    """Admission raises it; nothing lowers it."""
    hand = Hand(task("t", retries=3, retry_delay=0)).begin()
    fences = []
    for _ in range(3):
        hand.admit("t")
        fences.append(hand.machine.fence[0])
        hand.end("t", Outcome.FAILED)
    assert fences == [1, 2, 3]


@pytest.mark.spec("S224")
def test_an_event_of_an_older_attempt_is_refused() -> None:
    """A late start, result or death of attempt 1 cannot touch attempt 2."""
    hand = Hand(task("t", retries=1, retry_delay=0)).begin()
    hand.run("t", Outcome.FAILED)
    hand.start("t")
    before = hand.machine.row(0)
    late: list[e.Event] = [
        e.AttemptStarted(0, 1, hand.now),
        e.AttemptEnded(0, 1, Outcome.SUCCESS, hand.now),
        e.AttemptVanished(0, 1, hand.now),
    ]
    for event in late:
        assert refusal(hand.feed(event)) == "it came from attempt 1, but attempt 2 is the current one"
    assert hand.machine.row(0) == before


def test_a_repeated_event_counts_once() -> None:
    """The second start and the second result are refused."""
    hand = Hand(task("t")).begin().start("t")
    assert refusal(hand.feed(e.AttemptStarted(0, 1, hand.now))) == "the task instance is running"
    hand.end("t")
    assert refusal(hand.end("t", Outcome.FAILED)) == "the task instance is success"
    assert refusal(hand.feed(e.Admitted(0, hand.now))) == "it is success, not scheduled"
    assert refusal(hand.feed(e.TimerDue(0, hand.now))) == "nothing is due"


@pytest.mark.parametrize("outcome", [Outcome.SUCCESS, Outcome.SKIPPED, Outcome.RESCHEDULE])
def test_a_result_needs_an_accepted_start(outcome: Outcome) -> None:
    """Without it, nobody knows whose result that is."""
    hand = Hand(task("t")).begin().admit("t")
    assert "never accepted" in refusal(hand.end("t", outcome))
    assert hand.state("t") is S.QUEUED


@pytest.mark.spec("S316")
def test_a_forced_state_stops_the_live_attempt_and_raises_the_fence() -> None:
    """A branch skips a task that is queued: its worker's start comes too late."""
    hand = Hand(task("choose"), task("eager", "choose", trigger_rule="always")).begin().start("choose").admit("eager")
    out = hand.end("choose", branch=Branch("follow"))
    assert [decision for decision in out if isinstance(decision, e.Stop)] == [e.Stop(1, 1, "choose did not choose this branch")]
    assert hand.state("eager") is S.SKIPPED
    assert "attempt 1" in refusal(hand.feed(e.AttemptStarted(1, 1, hand.now)))


def test_a_branch_skips_a_running_task_only_after_its_attempt() -> None:
    """Its attempt may end; its retry finds that the branch was not chosen, after a restart too."""
    hand = Hand(task("choose"), task("eager", "choose", trigger_rule="always", retries=1, retry_delay=0)).begin()
    hand.start("choose", "eager").end("choose", branch=Branch("follow"))
    assert hand.state("eager") is S.RUNNING
    twin = hand.restarted()
    for one in (hand, twin):
        one.end("eager", Outcome.FAILED)
        assert one.state("eager") is S.SKIPPED
        assert one.ending() is not None


# --- lost attempts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("started", [False, True])
def test_an_attempt_lost_before_its_start_is_dispatched_again_in_its_try(started: bool) -> None:
    """The worker failed, not the task: it was lost before its start was accepted, or its process was never told of that."""
    hand = Hand(task("t")).begin().admit("t")
    if started:
        hand.feed(e.AttemptStarted(0, 1, hand.now))
        hand.end("t", Outcome.REFUSED)
    else:
        hand.vanish("t")
    assert hand.state("t") is S.SCHEDULED
    assert hand.machine.tries[0] == 1
    hand.run("t")
    assert (hand.machine.tries[0], hand.machine.fence[0]) == (1, 2)


@pytest.mark.parametrize("vanished", [False, True])
def test_an_attempt_lost_after_its_start_fails_its_try(vanished: bool) -> None:
    hand = Hand(task("t", retries=1, retry_delay=SECOND)).begin()
    for state in (S.UP_FOR_RETRY, S.FAILED):
        hand.start("t")
        out = hand.vanish("t") if vanished else hand.end("t", Outcome.LOST, reason="its host died")
        assert hand.state("t") is state
        assert isinstance(out[0], e.Move)
        assert out[0].cause == "its host died"
        if state is S.UP_FOR_RETRY:
            hand.wake("t")


def test_lost_attempts_repeat_repeats_the_try() -> None:
    """Or the deployment, for tasks that do not choose."""
    hand = Hand(task("chooses", lost_attempts="repeat"), task("silent"), task("fails", lost_attempts="fail"))
    hand.machine.facts = hand.facts._replace(repeat_lost=True)
    hand.begin()
    for name in ("chooses", "silent", "fails"):
        hand.start(name).vanish(name)
    assert hand.states() == {"chooses": "scheduled", "silent": "scheduled", "fails": "failed"}
    assert [hand.machine.tries[slot] for slot in range(3)] == [1, 1, 1]


@pytest.mark.spec("S170")
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_requeue_limit_bounds_lost_attempts(limit: int) -> None:
    """Then the task has failed, and the sentence says why."""
    hand = Hand(task("t"), requeue_limit=limit).begin()
    for _ in range(limit):
        hand.admit("t").vanish("t")
        assert hand.state("t") is S.SCHEDULED
    out = hand.admit("t").vanish("t")
    assert hand.state("t") is S.FAILED
    assert isinstance(out[0], e.Move)
    assert out[0].cause == f"its host died; it was lost {limit + 1} times, which is the limit"


@pytest.mark.spec("S169")
def test_requeues_are_counted_per_try() -> None:
    """The limit is about one try."""
    hand = Hand(task("t", retries=1, retry_delay=0), requeue_limit=1).begin()
    for _ in range(2):
        hand.admit("t").vanish("t")
    assert (hand.state("t"), hand.machine.tries[0]) == (S.SCHEDULED, 2)
    hand.start("t").end("t", Outcome.REFUSED)
    assert hand.state("t") is S.SCHEDULED


def test_a_deferred_task_continues_in_the_same_try() -> None:
    hand = Hand(task("t", retries=3), task("after", "t")).begin()
    hand.run("t", Outcome.DEFERRED)
    assert hand.state("t") is S.DEFERRED
    out = hand.feed(e.WaitOver(0, 1, hand.now, None, "its trigger fired"))
    assert (hand.state("t"), hand.machine.tries[0]) == (S.SCHEDULED, 1)
    assert isinstance(out[0], e.Move)
    assert out[0].cause == "its trigger fired"
    hand.run("t")
    assert (hand.state("t"), hand.state("after"), hand.machine.tries[0]) == (S.SUCCESS, S.SCHEDULED, 1)


@pytest.mark.parametrize(
    ("outcome", "state", "after"),
    [
        (Outcome.SUCCESS, S.SUCCESS, S.SCHEDULED),
        (Outcome.SKIPPED, S.SKIPPED, S.SKIPPED),
        (Outcome.FAILED, S.UP_FOR_RETRY, S.NONE),
        (Outcome.FAILED_FINAL, S.FAILED, S.UPSTREAM_FAILED),
    ],
)
def test_a_wait_may_end_its_task_without_another_attempt(outcome: Outcome, state: S, after: S) -> None:
    hand = Hand(task("t", retries=1), task("after", "t")).begin()
    hand.run("t", Outcome.DEFERRED)
    hand.feed(e.WaitOver(0, 1, hand.now, outcome, "what it waited for has come"))
    assert (hand.state("t"), hand.state("after")) == (state, after)


def test_the_end_of_a_wait_counts_once_and_under_its_fence() -> None:
    hand = Hand(task("t")).begin()
    hand.run("t", Outcome.DEFERRED)
    for event in (e.WaitOver(0, 0, hand.now), e.WaitOver(0, 2, hand.now)):
        assert isinstance(hand.feed(event)[0], e.Refusal)
    hand.feed(e.WaitOver(0, 1, hand.now))
    assert isinstance(hand.feed(e.WaitOver(0, 1, hand.now))[0], e.Refusal)


def test_an_attempt_whose_start_was_never_accepted_cannot_defer() -> None:
    hand = Hand(task("t")).begin()
    hand.admit("t")
    assert isinstance(hand.end("t", Outcome.DEFERRED)[0], e.Refusal)


# --- task dates ------------------------------------------------------------------------------------------------------


def test_tasks_outside_of_their_dates_are_removed() -> None:
    """The DAG's own start date does not count as the task's: a run triggered before it is whole."""
    later = DATE + DAY
    hand = Hand(
        task("always there", start_date=later),
        task("not yet", start_date=later + DAY),
        task("not any more", end_date=DATE - DAY),
        task("after", "not any more"),
        start_date=later,
    ).begin()
    assert hand.states() == {
        "always there": "scheduled",
        "not yet": "removed",
        "not any more": "removed",
        "after": "scheduled",
    }
