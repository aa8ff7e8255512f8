"""Steps between states: which are taken, which are refused, which are illegal."""

from __future__ import annotations

import pytest

from tests.unit.kernel.machine_driver import DATE, MachineDriver, refusal, task
from tradewind.kernel import events as e
from tradewind.model.branch import Branch
from tradewind.model.moments import DAY, SECOND
from tradewind.model.states import FINISHED, RUN_TRANSITIONS, TASK_STATES, TASK_TRANSITIONS, Outcome, RunState, TaskState

S = TaskState


def grand_tour() -> MachineDriver:
    """Return one run that leads task instances through every state that the machine gives."""
    driver = MachineDriver(
        task("sensor"),
        task("fragile", retries=1, retry_delay=SECOND),
        task("after", "fragile"),
        task("skips"),
        task("old", end_date=DATE - DAY),
        task("nothing", empty=True),
    ).begin()
    driver.start("sensor").end("sensor", Outcome.RESCHEDULE, reschedule_at=driver.now + 9 * SECOND)
    driver.run("fragile", Outcome.FAILED)
    driver.wake("fragile")
    driver.run("fragile", Outcome.FAILED)
    driver.run("skips", Outcome.SKIPPED)
    driver.wake("sensor")
    driver.run("sensor")
    return driver


def test_every_step_of_the_machine_is_in_the_table() -> None:
    """And every task instance starts in state `none` and ends in a finished one."""
    driver = grand_tour()
    steps = [decision for decision in driver.decisions if isinstance(decision, e.Move)]
    assert all(step.after in TASK_TRANSITIONS[step.before] for step in steps)
    assert all(driver.state(task_id) in FINISHED for task_id in driver.topology.ids)


def test_the_machine_reaches_every_state_that_it_can_give() -> None:
    """Triggers, people who are asked and people who clear give the other three; whoever builds one of them changes this set."""
    reached = {step.after for step in grand_tour().decisions if isinstance(step, e.Move)}
    assert set(TaskState) - reached == {S.NONE, S.DEFERRED, S.AWAITING_INPUT, S.RESTARTING}


def test_every_state_can_be_reached_and_left() -> None:
    """From every state of the table, every other state can be reached."""
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
    """`shutdown`, a running task that has to stop, is called `restarting` since Airflow 2."""
    described = (
        "scheduled queued running success failed skipped upstream_failed up_for_retry up_for_reschedule removed restarting"
    )
    assert set(described.split()) <= {state.value for state in TaskState}
    assert S.NONE in TaskState


@pytest.mark.parametrize("state", list(TaskState))
def test_an_illegal_step_raises_with_task_and_states(state: TaskState) -> None:
    """A run in quarantine is better than a row that cannot be explained."""
    for after in set(TaskState) - TASK_TRANSITIONS[state]:
        driver = MachineDriver(task("t"))
        driver.machine.state[0] = state.code
        with pytest.raises(AssertionError, match=f"run 1, task t: {state.value} → {after.value} is no legal step"):
            driver.machine.step(0, after.code, DATE, "because")
    assert TASK_STATES[state.code] is state


# --- fences ----------------------------------------------------------------------------------------------------------


def test_every_attempt_has_its_own_fence() -> None:
    """Admission raises it; nothing lowers it."""
    driver = MachineDriver(task("t", retries=3, retry_delay=0)).begin()
    fences = []
    for _ in range(3):
        driver.admit("t")
        fences.append(driver.machine.fence[0])
        driver.end("t", Outcome.FAILED)
    assert fences == [1, 2, 3]


@pytest.mark.spec("S224")
def test_an_event_of_an_older_attempt_is_refused() -> None:
    """A late start, report or loss of attempt 1 does not change attempt 2."""
    driver = MachineDriver(task("t", retries=1, retry_delay=0)).begin()
    driver.run("t", Outcome.FAILED)
    driver.start("t")
    before = driver.machine.row(0)
    late: list[e.Event] = [
        e.AttemptStarted(0, 1, driver.now),
        e.AttemptEnded(0, 1, Outcome.SUCCESS, driver.now),
        e.AttemptVanished(0, 1, driver.now),
    ]
    for event in late:
        assert refusal(driver.feed(event)) == "it came from attempt 1, but attempt 2 is the current one"
    assert driver.machine.row(0) == before


