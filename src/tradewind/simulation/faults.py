"""Which faults a seed has, and how often: a class is off with a probability of 40 %, else its rate is drawn (swarm testing)."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

from tradewind.model.moments import SECOND
from tradewind.simulation.network import Trouble

OFF = 0.4


class Profile(NamedTuple):
    """Rates are events per hour, shares are between 0 and 1."""

    scheduler_crashes: float = 0
    scheduler_pauses: float = 0
    scheduler_stops: float = 0
    """Normal stops, each followed by a start."""
    takeovers: float = 0
    """Starts of another scheduler while the old one still runs, until it notices."""
    host_crashes: float = 0
    host_pauses: float = 0
    host_stops: float = 0
    links_cut: float = 0
    store_faults: float = 0
    """Failing statements."""
    store_outages: float = 0
    """Periods in which the store is busy or full."""
    commits_unknown: float = 0
    """Share."""
    clock_jumps: float = 0
    clock_rate: float = 0
    """Maximum deviation of the clocks of scheduler and host."""
    messages: Trouble = Trouble()
    commands: float = 0
    """Commands of users, in addition to ordinary triggers."""
    fork_fails: float = 0
    """Share."""
    tasks_die: float = 0
    """Share of attempts that end without a report."""
    tasks_linger: float = 0
    """Share of attempts that ignore TERM, or continue after their report."""
    stray_starts: float = 0
    """Start requests of a second process for the same attempt."""
    wakeups_lost: float = 0
    """Share of dropped wake-ups, among those with a safety net in production."""
    processes_killed: float = 0
    """Task processes that are killed from outside."""
    triggerers_die: float = 0
    triggerers_pause: float = 0
    stray_words: float = 0
    """Ends of triggers that are reported again, much later."""

    def kinds(self) -> list[str]:
        """The classes of faults that this profile has."""
        found = [name for name in self._fields if name != "messages" and getattr(self, name)]
        return found + [f"messages {name}" for name in ("lost", "repeated", "late") if getattr(self.messages, name)]


CALM = Profile()


def maybe(rng: random.Random, low: float, high: float) -> float:
    """Draw a rate between two limits, or 0."""
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return 0.0 if rng.random() < OFF else value


def draw(rng: random.Random) -> Profile:
    trouble = Trouble(
        maybe(rng, 0.002, 0.1), maybe(rng, 0.002, 0.2), maybe(rng, 0.002, 0.2), int(math.exp(rng.uniform(0, 10)) * 3000)
    )
    return Profile(
        scheduler_crashes=maybe(rng, 0.5, 20),
        scheduler_pauses=maybe(rng, 0.5, 10),
        scheduler_stops=maybe(rng, 0.3, 4),
        takeovers=maybe(rng, 0.3, 6),
        host_crashes=maybe(rng, 0.3, 8),
        host_pauses=maybe(rng, 0.5, 10),
        host_stops=maybe(rng, 0.3, 4),
        links_cut=maybe(rng, 0.5, 20),
        store_faults=maybe(rng, 1, 60),
        store_outages=maybe(rng, 0.3, 6),
        commits_unknown=maybe(rng, 0.001, 0.05),
        clock_jumps=maybe(rng, 0.2, 3),
        clock_rate=maybe(rng, 0.001, 0.1),
        messages=trouble,
        commands=maybe(rng, 2, 60),
        fork_fails=maybe(rng, 0.005, 0.1),
        tasks_die=maybe(rng, 0.01, 0.2),
        tasks_linger=maybe(rng, 0.02, 0.3),
        stray_starts=maybe(rng, 0.5, 30),
        wakeups_lost=maybe(rng, 0.002, 0.1),
        processes_killed=maybe(rng, 0.5, 20),
        triggerers_die=maybe(rng, 2, 60),
        triggerers_pause=maybe(rng, 0.5, 10),
        stray_words=maybe(rng, 2, 100),
    )


def pause_length(rng: random.Random) -> int:
    """Draw a duration from a second to some minutes."""
    return int(math.exp(rng.uniform(0, 5.5)) * SECOND)
