"""The buffer of logins, failed logins and logouts that the API sends to the audit log.

The API writes nothing to the database: the scheduler does, by the commands `note_logins` and `revoke_token`. The number of rows is
bounded, so that somebody who guesses passwords fills neither the database nor the scheduler's inbox:

- the same event of the same name and address is one row a minute at most, with a count;
- each kind of event has a maximum of rows a minute; beyond it, names and addresses are counted together in one row.

A login does not wait for the scheduler. Without a scheduler the rows are kept (their number is bounded, too) and sent later.
Meanwhile this process refuses a token whose logout was not sent yet.
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
"""Kind of event → number of names and addresses that get a row of their own."""
NAME_MAX, ADDRESS_MAX = 200, 100
"""Characters that are kept: a proxy can send a text of any length as an address."""
LOGOUTS_MAX = 1_000
"""How many logouts can wait for the scheduler."""
_TRY_AGAIN = 10 * SECOND
_SEND_SECONDS = 2.0

_log = Log("api")


class Call(Protocol):
    """Asks the scheduler to execute a command, as `ControlClient.call`."""

    def __call__(self, command: Command[R], /, *, actor: str | None = None, timeout: float | None = None) -> R: ...


class LoginKey(NamedTuple):
    """Who has logged in, and from where. Both empty: several users, counted together."""

    name: str
    address: str


class LoginCount(NamedTuple):
    """How often an event happened, and when it happened first and last (microseconds)."""

    times: int
    first: int
    last: int

    def plus(self, other: LoginCount) -> LoginCount:
        return LoginCount(self.times + other.times, min(self.first, other.first), max(self.last, other.last))


SEVERAL = LoginKey("", "")


class LoginCounter:
    """Counts one kind of event. It has no clock: `now` is microseconds of a monotonic clock.

    Args:
        rows: maximum of rows that are sent in a minute, and maximum of rows that wait, without the row of `SEVERAL`.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._waiting: dict[LoginKey, LoginCount] = {}
        self._sent_at: dict[LoginKey, int] = {}
        """When each row of the last minute was sent."""

    def add(self, who: LoginKey, what: LoginCount) -> None:
        if who not in self._waiting and len(self._waiting) >= self._rows:
            who = SEVERAL
        known = self._waiting.get(who)
        self._waiting[who] = what if known is None else known.plus(what)

    def take(self, now: int) -> dict[LoginKey, LoginCount]:
        """Remove and return the rows that are due now."""
        self._forget(now)
        due = {}
        for who in list(self._waiting):
            if who not in self._sent_at and (len(self._sent_at) < self._rows or who == SEVERAL):
                due[who] = self._waiting.pop(who)
                self._sent_at[who] = now
        return due

    def put_back(self, taken: dict[LoginKey, LoginCount]) -> None:
        """Put back rows that could not be sent. They are due at once."""
        for who, what in taken.items():
            self._sent_at.pop(who, None)
            self.add(who, what)

    def take_all(self) -> dict[LoginKey, LoginCount]:
        """Remove and return all rows."""
        found, self._waiting = self._waiting, {}
        return found

    def next_due(self, now: int) -> int | None:
        """Microseconds until a row may be due; None: no row waits."""
        if not self._waiting:
            return None
        self._forget(now)
        if len(self._sent_at) < self._rows and self._waiting.keys() - self._sent_at.keys():
            return 0
        return max(0, min(self._sent_at.values(), default=now) + MINUTE - now)

    def _forget(self, now: int) -> None:
        self._sent_at = {who: at for who, at in self._sent_at.items() if now - at < MINUTE}


class _Logout(NamedTuple):
    name: str
    address: str
    expires_at: int