def test_a_repeated_event_counts_once() -> None:
    """The second start and the second result are refused."""
    driver = MachineDriver(task("t")).begin().start("t")
    assert refusal(driver.feed(e.AttemptStarted(0, 1, driver.now))) == "the task instance is running"
    driver.end("t")
    assert refusal(driver.end("t", Outcome.FAILED)) == "the task instance is success"
    assert refusal(driver.feed(e.Admitted(0, driver.now))) == "it is success, not scheduled"
    assert refusal(driver.feed(e.TimerDue(0, driver.now))) == "nothing is due"


@pytest.mark.parametrize("outcome", [Outcome.SUCCESS, Outcome.SKIPPED, Outcome.RESCHEDULE])
def test_a_result_needs_an_accepted_start(outcome: Outcome) -> None:
    """Without an accepted start the process of the result is not known."""
    driver = MachineDriver(task("t")).begin().admit("t")
    assert "never accepted" in refusal(driver.end("t", outcome))
    assert driver.state("t") is S.QUEUED


@pytest.mark.spec("S316")
def test_a_forced_state_stops_the_live_attempt_and_raises_the_fence() -> None:
    """A branch skips a task that is queued: its worker's start comes too late."""
    driver = (
        MachineDriver(task("choose"), task("eager", "choose", trigger_rule="always")).begin().start("choose").admit("eager")
    )
    out = driver.end("choose", branch=Branch("follow"))
    assert [decision for decision in out if isinstance(decision, e.Stop)] == [e.Stop(1, 1, "choose did not choose this branch")]
    assert driver.state("eager") is S.SKIPPED
    assert "attempt 1" in refusal(driver.feed(e.AttemptStarted(1, 1, driver.now)))


def test_a_branch_skips_a_running_task_only_after_its_attempt() -> None:
    """Its attempt may end; the retry is skipped, also after a restart."""
    driver = MachineDriver(task("choose"), task("eager", "choose", trigger_rule="always", retries=1, retry_delay=0)).begin()
    driver.start("choose", "eager").end("choose", branch=Branch("follow"))
    assert driver.state("eager") is S.RUNNING
    twin = driver.restarted()
    for one in (driver, twin):
        one.end("eager", Outcome.FAILED)
        assert one.state("eager") is S.SKIPPED
        assert one.ending() is not None


# --- lost attempts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("started", [False, True])
def test_an_attempt_lost_before_its_start_is_dispatched_again_in_its_try(started: bool) -> None:
    """The worker failed, not the task: before the start was accepted, or before the process knew that it was."""
    driver = MachineDriver(task("t")).begin().admit("t")
    if started:
        driver.feed(e.AttemptStarted(0, 1, driver.now))
        driver.end("t", Outcome.REFUSED)
    else:
        driver.vanish("t")
    assert driver.state("t") is S.SCHEDULED
    assert driver.machine.tries[0] == 1
    driver.run("t")
    assert (driver.machine.tries[0], driver.machine.fence[0]) == (1, 2)


@pytest.mark.parametrize("vanished", [False, True])
def test_an_attempt_lost_after_its_start_fails_its_try(vanished: bool) -> None:
    driver = MachineDriver(task("t", retries=1, retry_delay=SECOND)).begin()
    for state in (S.UP_FOR_RETRY, S.FAILED):
        driver.start("t")
        out = driver.vanish("t") if vanished else driver.end("t", Outcome.LOST, reason="its host died")
        assert driver.state("t") is state
        assert isinstance(out[0], e.Move)
        assert out[0].cause == "its host died"
        if state is S.UP_FOR_RETRY:
            driver.wake("t")


