"""Sends changes of accounts to the audit log.

The API and the command line write each change of an account with an entry for the audit log, in one transaction of the database of
accounts. Only the scheduler writes the audit log. So the API sends the entries to the scheduler, the oldest first, and deletes
the entries that the scheduler has written. Each entry has its own operation id: an entry that is sent twice, by two processes
or after a crash, is written once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from tradewind.api.auth.accounts import Accounts
from tradewind.model.accounts import AccountEvent
from tradewind.model.errors import Conflict, TradewindError, WrongArgument
from tradewind.observe.log import Log
from tradewind.wire.commands import Command, NoteAccountEvent

R = TypeVar("R")

SEND_EVERY_SECONDS = 5.0
"""How often the API looks for new entries."""
SENT_AT_ONCE = 200
_SEND_SECONDS = 2.0

_log = Log("api")


class Call(Protocol):
    """Asks the scheduler to execute a command, as `ControlClient.call`."""

    def __call__(self, command: Command[R], /, *, actor: str | None, timeout: float | None, op: str | None) -> R: ...


class AccountAudit:
    """See the module. Safe for several threads.

    Args:
        call: returns the `call` method of the calling thread's connection to the scheduler.
    """

    def __init__(self, accounts: Accounts, call: Callable[[], Call]) -> None:
        self._accounts = accounts
        self._call = call
        self._sending = threading.Lock()
        self._failing = False

    def send(self) -> int:
        """Send waiting entries, at most `SENT_AT_ONCE`. Returns how many were written. An error is logged once, not raised."""
        written: list[int] = []
        with self._sending:
            try:
                for event in self._accounts.store.waiting_events(SENT_AT_ONCE):
                    self._send_one(event)
                    written.append(event.id)
                self._failing = False
            except TradewindError as error:
                if not self._failing:
                    _log.warning(
                        "changes of accounts cannot be sent to the audit log now; they are kept and sent later", why=str(error)
                    )
                self._failing = True
            if written:
                self._forget(written)
        return len(written)

    def _send_one(self, event: AccountEvent) -> None:
        command = NoteAccountEvent(event.event, event.at, event.detail)
        try:
            self._call()(command, actor=event.actor, timeout=_SEND_SECONDS, op=f"account-event-{event.id}-{event.at}")
        except (WrongArgument, Conflict) as error:  # the scheduler would refuse it again
            _log.warning("a change of an account is missing in the audit log", change=event.event, why=str(error))

    def _forget(self, written: list[int]) -> None:
        try:
            self._accounts.store.forget_events(written)
        except TradewindError as error:  # the entries are sent again; their operation ids prevent a second row
            _log.warning(
                "entries of the audit log are written, but could not be deleted from the database of accounts",
                entries=len(written),
                why=str(error),
            )
