"""The event loop: files, timers, and callbacks that close each other's files."""

from __future__ import annotations

import os
import selectors

from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop


def test_a_callback_is_not_called_for_a_new_file_with_the_same_number() -> None:
    """Two pipes are ready; the first callback closes the second, and a third file gets its number."""
    loop = Loop(SystemClock())
    pipes = [os.pipe(), os.pipe()]
    called: list[str] = []

    def steal(mine: int, other: int) -> None:
        called.append("first")
        loop.unwatch(other)
        os.close(other)
        newcomer = os.dup(mine)
        assert newcomer == other
        loop.watch(newcomer, selectors.EVENT_READ, lambda events: called.append("newcomer"))
        loop.unwatch(mine)

    (a_read, a_write), (b_read, b_write) = pipes
    loop.watch(a_read, selectors.EVENT_READ, lambda events: steal(a_read, b_read))
    loop.watch(b_read, selectors.EVENT_READ, lambda events: steal(b_read, a_read))
    os.write(a_write, b"x")
    os.write(b_write, b"x")
    loop.turn(0)
    assert called == ["first"]
    loop.close()


def test_timers_run_in_order_and_cancelled_ones_do_not() -> None:
    loop = Loop(SystemClock())
    called: list[int] = []
    loop.call_later(20_000, lambda: called.append(2))
    loop.call_later(10_000, lambda: called.append(1))
    loop.call_later(15_000, lambda: called.append(3)).cancel()
    while len(called) < 2:
        loop.turn(1000)
    loop.turn(0)
    assert called == [1, 2]
    loop.close()