class LoginLog:
    """See the module. Safe for several threads.

    Args:
        call: returns the `call` method of the calling thread's connection to the scheduler.
    """

    def __init__(self, clock: Clock, call: Callable[[], Call]) -> None:
        self._clock = clock
        self._call = call
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._counters = {event: LoginCounter(rows) for event, rows in ROWS_PER_MINUTE.items()}
        self._logouts: dict[str, _Logout] = {}
        """Logouts that wait for the scheduler, by the id of their token (jti)."""
        self._next_send = 0
        self._scheduler_is_away = False

    def note(self, event: str, name: str, address: str) -> None:
        """Count a login or a failed login. `flush` sends it."""
        at = self._clock.wall()
        with self._lock:
            self._counters[event].add(LoginKey(name[:NAME_MAX], address[:ADDRESS_MAX]), LoginCount(1, at, at))

    def log_out(self, jti: str, expires_at: int, name: str, address: str) -> None:
        """End a token: at once in this process, and in the database as soon as the scheduler can write.

        Raises:
            Unreachable: there is no scheduler, and too many logouts wait for it.
        """
        with self._lock:
            if len(self._logouts) >= LOGOUTS_MAX and jti not in self._logouts:
                raise Unreachable("There is no scheduler now, and too many logouts wait for it already.")
            self._logouts[jti] = _Logout(name, address[:ADDRESS_MAX], expires_at)

    def is_logged_out(self, jti: str) -> bool:
        """Whether this token was logged out, and the logout was not sent to the scheduler yet."""
        return jti in self._logouts

    def flush(self) -> int | None:
        """Send the rows that are due. Returns microseconds until more may be due; None: no row waits."""
        with self._sending:
            now = self._clock.monotonic()
            if now >= self._next_send:
                with self._lock:
                    due = {event: counter.take(now) for event, counter in self._counters.items()}
                if not self._send(due):
                    self._next_send = now + _TRY_AGAIN
        with self._lock:
            waits = [wait for counter in self._counters.values() if (wait := counter.next_due(now)) is not None]
            if self._logouts:
                waits.append(0)
        return None if not waits else max(min(waits), self._next_send - now, 0)

    def close(self) -> None:
        """Send all rows, because the process ends. Rows that cannot be sent are written to the log of the API."""
        with self._sending:
            with self._lock:
                due = {event: counter.take_all() for event, counter in self._counters.items()}
            if (any(due.values()) or self._logouts) and not self._send(due):
                for event, rows in self._take_all().items():
                    for who, what in rows.items():
                        _log.warning(event, name=who.name, address=who.address, count=what.times)
                for logout in self._logouts.values():
                    _log.warning("logout (the token is valid again when the API restarts)", name=logout.name)

    def _take_all(self) -> dict[str, dict[LoginKey, LoginCount]]:
        with self._lock:
            return {event: counter.take_all() for event, counter in self._counters.items()}

    def _send(self, due: dict[str, dict[LoginKey, LoginCount]]) -> bool:
        """Send rows and logouts. Returns False where the scheduler did not accept them; they are kept."""
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
                    self._counters[event].put_back(found)
            if not self._scheduler_is_away:
                _log.warning("logins cannot be sent to the scheduler now; they are kept and sent later", why=str(error))
            self._scheduler_is_away = True
            return False
        self._scheduler_is_away = False
        return True

    @staticmethod
    def _send_rows(call: Call, due: dict[str, dict[LoginKey, LoginCount]]) -> None:
        """Raises TradewindError: the rows were not written, and can be sent again."""
        rows = [_row(event, who, what) for event, found in due.items() for who, what in found.items()]
        if not rows:
            return
        try:
            call(NoteLogins(rows), timeout=_SEND_SECONDS)
        except WrongArgument as error:  # the scheduler would refuse the rows again
            _log.warning("logins are missing in the audit log", rows=len(rows), why=str(error))


def _row(event: str, who: LoginKey, what: LoginCount) -> LoginRow:
    kind: Literal["login", "login failed"] = "login" if event == LOGIN else "login failed"
    return LoginRow(kind, who.name, who.address, what.times, what.first, what.last)
