"""When a process that stands still is to be ended."""

from __future__ import annotations

from tradewind.cli.watchdog import CHECKS_PER_LIMIT, START_LIMITS, Watchdog
from tradewind.model.moments import SECOND

LIMIT = 60 * SECOND
LOOK = LIMIT // CHECKS_PER_LIMIT


def test_process_that_stands_still_is_ended_within_one_and_a_third_of_the_limit() -> None:
    for offset in range(0, LOOK, SECOND):
        dog = Watchdog(LIMIT, 0)
        dog.record_progress(offset)
        looks = [look for look in range(LOOK, 3 * LIMIT, LOOK) if dog.is_stalled(look)]
        assert LIMIT < looks[0] - offset <= LIMIT + 2 * LOOK


def test_process_that_turns_is_left_alone() -> None:
    dog = Watchdog(LIMIT, 0)
    for second in range(0, 600, 5):
        dog.record_progress(second * SECOND)
        assert not dog.is_stalled((second + 4) * SECOND)


def test_machine_that_stood_still_with_everything_on_it_is_no_reason_to_end_anybody() -> None:
    """Its clock may have gone on (a paused virtual machine): the first look comes before anybody could say a word."""
    dog = Watchdog(LIMIT, 0)
    dog.record_progress(SECOND)
    resumed = 3600 * SECOND
    assert not dog.is_stalled(resumed)
    dog.record_progress(resumed + SECOND)
    assert not dog.is_stalled(resumed + LOOK)


def test_process_that_is_still_starting_may_take_longer() -> None:
    dog = Watchdog(LIMIT, 0)
    assert not dog.is_stalled(2 * LIMIT)
    assert not dog.is_stalled(3 * LIMIT)
    assert not dog.is_stalled(START_LIMITS * LIMIT + 1)
    assert dog.is_stalled(START_LIMITS * LIMIT + LOOK)
    assert dog.silent_for(START_LIMITS * LIMIT + LOOK) == START_LIMITS * LIMIT + LOOK
