"""Commands of the API on logins, logouts and changes of accounts."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.model.errors import Conflict
from tradewind.model.moments import iso
from tradewind.scheduler.commands.context import CommandContext
from tradewind.wire import commands as c

SEVERAL = "(several)"
"""Used in the audit log in place of a name: several names were counted together."""


def note_logins(context: CommandContext, command: c.NoteLogins) -> None:
    """Write one audit row for each row of the command."""
    for row in command.rows:
        detail: dict[str, Any] = {"address": row.address} if row.address else {}
        if row.count > 1:
            detail |= {"count": row.count, "first": iso(row.first), "last": iso(row.last)}
        context.store.write_audit(row.event, row.name or SEVERAL, row.last, detail=detail or None)


def note_account_event(context: CommandContext, command: c.NoteAccountEvent) -> None:
    """Write one audit row.

    Raises:
        Conflict: the detail is not a JSON object.
    """
    try:
        detail = msgspec.json.decode(command.detail, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Conflict(f"the detail of {command.event!r} is no JSON object: {error}") from None
    context.store.write_audit(command.event, context.actor, command.at, detail=detail)


def revoke_token(context: CommandContext, command: c.RevokeToken) -> c.RevokeTokenResult:
    now = context.clock.wall()
    revoked = context.store.revoke_token(command.jti, command.expires_at, now)
    if revoked:
        detail = {"address": command.address} if command.address else None
        context.store.write_audit("logout", context.actor, now, detail=detail)
    return c.RevokeTokenResult(revoked)
