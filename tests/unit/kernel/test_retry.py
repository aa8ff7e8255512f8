"""When a failed task is tried again."""

from __future__ import annotations

import pytest

from tests.unit.kernel.machine_driver import MachineDriver, task
from tradewind.kernel import events as e
from tradewind.kernel.retry import LONGEST, retry_delay
from tradewind.model.moments import DAY, MINUTE, SECOND
from tradewind.model.states import Outcome, TaskState


def test_without_back_off_the_delay_is_retry_delay() -> None:
    """Every try waits equally long."""
    plain = task("t", retry_delay=7 * SECOND)
    assert [retry_delay(plain, "d", None, number) for number in (1, 2, 9)] == [7 * SECOND] * 3


@pytest.mark.parametrize("number", range(1, 8))
def test_back_off_grows_and_spreads(number: int) -> None:
    """delay·m^(try−1), plus less than as much again."""
    task_ = task("t", retry_delay=10 * SECOND, retry_exponential_backoff=2.0)
    grown = 10 * SECOND * 2 ** (number - 1)
    delay = retry_delay(task_, "d", 5, number)
    assert grown <= delay < 2 * grown
    assert delay == retry_delay(task_, "d", 5, number), "the spread is fixed, so that a replay decides the same"


def test_tasks_that_failed_together_are_retried_at_different_moments() -> None:
    """The spread differs by DAG, task, date and try."""
    delays = [
        retry_delay(task(name, retry_delay=MINUTE, retry_exponential_backoff=1.0), dag_id, date, 1)
        for name in "abcdefgh"
        for dag_id in ("d", "e")
        for date in (1, 2, None)
    ]
    assert len(set(delays)) == len(delays)


@pytest.mark.parametrize("number", [20, 500, 100_000])
def test_no_back_off_waits_longer_than_a_day(number: int) -> None:
    """Also where the power overflows."""
    task_ = task("t", retry_delay=MINUTE, retry_exponential_backoff=2.5)
    assert retry_delay(task_, "d", None, number) == LONGEST == DAY


@pytest.mark.parametrize("back_off", [0.0, 3.0])
def test_max_retry_delay_limits_every_delay(back_off: float) -> None:
    """It limits the plain delay and the delay with back-off."""
    task_ = task("t", retry_delay=MINUTE, retry_exponential_backoff=back_off, max_retry_delay=30 * SECOND)
    assert retry_delay(task_, "d", None, 6) == 30 * SECOND


@pytest.mark.spec("S158", "S273")
def test_a_retry_is_scheduled_when_its_delay_is_over() -> None:
    """Failed at t, due at t + delay: not before, and then at once."""
    driver = MachineDriver(task("t", retries=1, retry_delay=60 * SECOND)).begin()
    out = driver.run("t", Outcome.FAILED)
    failed_at = driver.now
    assert out[-1] == e.Timer(0, failed_at + 60 * SECOND)
    assert driver.state("t") is TaskState.UP_FOR_RETRY
    early = driver.feed(e.TimerDue(0, failed_at + 59 * SECOND))
    assert isinstance(early[0], e.Refusal)
    driver.wake("t")
    assert driver.now == failed_at + 60 * SECOND
    assert driver.state("t") is TaskState.SCHEDULED
    assert driver.machine.tries[0] == 2


def test_a_retry_delay_in_the_report_overrides_the_definition() -> None:
    """retry_delay_override of a retry policy."""
    driver = MachineDriver(task("t", retries=1, retry_delay=60 * SECOND)).begin().start("t")
    out = driver.end("t", Outcome.FAILED, retry_delay=5 * SECOND)
    assert out[-1] == e.Timer(0, driver.now + 5 * SECOND)


def test_without_delay_the_next_try_is_scheduled_at_once() -> None:
    """No timer is needed."""
    driver = MachineDriver(task("t", retries=1, retry_delay=0)).begin()
    out = driver.run("t", Outcome.FAILED)
    assert not [decision for decision in out if isinstance(decision, e.Timer)]
    assert driver.state("t") is TaskState.SCHEDULED


@pytest.mark.spec("S177", "S178")
def test_retries_are_counted_and_a_hard_failure_is_not_retried() -> None:
    """retries = 2 gives three tries; AirflowFailException gives one."""
    driver = MachineDriver(task("t", retries=2, retry_delay=0), task("hard", retries=2, retry_delay=0)).begin()
    for _ in range(3):
        driver.run("t", Outcome.FAILED)
    driver.run("hard", Outcome.FAILED_FINAL)
    assert driver.states() == {"t": "failed", "hard": "failed"}
    assert list(driver.machine.tries) == [3, 1]


@pytest.mark.spec("S176")
def test_a_reschedule_does_not_use_up_a_try() -> None:
    """A sensor may be called a hundred times in the same try, which keeps its start."""
    driver = MachineDriver(task("sensor")).begin().start("sensor")
    began = driver.machine.started_at[0]
    for _ in range(100):
        driver.end("sensor", Outcome.RESCHEDULE, reschedule_at=driver.now + 30 * SECOND)
        assert driver.state("sensor") is TaskState.UP_FOR_RESCHEDULE
        driver.wake("sensor")
        driver.start("sensor")
    assert driver.machine.tries[0] == 1
    assert driver.machine.started_at[0] == began
    assert driver.machine.fence[0] == 101


def test_a_reschedule_to_a_past_moment_is_scheduled_at_once() -> None:
    """No timer is needed for it."""
    driver = MachineDriver(task("sensor")).begin().start("sensor")
    out = driver.end("sensor", Outcome.RESCHEDULE, reschedule_at=driver.now - SECOND)
    assert not [decision for decision in out if isinstance(decision, e.Timer)]
    assert driver.state("sensor") is TaskState.SCHEDULED
