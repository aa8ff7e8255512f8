"""The watchdog finds stalled processes."""

from __future__ import annotations

from tradewind.cli.watchdog import CHECKS_PER_LIMIT, START_LIMITS, Watchdog
from tradewind.model.moments import SECOND

LIMIT = 60 * SECOND
LOOK = LIMIT // CHECKS_PER_LIMIT


def test_a_stall_is_found_within_one_and_a_third_of_the_limit() -> None:
    for offset in range(0, LOOK, SECOND):
        dog = Watchdog(LIMIT, 0)
        dog.record_progress(offset)
        looks = [look for look in range(LOOK, 3 * LIMIT, LOOK) if dog.is_stalled(look)]
        assert LIMIT < looks[0] - offset <= LIMIT + 2 * LOOK


def test_a_process_that_reports_progress_is_not_stalled() -> None:
    dog = Watchdog(LIMIT, 0)
    for second in range(0, 600, 5):
        dog.record_progress(second * SECOND)
        assert not dog.is_stalled((second + 4) * SECOND)


def test_a_pause_of_the_whole_machine_is_not_a_stall() -> None:
    """The clock may have continued (a paused virtual machine): the first check comes before a process can report progress."""
    dog = Watchdog(LIMIT, 0)
    dog.record_progress(SECOND)
    resumed = 3600 * SECOND
    assert not dog.is_stalled(resumed)
    dog.record_progress(resumed + SECOND)
    assert not dog.is_stalled(resumed + LOOK)


def test_a_starting_process_may_take_longer() -> None:
    dog = Watchdog(LIMIT, 0)
    assert not dog.is_stalled(2 * LIMIT)
    assert not dog.is_stalled(3 * LIMIT)
    assert not dog.is_stalled(START_LIMITS * LIMIT + 1)
    assert dog.is_stalled(START_LIMITS * LIMIT + LOOK)
    assert dog.silent_for(START_LIMITS * LIMIT + LOOK) == START_LIMITS * LIMIT + LOOK