def test_lost_attempts_repeat_repeats_the_try() -> None:
    """Or the setting of the deployment, for tasks that do not choose."""
    driver = MachineDriver(task("chooses", lost_attempts="repeat"), task("silent"), task("fails", lost_attempts="fail"))
    driver.machine.facts = driver.facts._replace(repeat_lost=True)
    driver.begin()
    for name in ("chooses", "silent", "fails"):
        driver.start(name).vanish(name)
    assert driver.states() == {"chooses": "scheduled", "silent": "scheduled", "fails": "failed"}
    assert [driver.machine.tries[slot] for slot in range(3)] == [1, 1, 1]


@pytest.mark.spec("S170")
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_requeue_limit_bounds_lost_attempts(limit: int) -> None:
    """Then the task has failed, and the reason says why."""
    driver = MachineDriver(task("t"), requeue_limit=limit).begin()
    for _ in range(limit):
        driver.admit("t").vanish("t")
        assert driver.state("t") is S.SCHEDULED
    out = driver.admit("t").vanish("t")
    assert driver.state("t") is S.FAILED
    assert isinstance(out[0], e.Move)
    assert out[0].cause == f"its host died; it was lost {limit + 1} times, which is the limit"


@pytest.mark.spec("S169")
def test_requeues_are_counted_per_try() -> None:
    """The limit is about one try."""
    driver = MachineDriver(task("t", retries=1, retry_delay=0), requeue_limit=1).begin()
    for _ in range(2):
        driver.admit("t").vanish("t")
    assert (driver.state("t"), driver.machine.tries[0]) == (S.SCHEDULED, 2)
    driver.start("t").end("t", Outcome.REFUSED)
    assert driver.state("t") is S.SCHEDULED


def test_a_deferred_task_continues_in_the_same_try() -> None:
    driver = MachineDriver(task("t", retries=3), task("after", "t")).begin()
    driver.run("t", Outcome.DEFERRED)
    assert driver.state("t") is S.DEFERRED
    out = driver.feed(e.WaitOver(0, 1, driver.now, None, "its trigger fired"))
    assert (driver.state("t"), driver.machine.tries[0]) == (S.SCHEDULED, 1)
    assert isinstance(out[0], e.Move)
    assert out[0].cause == "its trigger fired"
    driver.run("t")
    assert (driver.state("t"), driver.state("after"), driver.machine.tries[0]) == (S.SUCCESS, S.SCHEDULED, 1)


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
    driver = MachineDriver(task("t", retries=1), task("after", "t")).begin()
    driver.run("t", Outcome.DEFERRED)
    driver.feed(e.WaitOver(0, 1, driver.now, outcome, "what it waited for has come"))
    assert (driver.state("t"), driver.state("after")) == (state, after)


def test_the_end_of_a_wait_counts_once_and_under_its_fence() -> None:
    driver = MachineDriver(task("t")).begin()
    driver.run("t", Outcome.DEFERRED)
    for event in (e.WaitOver(0, 0, driver.now), e.WaitOver(0, 2, driver.now)):
        assert isinstance(driver.feed(event)[0], e.Refusal)
    driver.feed(e.WaitOver(0, 1, driver.now))
    assert isinstance(driver.feed(e.WaitOver(0, 1, driver.now))[0], e.Refusal)


def test_an_attempt_whose_start_was_never_accepted_cannot_defer() -> None:
    driver = MachineDriver(task("t")).begin()
    driver.admit("t")
    assert isinstance(driver.end("t", Outcome.DEFERRED)[0], e.Refusal)


# --- task dates ------------------------------------------------------------------------------------------------------


def test_tasks_outside_of_their_dates_are_removed() -> None:
    """The DAG's own start date does not count as the task's: a run triggered before it has all tasks."""
    later = DATE + DAY
    driver = MachineDriver(
        task("always there", start_date=later),
        task("not yet", start_date=later + DAY),
        task("not any more", end_date=DATE - DAY),
        task("after", "not any more"),
        start_date=later,
    ).begin()
    assert driver.states() == {
        "always there": "scheduled",
        "not yet": "removed",
        "not any more": "removed",
        "after": "scheduled",
    }
