"""The wall clock and the monotonic clock, which must not be mixed."""

from __future__ import annotations

import time

import pytest

from tradewind.platform.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_reads_both_clocks_in_microseconds() -> None:
    clock: Clock = SystemClock()
    before = time.time_ns() // 1000, time.monotonic_ns() // 1000
    read = clock.wall(), clock.monotonic()
    after = time.time_ns() // 1000, time.monotonic_ns() // 1000
    assert before[0] <= read[0] <= after[0]
    assert before[1] <= read[1] <= after[1]


def test_advancing_moves_both_clocks() -> None:
    clock = ManualClock()
    wall, monotonic = clock.wall(), clock.monotonic()
    clock.advance(1_500_000)
    assert (clock.wall() - wall, clock.monotonic() - monotonic) == (1_500_000, 1_500_000)


def test_a_suspend_moves_only_the_wall_clock() -> None:
    clock = ManualClock(monotonic=7)
    wall = clock.wall()
    clock.suspend(3_600_000_000)
    assert (clock.wall() - wall, clock.monotonic()) == (3_600_000_000, 7)


def test_setting_the_date_back_does_not_move_the_monotonic_clock() -> None:
    clock = ManualClock(wall=1_000, monotonic=7)
    clock.jump_wall(-900)
    assert (clock.wall(), clock.monotonic()) == (100, 7)


@pytest.mark.parametrize("move", [ManualClock.advance, ManualClock.suspend])
def test_time_cannot_go_backwards(move: object) -> None:
    clock = ManualClock(monotonic=7)
    with pytest.raises(ValueError, match="backwards"):
        move(clock, -1)  # type: ignore[operator]
    assert clock.monotonic() == 7


def test_the_difference_of_the_two_clocks_is_random() -> None:
    """So code that compares one with the other fails at once."""
    distances = {clock.wall() - clock.monotonic() for clock in (ManualClock() for _ in range(20))}
    assert len(distances) == 20
