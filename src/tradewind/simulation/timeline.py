"""Virtual time: one heap of events, and processes that crash, pause and have their own clocks."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from tradewind.model.moments import SECOND
from tradewind.platform.loop import Loop, TimerHandle

START = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""

Call = Callable[[], None]


class Crash(BaseException):
    """The current process dies now. `except Exception` does not catch it."""


class Violation(Exception):
    """A guarantee was violated."""


class Timeline:
    """The events of the simulation, the random streams of the seed, and the hash of all events.

    The order of events with the same time is drawn from the seed.
    """

    def __init__(self, seed: int) -> None:
        self.now = 0
        """Microseconds of true time since the start. No process can read it."""
        self.events = 0
        self.stopped = False
        self.sometimes: Counter[str] = Counter()
        """Situations that simulations should reach → number of times that they were reached."""
        self.faults: Counter[str] = Counter()
        """Number of injected faults by kind."""
        self.trace: list[str] | None = None
        """The events as text for people; None: not recorded."""
        self._heap: list[tuple[int, float, int, Process | None, int, Call]] = []
        self._order = 0
        self._hash = hashlib.blake2b(digest_size=8)
        self._ties = random.Random(f"{seed}/ties")
        self.seed = seed

    def stream(self, name: str) -> random.Random:
        """Return an independent random stream for one purpose, so that additional draws here change nothing elsewhere."""
        return random.Random(f"{self.seed}/{name}")

    def at(self, moment: int, process: Process | None, call: Call) -> None:
        """Schedule a call at a true time, in a process (dropped if the process has died by then) or in none."""
        self._order += 1
        life = process.life if process is not None else 0
        heappush(self._heap, (max(moment, self.now), self._ties.random(), self._order, process, life, call))

    def after(self, delay: int, process: Process | None, call: Call) -> None:
        self.at(self.now + delay, process, call)

    def note(self, *what: Any) -> None:
        """Add an event to the hash and the trace."""
        text = f"{self.now} {' '.join(map(str, what))}"
        self._hash.update(text.encode())
        if self.trace is not None:
            self.trace.append(text)

    def note_bytes(self, label: str, data: bytes) -> None:
        self._hash.update(b"%d %s " % (self.now, label.encode()))
        self._hash.update(data)
        if self.trace is not None:
            self.trace.append(f"{self.now} {label} {data!r}")

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def run(self, until: int) -> None:
        """Process all events up to a true time."""
        heap = self._heap
        while heap and heap[0][0] <= until and not self.stopped:
            moment, _, _, process, life, call = heappop(heap)
            self.now = moment
            if process is None:
                self.events += 1
                call()
            elif process.alive and process.life == life:
                if process.paused_until > moment:
                    self.at(process.paused_until, process, call)
                    continue
                self.events += 1
                process.carry_out(call)
        if not self.stopped:
            self.now = until


class NodeClock:
    """The clocks of one machine: they run too fast or too slow, and the wall clock is sometimes changed."""

    __slots__ = ("_base_mono", "_base_true", "_base_wall", "_timeline", "rate")

    def __init__(self, timeline: Timeline, rate: float = 1.0) -> None:
        self._timeline = timeline
        self.rate = rate
        self._base_true = 0
        self._base_wall = START
        self._base_mono = timeline.stream("mono").randrange(10**12)

    def wall(self) -> int:
        return self._base_wall + int((self._timeline.now - self._base_true) * self.rate)

    def monotonic(self) -> int:
        return self._base_mono + int((self._timeline.now - self._base_true) * self.rate)

    def set_rate(self, rate: float) -> None:
        self._base_wall, self._base_mono = self.wall(), self.monotonic()
        self._base_true, self.rate = self._timeline.now, rate

    def jump(self, micros: int) -> None:
        """Change the wall clock."""
        self._base_wall += micros

    def true_delay(self, micros: int) -> int:
        """Return the true duration of a number of microseconds on this clock."""
        return max(0, int(micros / self.rate) + 1)


class Process:
    """A simulated process. When it crashes, its memory is lost and its scheduled calls are dropped."""

    def __init__(self, timeline: Timeline, name: str, clock: NodeClock) -> None:
        self.timeline = timeline
        self.name = name
        self.clock = clock
        self.alive = True
        self.life = 1
        self.paused_until = 0
        self.steps_left = -1
        """Number of steps until it crashes; negative: it does not crash."""
        self.on_death: list[Call] = []

    def carry_out(self, call: Call) -> None:
        """Execute one event of this process. A crash during the event ends only this process."""
        try:
            call()
        except Crash:
            self.die("crash")
        else:
            self.ended()

    def ended(self) -> None:
        """Called after each event."""

    def step(self, what: str) -> None:
        """Mark a step at which the process may crash.

        Raises:
            Crash: the process dies at this step.
        """
        if self.steps_left < 0:
            return
        self.steps_left -= 1
        if self.steps_left < 0:
            self.timeline.note(self.name, "crashes at", what)
            self.timeline.sometimes[f"crash at {what}"] += 1
            raise Crash

    def die(self, how: str) -> None:
        if not self.alive:
            return
        self.alive = False
        self.life += 1
        self.steps_left = -1
        self.timeline.note(self.name, "dies:", how)
        calls, self.on_death = self.on_death, []
        for call in calls:
            call()

    def pause(self, micros: int) -> None:
        self.paused_until = self.timeline.now + micros


class VirtualLoop(Loop):
    """The event loop of a process: timers in virtual time, no sockets, no signals."""

    def __init__(self, process: Process) -> None:
        self.clock = process.clock
        self.stopping = False
        self._process = process
        self._count = 0

    def watch(self, file: Any, events: int, callback: Callable[[int], None]) -> None:
        """Do nothing: connections call their receiver themselves."""

    def unwatch(self, file: Any) -> None:
        pass

    def call_at(self, due: int, call: Call) -> TimerHandle:
        self._count += 1
        handle = TimerHandle(due, self._count, call)

        def fire() -> None:
            wanted = handle.call
            if wanted is not None:
                handle.call = None
                wanted()

        process = self._process
        delay = process.clock.true_delay(due - process.clock.monotonic())
        process.timeline.after(delay, process, fire)
        return handle

    def call_later(self, delay: int, call: Call) -> TimerHandle:
        return self.call_at(self._process.clock.monotonic() + delay, call)

    def on_signal(self, number: int, call: Call) -> None:
        pass

    def stop(self) -> None:
        self.stopping = True


def draw_delay(rng: random.Random, typical: int) -> int:
    """Draw a delay around `typical`: between half of it and twice, in one of fifty cases up to 30 times."""
    factor = rng.uniform(2, 30) if rng.random() < 0.02 else rng.uniform(0.5, 2)
    return max(1, int(typical * factor))


def minutes(number: float) -> int:
    return int(number * 60 * SECOND)
