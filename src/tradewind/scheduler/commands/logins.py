"""Logins and logouts, which the API reports. Mixed into the other commands, see `commands.py`."""

from __future__ import annotations

from typing import Any

from tradewind.model.moments import iso
from tradewind.platform.clock import Clock
from tradewind.scheduler.commands.effects import Effects
from tradewind.store.port import Store

Args = dict[str, Any]

SEVERAL = "(several)"
"""Stands in the audit log in place of a name where several names were counted together."""


class LoginCommands:
    """See the module."""

    store: Store
    clock: Clock

    def do_note_logins(self, args: Args, actor: str, effects: Effects) -> None:
        """rows [{event, name, address, count, first, last}]: one audit row each. An empty name: several were counted together."""
        for row in args["rows"]:
            detail = {"address": row["address"]} if row["address"] else {}
            if row["count"] > 1:
                detail |= {"count": row["count"], "first": iso(row["first"]), "last": iso(row["last"])}
            self.store.note_audit(row["event"], row["name"] or SEVERAL, row["last"], detail=detail or None)

    def do_revoke_token(self, args: Args, actor: str, effects: Effects) -> Args:
        """jti, expires_at, address → whether it was good until now. The actor has logged out."""
        now = self.clock.wall()
        revoked = self.store.revoke_token(args["jti"], args["expires_at"], now)
        if revoked:
            self.store.note_audit("logout", actor, now, detail={"address": args["address"]} if args["address"] else None)
        return {"revoked": revoked}
