"""The lease of a worker host that runs beside a scheduler, on one of several machines that share a database server.

If this machine is cut off from the others, a standby scheduler takes over. It waits 40 s for the attempts of this worker host
(`scheduler.duties.lost_workers`), then has them tried again on its own machine. So the tasks here must have ended by then:

    this machine is cut off       standby takes over          tasks here are stopped     the standby starts them again
    ────────┼──────────────────────────┼───────────────────────────┼─────────────────────────────┼────────▶
            0 s                      10 s or later          30 s, killed after 35 s        50 s or later

The lease counts from the moment at which the active scheduler sees that another one stands by, until this process ends. A
deployment with one scheduler has no lease: nobody can take over, and its tasks survive every outage of the network.

The lease is renewed by each message of a scheduler, which sends one every few seconds while it holds its own lease. A scheduler
that is connected and says nothing is stopped, and another one may have taken over. While no scheduler is connected, each answer
of the machine of the database server renews the lease. A refused connection is an answer too: this machine is not cut off, and
while the database is unavailable no other scheduler can take over. So tasks survive a restart of the database, however long it
takes. While no task runs, nothing is asked.

If the database answers, and another machine has the active scheduler but cannot be reached, the standby scheduler of this machine
says so (`gateway.scheduler_relay`).
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop
from tradewind.wire import gateway as g

log = Log("host")

CHECK_EVERY = SECOND
ASK_EVERY = 5 * SECOND
ANSWER_SECONDS = 4.0
"""Timeout for an answer of the database's machine."""

Address = tuple[str, int]
"""Host name or IP address, and port."""


class LeaseOwner(Protocol):
    """The interface of the worker host that the lease uses."""

    def is_busy(self) -> bool:
        """Whether a task is running."""

    def has_scheduler(self) -> bool:
        """Whether a scheduler is connected."""

    def lease_ended(self, reason: str, grace: int) -> None:
        """Stop all tasks, and kill them after `grace` microseconds."""


def machine_answers(address: Address) -> bool:
    """Whether the machine at this address answers; a refused connection is an answer too. Blocks for up to `ANSWER_SECONDS`."""
    try:
        socket.create_connection(address, timeout=ANSWER_SECONDS).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    except OSError:
        return False
    return True


def in_thread(call: Callable[[], None]) -> None:
    """Call `call` in a separate thread: an answer may take seconds, and the name of a machine may have to be resolved."""
    threading.Thread(target=call, name="database reachable?", daemon=True).start()


class LocalLease:
    """See the module.

    Args:
        addresses: of the database servers. All must answer: a single one may be cut off together with this machine.
        ask, in_background: `machine_answers` and `in_thread`; tests pass their own functions.
    """

    def __init__(
        self,
        loop: Loop,
        clock: Clock,
        owner: LeaseOwner,
        addresses: Sequence[Address],
        ask: Callable[[Address], bool] = machine_answers,
        in_background: Callable[[Callable[[], None]], None] = in_thread,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._owner = owner
        self._addresses = tuple(addresses)
        self._ask = ask
        self._in_background = in_background
        self._answers: SimpleQueue[tuple[int, bool]] = SimpleQueue()
        self._asked_at: int | None = None
        """The time of the question that has no answer yet."""
        self._next_question = 0
        self._until = clock.monotonic() + g.LEASE
        self._has_ended = False
        self._has_started = False

    def start(self) -> None:
        """Enforce the lease from now on: a standby scheduler may take over. Further calls have no effect."""
        if not self._has_started:
            self._has_started = True
            log.info("another scheduler stands by; if this machine is cut off for longer than the lease, its tasks are stopped")
            self.renew()
            self._loop.call_later(CHECK_EVERY, self._check)

    def renew(self) -> None:
        """Renew the lease now: a scheduler has sent a message, or no task runs."""
        self._renew_from(self._clock.monotonic())
        self._has_ended = False

    def end(self, reason: str) -> None:
        """Stop the tasks: the lease has run out."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._owner.is_busy():
            log.error("the lease of this worker host has run out; its tasks are stopped", why=reason)
        self._owner.lease_ended(reason, g.LEASE_GRACE)

    def _renew_from(self, moment: int) -> None:
        self._until = max(self._until, moment + g.LEASE)

    def _check(self) -> None:
        now = self._clock.monotonic()
        self._take_answers()
        if not self._owner.is_busy():
            self.renew()
        elif now > self._until:
            seconds = g.LEASE // SECOND
            self.end(f"for {seconds} seconds, this machine had no contact with a scheduler or with the database's machine")
        if self._owner.is_busy() and self._asked_at is None and now >= self._next_question:
            self._asked_at, self._next_question = now, now + ASK_EVERY
            self._in_background(partial(self._ask_all, now))
        self._loop.call_later(CHECK_EVERY, self._check)

    def _ask_all(self, asked_at: int) -> None:
        """Ask all addresses. Runs in the background; the next check takes the answers."""
        answered = False
        try:
            answered = all(self._ask(address) for address in self._addresses)
        finally:
            self._answers.put((asked_at, answered))

    def _take_answers(self) -> None:
        try:
            while True:
                asked_at, answered = self._answers.get_nowait()
                self._asked_at = None
                if answered and not self._owner.has_scheduler():  # a connected scheduler has to renew the lease itself
                    self._renew_from(asked_at)
        except Empty:
            return
