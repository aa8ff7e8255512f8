"""The number of cancelled timers in the loop is bounded."""

from __future__ import annotations

from functools import partial

from tradewind.model.moments import DAY, SECOND
from tradewind.platform.clock import ManualClock
from tradewind.platform.loop import CANCELLED_MAX, Loop


def test_cancelled_timers_leave_the_loop_long_before_they_would_be_due() -> None:
    """Each task has a time limit of a day and ends after a second."""
    clock = ManualClock()
    loop = Loop(clock)
    kept = [loop.call_later(DAY, lambda: None) for _ in range(10)]
    most = 0
    for _ in range(5_000):
        limit = loop.call_later(DAY, lambda: None)
        clock.advance(SECOND // 10)
        loop.turn(0)
        limit.cancel()
        limit.cancel()
        most = max(most, len(loop._timers))
    assert most <= 2 * (CANCELLED_MAX + len(kept)) + 2


def test_remaining_timers_run_in_order() -> None:
    clock = ManualClock()
    loop = Loop(clock)
    came: list[int] = []
    delays = [(number * 7919) % 1000 for number in range(1000)]
    handles = [loop.call_later(delay + 1, partial(came.append, delay)) for delay in delays]
    for i, handle in enumerate(handles):
        if i % 4:
            handle.cancel()
    clock.advance(SECOND)
    loop.turn(0)
    assert came == sorted((i * 7919) % 1000 for i in range(0, 1000, 4))


def test_cancelling_a_finished_timer_is_not_counted() -> None:
    clock = ManualClock()
    loop = Loop(clock)
    for _ in range(3 * CANCELLED_MAX):
        handle = loop.call_later(0, lambda: None)
        loop.turn(0)
        handle.cancel()
    assert loop._cancelled == 0
