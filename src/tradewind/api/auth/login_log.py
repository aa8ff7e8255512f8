"""Logins, failed logins and logouts on their way to the audit log.

The API writes nothing to the database: the scheduler does, by the commands `note_logins` and `revoke_token`. What is sent is
bounded, so that whoever guesses passwords fills neither the database nor the scheduler's inbox:

- the same event of the same name and address is one row a minute at most, with a count;
- beyond a number of rows a minute for each kind of event, names and addresses are counted together in one row.

A scheduler that is away holds up no login. What waits is kept (bounded, too) and sent when the scheduler is back. A token whose
logout waits is refused by this process meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, TypeVar

from tradewind.model.errors import TradewindError, Unreachable, WrongArgument
from tradewind.model.moments import MINUTE, SECOND
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock
from tradewind.wire.commands import Command, LoginRow, NoteLogins, RevokeToken

R = TypeVar("R")

LOGIN, FAILED = "login", "login failed"
ROWS_PER_MINUTE = {LOGIN: 100, FAILED: 20}
"""By kind of event: names and addresses that get a row of their own."""
NAME_MAX, ADDRESS_MAX = 200, 100
"""Characters that are kept; a proxy may call anything an address."""
LOGOUTS_MAX = 1_000
"""Logouts that may wait for the scheduler."""
_TRY_AGAIN = 10 * SECOND
_SEND_SECONDS = 2.0

_log = Log("api")


class Call(Protocol):
    """Has the scheduler carry out a command, as `ControlClient.call` does."""

    def __call__(self, command: Command[R], /, *, actor: str | None = None, timeout: float | None = None) -> R: ...


class Who(NamedTuple):
    """Both empty: several, counted together."""

    name: str
    address: str


class Counted(NamedTuple):
    """How often something happened, and its first and last moment (microseconds)."""

    times: int
    first: int
    last: int

    def plus(self, other: Counted) -> Counted:
        return Counted(self.times + other.times, min(self.first, other.first), max(self.last, other.last))


SEVERAL = Who("", "")


class Tally:
    """Counts one kind of event. No clock: `at` and `now` are microseconds of a clock that never goes back.

    Args:
        rows: at most so many are taken in a minute, and at most so many wait, besides the one for several.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._waiting: dict[Who, Counted] = {}
        self._taken_at: dict[Who, int] = {}
        """When a row was taken, of the last minute."""

    def add(self, who: Who, what: Counted) -> None:
        if who not in self._waiting and len(self._waiting) >= self._rows:
            who = SEVERAL
        known = self._waiting.get(who)
        self._waiting[who] = what if known is None else known.plus(what)

    def take(self, now: int) -> dict[Who, Counted]:
        """What is due now; it does not wait any more."""
        self._forget(now)
        due = {}
        for who in list(self._waiting):
            if who not in self._taken_at and (len(self._taken_at) < self._rows or who == SEVERAL):
                due[who] = self._waiting.pop(who)
                self._taken_at[who] = now
        return due

    def put_back(self, taken: dict[Who, Counted]) -> None:
        """What `take` gave could not be sent: it waits again, and is due."""
        for who, what in taken.items():
            self._taken_at.pop(who, None)
            self.add(who, what)

    def take_all(self) -> dict[Who, Counted]:
        """Everything that waits."""
        found, self._waiting = self._waiting, {}
        return found

    def next_due(self, now: int) -> int | None:
        """Microseconds until something may be due; None: nothing waits."""
        if not self._waiting:
            return None
        self._forget(now)
        if len(self._taken_at) < self._rows and self._waiting.keys() - self._taken_at.keys():
            return 0
        return max(0, min(self._taken_at.values(), default=now) + MINUTE - now)

    def _forget(self, now: int) -> None:
        self._taken_at = {who: at for who, at in self._taken_at.items() if now - at < MINUTE}


class _Logout(NamedTuple):
    name: str
    address: str
    expires_at: int


