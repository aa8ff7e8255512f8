"""The event loop: sockets, signals and timers in one thread.

The scheduler, the worker host, the parser and the supervisor each run one loop. The loop starts no threads and does not poll: it
sleeps until a descriptor is ready, a signal arrives, or the earliest timer is due.
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
"""Number of cancelled timers that may stay in the heap."""


class TimerHandle:
    """A timer that can be cancelled. Handles are ordered by due time."""

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
    """An event loop. Times are monotonic microseconds of `clock`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.stopping = False
        self._selector = selectors.DefaultSelector()
        self._timers: list[TimerHandle] = []
        self._order = 0
        self._cancelled = 0
        """Upper bound of the number of cancelled timers in the heap."""
        self._signals: dict[int, Callable[[], None]] = {}
        self._wake_read = -1

    # --- registration -----------------------------------------------------------------------------------------------

    def watch(self, file: Any, events: int, callback: Callback) -> None:
        """Call `callback` when the file is ready. A second call for the same file replaces events and callback."""
        try:
            self._selector.register(file, events, callback)
        except KeyError:
            self._selector.modify(file, events, callback)

    def unwatch(self, file: Any) -> None:
        """Stop watching a file. It is no error if the file is not watched."""
        try:
            self._selector.unregister(file)
        except (KeyError, ValueError):
            pass

    def call_at(self, due: int, call: Callable[[], None]) -> TimerHandle:
        self._order += 1
        handle = TimerHandle(due, self._order, call, self._on_cancel)
        heappush(self._timers, handle)
        return handle

    def _on_cancel(self) -> None:
        """Remove cancelled timers from the heap if more than half are cancelled; others leave it at their due time."""
        self._cancelled += 1
        if self._cancelled > CANCELLED_MAX and 2 * self._cancelled > len(self._timers):
            self._timers = [handle for handle in self._timers if handle.call is not None]
            heapify(self._timers)
            self._cancelled = 0

    def call_later(self, delay: int, call: Callable[[], None]) -> TimerHandle:
        return self.call_at(self.clock.monotonic() + delay, call)

    def on_signal(self, number: int, call: Callable[[], None]) -> None:
        """When the signal arrives, call `call` from the loop, not from the signal handler."""
        if self._wake_read < 0:
            self._wake_read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            os.set_inheritable(self._wake_read, False)
            signal.set_wakeup_fd(write, warn_on_full_buffer=False)
            self.watch(self._wake_read, selectors.EVENT_READ, self._take_signals)
        self._signals[number] = call
        signal.signal(number, _ignore)

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until `stop` is called."""
        while not self.stopping:
            self.turn()

    def stop(self) -> None:
        self.stopping = True

    def turn(self, at_most: int | None = None) -> None:
        """Wait for the next event (at most this many microseconds), and run all callbacks that are ready."""
        for key, events in self._selector.select(self._timeout(at_most)):
            # an earlier callback of this turn may have closed the file, and a new file may have the same number
            watched = self._selector.get_map().get(key.fd)
            if watched is not None and watched.data is key.data:
                key.data(events)
        self._run_timers()

    def close(self) -> None:
        self._selector.close()

    def _timeout(self, at_most: int | None) -> float | None:
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
            call, handle.call = handle.call, None  # a later cancel has no effect
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


def _ignore(number: int, stack: object) -> None:
    """Do nothing: the wakeup descriptor has the signal's number already."""
