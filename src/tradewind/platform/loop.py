"""One thread, one loop: sockets, signals and timers.

The scheduler, the worker host and the supervisor each are one actor around such a loop. It does nothing by itself: no thread,
no polling; it sleeps until a descriptor is ready, a signal arrives or the earliest timer is due.
"""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

from tradewind.platform.clock import Clock

Callback = Callable[[int], None]
"""Called with the selector's event mask."""


CANCELLED_MAX = 100
"""So many cancelled timers are no burden."""


class TimerHandle:
    """A timer that may be cancelled. Sorts by when it is due."""

    __slots__ = ("_cancelled", "call", "due", "order")

    def __init__(
        self, due: int, order: int, call: Callable[[], None] | None, cancelled: Callable[[], None] | None = None
    ) -> None:
        self.due = due
        self.order = order
        self.call = call
        self._cancelled = cancelled

    def cancel(self) -> None:
        if self.call is not None:
            self.call = None
            if self._cancelled is not None:
                self._cancelled()

    def __lt__(self, other: TimerHandle) -> bool:
        return (self.due, self.order) < (other.due, other.order)


class Loop:
    """See the module. Moments are monotonic microseconds of `clock`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.stopping = False
        self._selector = selectors.DefaultSelector()
        self._timers: list[TimerHandle] = []
        self._order = 0
        self._cancelled = 0
        """Timers in the heap that were cancelled, at most."""
        self._signals: dict[int, Callable[[], None]] = {}
        self._wake_read = -1

    # --- what to wait for -------------------------------------------------------------------------------------------

    def watch(self, file: Any, events: int, callback: Callback) -> None:
        """Call `callback` when the file is ready; watching it again changes events and callback."""
        try:
            self._selector.register(file, events, callback)
        except KeyError:
            self._selector.modify(file, events, callback)

    def unwatch(self, file: Any) -> None:
        """Forget a file; one that is not watched is no error."""
        try:
            self._selector.unregister(file)
        except (KeyError, ValueError):
            pass

    def call_at(self, due: int, call: Callable[[], None]) -> TimerHandle:
        self._order += 1
        handle = TimerHandle(due, self._order, call, self._one_cancelled)
        heappush(self._timers, handle)
        return handle

    def _one_cancelled(self) -> None:
        """A cancelled timer leaves the heap when it would be due, or here, when there are more of them than of others."""
        self._cancelled += 1
        if self._cancelled > CANCELLED_MAX and 2 * self._cancelled > len(self._timers):
            self._timers = [handle for handle in self._timers if handle.call is not None]
            heapify(self._timers)
            self._cancelled = 0

    def call_later(self, delay: int, call: Callable[[], None]) -> TimerHandle:
        return self.call_at(self.clock.monotonic() + delay, call)

    def on_signal(self, number: int, call: Callable[[], None]) -> None:
        """Call `call` from the loop, not from the handler, when the signal arrives."""
        if self._wake_read < 0:
            self._wake_read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            os.set_inheritable(self._wake_read, False)
            signal.set_wakeup_fd(write, warn_on_full_buffer=False)
            self.watch(self._wake_read, selectors.EVENT_READ, self._take_signals)
        self._signals[number] = call
        signal.signal(number, _note)

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until `stop`."""
        while not self.stopping:
            self.turn()

    def stop(self) -> None:
        self.stopping = True

    def turn(self, at_most: int | None = None) -> None:
        """Wait for the next thing (at most so many microseconds), and do everything that is ready."""
        for key, events in self._selector.select(self._patience(at_most)):
            # an earlier callback of this turn may have closed the file, and another one may have got its number
            watched = self._selector.get_map().get(key.fd)
            if watched is not None and watched.data is key.data:
                key.data(events)
        self._run_timers()

    def close(self) -> None:
        self._selector.close()

    def _patience(self, at_most: int | None) -> float | None:
        while self._timers and self._timers[0].call is None:
            heappop(self._timers)
        if not self._timers:
            return None if at_most is None else at_most / 1e6
        wait = max(0, self._timers[0].due - self.clock.monotonic())
        return (wait if at_most is None else min(wait, at_most)) / 1e6

    def _run_timers(self) -> None:
        now = self.clock.monotonic()
        while self._timers and self._timers[0].due <= now:
            handle = heappop(self._timers)
            call, handle.call = handle.call, None  # to cancel it from now on changes nothing
            if call is not None:
                call()

    def _take_signals(self, events: int) -> None:
        try:
            numbers = os.read(self._wake_read, 512)
        except BlockingIOError:
            return
        for number in dict.fromkeys(numbers):
            call = self._signals.get(number)
            if call is not None:
                call()


def _note(number: int, stack: object) -> None:
    """The wakeup descriptor has taken the note already."""