class LoginLog:
    """See the module. Safe for several threads.

    Args:
        call: gives the calling thread's line to the scheduler.
    """

    def __init__(self, clock: Clock, call: Callable[[], Call]) -> None:
        self._clock = clock
        self._call = call
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._tallies = {event: Tally(rows) for event, rows in ROWS_PER_MINUTE.items()}
        self._logouts: dict[str, _Logout] = {}
        """Those that wait for the scheduler, by the name of their token (jti)."""
        self._not_before = 0
        self._away = False

    def note(self, event: str, name: str, address: str) -> None:
        """Count a login or a failed one. `flush` sends it."""
        at = self._clock.wall()
        with self._lock:
            self._tallies[event].add(Who(name[:NAME_MAX], address[:ADDRESS_MAX]), Counted(1, at, at))

    def log_out(self, jti: str, expires_at: int, name: str, address: str) -> None:
        """End a token: at once in this process, and in the database as soon as the scheduler can write.

        Raises:
            Unreachable: no scheduler lives, and too many logouts wait for one.
        """
        with self._lock:
            if len(self._logouts) >= LOGOUTS_MAX and jti not in self._logouts:
                raise Unreachable("The scheduler is away, and too many logouts wait for it already.")
            self._logouts[jti] = _Logout(name, address[:ADDRESS_MAX], expires_at)

    def is_logged_out(self, jti: str) -> bool:
        """Does the logout of this token wait for the scheduler?"""
        return jti in self._logouts

    def flush(self) -> int | None:
        """Send what is due. Microseconds until there may be more to send; None: nothing waits."""
        with self._sending:
            now = self._clock.monotonic()
            if now >= self._not_before:
                with self._lock:
                    due = {event: tally.take(now) for event, tally in self._tallies.items()}
                if not self._send(due):
                    self._not_before = now + _TRY_AGAIN
        with self._lock:
            waits = [wait for tally in self._tallies.values() if (wait := tally.next_due(now)) is not None]
            if self._logouts:
                waits.append(0)
        return None if not waits else max(min(waits), self._not_before - now, 0)

    def close(self) -> None:
        """The process ends: send everything; what cannot be sent stands in the log of the API."""
        with self._sending:
            with self._lock:
                due = {event: tally.take_all() for event, tally in self._tallies.items()}
            if (any(due.values()) or self._logouts) and not self._send(due):
                for event, rows in self._take_all().items():
                    for who, what in rows.items():
                        _log.warning(event, name=who.name, address=who.address, count=what.times)
                for logout in self._logouts.values():
                    _log.warning("logout (the token lives on when the API starts again)", name=logout.name)

    def _take_all(self) -> dict[str, dict[Who, Counted]]:
        with self._lock:
            return {event: tally.take_all() for event, tally in self._tallies.items()}

    def _send(self, due: dict[str, dict[Who, Counted]]) -> bool:
        """Whether the scheduler took everything. What it did not take waits again."""
        call, wall = self._call(), self._clock.wall()
        try:
            for jti, logout in list(self._logouts.items()):
                if logout.expires_at > wall:
                    call(RevokeToken(jti, logout.expires_at, logout.address), actor=logout.name, timeout=_SEND_SECONDS)
                with self._lock:
                    self._logouts.pop(jti, None)
            self._send_rows(call, due)
        except TradewindError as error:
            with self._lock:
                for event, found in due.items():
                    self._tallies[event].put_back(found)
            if not self._away:
                _log.warning("logins cannot be told to the scheduler now; they are kept and told later", why=str(error))
            self._away = True
            return False
        self._away = False
        return True

    @staticmethod
    def _send_rows(call: Call, due: dict[str, dict[Who, Counted]]) -> None:
        """Raises TradewindError: they were not written, and may be later."""
        rows = [_row(event, who, what) for event, found in due.items() for who, what in found.items()]
        if not rows:
            return
        try:
            call(NoteLogins(rows), timeout=_SEND_SECONDS)
        except WrongArgument as error:  # it would be refused again
            _log.warning("logins are missing in the audit log", rows=len(rows), why=str(error))


def _row(event: str, who: Who, what: Counted) -> LoginRow:
    kind: Literal["login", "login failed"] = "login" if event == LOGIN else "login failed"
    return LoginRow(kind, who.name, who.address, what.times, what.first, what.last)
