"""Accounts in a SQL database: people, services, roles, teams, sessions, tokens.

On SQLite the accounts have a database file of their own, because the scheduler is the only writer of its file. Each method that
writes is one transaction. It may be called by several processes at the same time, and by the threads of one process.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from tradewind.model.accounts import (
    Account,
    AccountEvent,
    AccountKind,
    AccountSession,
    AccountSource,
    AccountToken,
    DagGrant,
    GrantAction,
    Memberships,
    TeamDags,
    TeamMember,
)
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.phrases import english, phrase
from tradewind.store.sql.engine import Engine, Row

P = ParamSpec("P")
R = TypeVar("R")

EVENTS_MAX = 10_000
"""Maximum number of entries that wait for the audit log. If there are more, the oldest are removed."""

_ACCOUNT = "name, kind, role, stamp, source, email, full_name, is_active, created_at, last_login_at"
_TOKEN = "id, account, label, role, created_at, created_by, expires_at, last_used_at, last_address"
_SESSION = "id, account, created_at, seen_at, expires_at, address, agent, external"


def _one_at_a_time(
    method: Callable[Concatenate[SqlAccounts, P], R],
) -> Callable[Concatenate[SqlAccounts, P], R]:
    """Decorator: only one thread at a time uses the connection."""

    @wraps(method)
    def locked(self: SqlAccounts, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return method(self, *args, **kwargs)

    return locked


def _writes(
    method: Callable[Concatenate[SqlAccounts, P], R],
) -> Callable[Concatenate[SqlAccounts, P], R]:
    """Decorator: the method is one transaction."""

    @wraps(method)
    def written(self: SqlAccounts, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock, self.engine.transaction():
            return method(self, *args, **kwargs)

    return written


class SqlAccounts:
    """See `store.port.accounts`, which describes each method."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lock = threading.RLock()

    @_one_at_a_time
    def close(self) -> None:
        self.engine.close()

    @_one_at_a_time
    def back_up(self, file: str) -> None:
        self.engine.back_up(file)

    # --- accounts ----------------------------------------------------------------------------------------------------

    @_one_at_a_time
    def accounts(self, kind: AccountKind | None = None) -> list[Account]:
        rows = self.engine.rows(f"SELECT {_ACCOUNT} FROM account ORDER BY name")
        return [account for account in map(_account, rows) if kind is None or account.kind == kind]

    @_one_at_a_time
    def account(self, name: str) -> Account | None:
        row = self.engine.row(f"SELECT {_ACCOUNT} FROM account WHERE name = ?", (name,))
        return None if row is None else _account(row)

    def need_account(self, name: str) -> Account:
        found = self.account(name)
        if found is None:
            raise NotFound(f"there is no user {name!r}.{did_you_mean(name, [one.name for one in self.accounts()])}")
        return found

    @_one_at_a_time
    def external_account(self, external_id: str) -> Account | None:
        row = self.engine.row(f"SELECT {_ACCOUNT} FROM account WHERE external_id = ?", (external_id,))
        return None if row is None else _account(row)

    @_one_at_a_time
    def password(self, name: str) -> str | None:
        row = self.engine.row("SELECT password FROM account WHERE name = ?", (name,))
        return None if row is None else row[0]

    @_writes
    def create_account(
        self,
        name: str,
        role: str,
        *,
        stamp: str,
        at: int,
        actor: str,
        kind: AccountKind = "user",
        password: str | None = None,
        source: AccountSource = "local",
        external_id: str | None = None,
        email: str = "",
        full_name: str = "",
    ) -> Account:
        if self.account(name) is not None:
            raise Conflict(english(phrase("error_user_exists", name=name, command=f"tradewind users reset-password -u {name}")))
        self.engine.run(
            """INSERT INTO account (name, kind, role, password, stamp, source, external_id, email, full_name, created_at)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (name, kind, role, password, stamp, source, external_id, email, full_name, at),
        )
        self._record(at, "create account", actor, account=name, kind=kind, role=role, source=source)
        return self.need_account(name)

    @_writes
    def set_password(self, name: str, password: str, stamp: str, *, at: int, actor: str) -> None:
        self.need_account(name)
        self.engine.change(
            "UPDATE account SET password = ?, stamp = ? WHERE name = ?", (password, stamp, name), f"user {name!r}"
        )
        self._end_sessions(name)
        self._record(at, "change password", actor, account=name)

    @_writes
    def end_logins(self, name: str, stamp: str, *, at: int, actor: str) -> int:
        self.need_account(name)
        self.engine.change("UPDATE account SET stamp = ? WHERE name = ?", (stamp, name), f"user {name!r}")
        ended = self._end_sessions(name)
        self._record(at, "end all logins", actor, account=name, sessions=ended)
        return ended

    @_writes
    def change_account(
        self,
        name: str,
        *,
        at: int,
        actor: str,
        stamp: str = "",
        role: str | None = None,
        email: str | None = None,
        full_name: str | None = None,
        is_active: bool | None = None,
    ) -> Account:
        before = self.need_account(name)
        after = before._replace(
            role=before.role if role is None else role,
            email=before.email if email is None else email,
            full_name=before.full_name if full_name is None else full_name,
            is_active=before.is_active if is_active is None else is_active,
        )
        if after == before:
            return before
        if before.role == "admin" and before.is_active and not (after.role == "admin" and after.is_active):
            self._keep_an_admin(name)
        self.engine.change(
            "UPDATE account SET role = ?, email = ?, full_name = ?, is_active = ? WHERE name = ?",
            (after.role, after.email, after.full_name, int(after.is_active), name),
            f"user {name!r}",
        )
        if before.is_active and not after.is_active:
            self.engine.change("UPDATE account SET stamp = ? WHERE name = ?", (stamp, name), f"user {name!r}")
            self._end_sessions(name)
        changed = {
            field: [getattr(before, field), getattr(after, field)]
            for field in ("role", "email", "full_name", "is_active")
            if getattr(before, field) != getattr(after, field)
        }
        self._record(at, "change account", actor, account=name, changed=changed)
        return after

    @_writes
    def delete_account(self, name: str, *, at: int, actor: str) -> None:
        account = self.need_account(name)
        if account.role == "admin" and account.is_active:
            self._keep_an_admin(name)
        for table in ("account_role", "team_member", "account_token", "account_session", "known_device"):
            self.engine.run(f"DELETE FROM {table} WHERE account = ?", (name,))
        self.engine.change("DELETE FROM account WHERE name = ?", (name,), f"user {name!r}")
        self._record(at, "delete account", actor, account=name)

    def _keep_an_admin(self, name: str) -> None:
        row = self.engine.row(
            "SELECT count(*) FROM account WHERE role = 'admin' AND is_active = 1 AND kind = 'user' AND name <> ?", (name,)
        )
        if row is None or row[0] == 0:
            raise Conflict(f"{name} is the only admin; create another admin first")

    @_writes
    def note_login(self, name: str, at: int) -> None:
        self.engine.run("UPDATE account SET last_login_at = ? WHERE name = ?", (at, name))

    # --- roles and teams ---------------------------------------------------------------------------------------------

    @_one_at_a_time
    def memberships(self, account: str) -> Memberships:
        roles = tuple(
            row[0] for row in self.engine.rows("SELECT role FROM account_role WHERE account = ? ORDER BY role", (account,))
        )
        teams = tuple(
            TeamMember(*row)
            for row in self.engine.rows(
                "SELECT team, account, role FROM team_member WHERE account = ? ORDER BY team", (account,)
            )
        )
        grants = tuple(
            DagGrant(*row)
            for row in self.engine.rows(
                """SELECT g.role, g.pattern, g.action FROM account_role a JOIN dag_grant g ON g.role = a.role
                   WHERE a.account = ? ORDER BY g.role, g.pattern, g.action""",
                (account,),
            )
        )
        return Memberships(roles, teams, grants)

    @_one_at_a_time
    def roles(self) -> dict[str, str]:
        return dict(self.engine.rows("SELECT name, description FROM custom_role ORDER BY name"))

    @_writes
    def create_role(self, name: str, description: str, *, at: int, actor: str) -> None:
        if name in self.roles():
            raise Conflict(english(phrase("error_role_exists", role=name)))
        self.engine.run("INSERT INTO custom_role (name, description) VALUES (?, ?)", (name, description))
        self._record(at, "create role", actor, role=name)

    @_writes
    def delete_role(self, name: str, *, at: int, actor: str) -> None:
        self._need_role(name)
        for table in ("account_role", "dag_grant"):
            self.engine.run(f"DELETE FROM {table} WHERE role = ?", (name,))
        self.engine.change("DELETE FROM custom_role WHERE name = ?", (name,), f"the role {name!r}")
        self._record(at, "delete role", actor, role=name)

    @_writes
    def set_roles(self, account: str, roles: Iterable[str], *, at: int, actor: str) -> None:
        self.need_account(account)
        wanted = sorted(set(roles))
        before = list(self.memberships(account).roles)
        if wanted == before:
            return
        for role in wanted:
            self._need_role(role)
        self.engine.run("DELETE FROM account_role WHERE account = ?", (account,))
        self.engine.many("INSERT INTO account_role (account, role) VALUES (?, ?)", [(account, role) for role in wanted])
        self._record(at, "change roles", actor, account=account, changed={"roles": [before, wanted]})

    @_one_at_a_time
    def grants(self, role: str | None = None) -> list[DagGrant]:
        rows = self.engine.rows("SELECT role, pattern, action FROM dag_grant ORDER BY role, pattern, action")
        return [DagGrant(*row) for row in rows if role is None or row[0] == role]

    @_writes
    def set_grants(self, role: str, grants: Iterable[tuple[str, GrantAction]], *, at: int, actor: str) -> None:
        self._need_role(role)
        wanted = sorted(set(grants))
        before = [(one.pattern, one.action) for one in self.grants(role)]
        if wanted == before:
            return
        self.engine.run("DELETE FROM dag_grant WHERE role = ?", (role,))
        self.engine.many("INSERT INTO dag_grant (role, pattern, action) VALUES (?, ?, ?)", [(role, *one) for one in wanted])
        self._record(at, "change grants", actor, role=role, grants=wanted)

    def _need_role(self, name: str) -> None:
        known = self.roles()
        if name not in known:
            raise NotFound(f"there is no role {name!r}; create it with: tradewind roles create {name}{_nearest(name, known)}")

    @_one_at_a_time
    def teams(self) -> dict[str, str]:
        return dict(self.engine.rows("SELECT name, description FROM team ORDER BY name"))

    @_writes
    def create_team(self, name: str, description: str, *, at: int, actor: str) -> None:
        if name in self.teams():
            raise Conflict(english(phrase("error_team_exists", team=name)))
        self.engine.run("INSERT INTO team (name, description) VALUES (?, ?)", (name, description))
        self._record(at, "create team", actor, team=name)

    @_writes
    def delete_team(self, name: str, *, at: int, actor: str) -> None:
        self._need_team(name)
        for table in ("team_member", "team_dags"):
            self.engine.run(f"DELETE FROM {table} WHERE team = ?", (name,))
        self.engine.change("DELETE FROM team WHERE name = ?", (name,), f"the team {name!r}")
        self._record(at, "delete team", actor, team=name)

    @_one_at_a_time
    def members(self, team: str | None = None) -> list[TeamMember]:
        rows = self.engine.rows("SELECT team, account, role FROM team_member ORDER BY team, account")
        return [TeamMember(*row) for row in rows if team is None or row[0] == team]

    @_writes
    def set_member(self, team: str, account: str, role: str | None, *, at: int, actor: str) -> bool:
        self._need_team(team)
        self.need_account(account)
        if role is None:
            done = self.engine.run("DELETE FROM team_member WHERE team = ? AND account = ?", (team, account)) == 1
        else:
            self.engine.run(
                """INSERT INTO team_member (team, account, role) VALUES (?, ?, ?)
                   ON CONFLICT (team, account) DO UPDATE SET role = excluded.role""",
                (team, account, role),
            )
            done = True
        if done:
            self._record(at, "change team", actor, team=team, account=account, role=role)
        return done

    @_one_at_a_time
    def team_dags(self, team: str | None = None) -> list[TeamDags]:
        rows = self.engine.rows("SELECT team, kind, pattern FROM team_dags ORDER BY team, kind, pattern")
        return [TeamDags(*row) for row in rows if team is None or row[0] == team]

    @_writes
    def assign_dags(self, dags: TeamDags, *, at: int, actor: str) -> None:
        self._need_team(dags.team)
        row = self.engine.row("SELECT team FROM team_dags WHERE kind = ? AND pattern = ?", (dags.kind, dags.pattern))
        if row is not None and row[0] != dags.team:
            raise Conflict(f"{dags.kind} {dags.pattern!r} belongs to the team {row[0]!r}; remove it there first")
        if row is None:
            self.engine.run("INSERT INTO team_dags (team, kind, pattern) VALUES (?, ?, ?)", dags)
            self._record(at, "change team", actor, team=dags.team, **{f"add_{dags.kind}": dags.pattern})

    @_writes
    def unassign_dags(self, dags: TeamDags, *, at: int, actor: str) -> bool:
        self._need_team(dags.team)
        done = self.engine.run("DELETE FROM team_dags WHERE team = ? AND kind = ? AND pattern = ?", dags) == 1
        if done:
            self._record(at, "change team", actor, team=dags.team, **{f"remove_{dags.kind}": dags.pattern})
        return done

    def _need_team(self, name: str) -> None:
        known = self.teams()
        if name not in known:
            raise NotFound(f"there is no team {name!r}; create it with: tradewind teams create {name}{_nearest(name, known)}")

    # --- tokens ------------------------------------------------------------------------------------------------------

    @_writes
    def create_token(self, token: AccountToken, hash: str) -> None:
        self.need_account(token.account)
        self.engine.run(
            """INSERT INTO account_token (id, account, label, hash, role, created_at, created_by, expires_at)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                token.id,
                token.account,
                token.label,
                hash,
                token.role,
                token.created_at,
                token.created_by,
                token.expires_at,
            ),
        )
        self._record(
            token.created_at,
            "create token",
            token.created_by,
            account=token.account,
            token=token.id,
            label=token.label,
            role=token.role,
        )

    @_one_at_a_time
    def tokens(self, account: str | None = None) -> list[AccountToken]:
        rows = self.engine.rows(f"SELECT {_TOKEN} FROM account_token ORDER BY account, created_at, id")
        return [AccountToken(*row) for row in rows if account is None or row[1] == account]

    @_one_at_a_time
    def token(self, id: str) -> tuple[AccountToken, str] | None:
        row = self.engine.row(f"SELECT {_TOKEN}, hash FROM account_token WHERE id = ?", (id,))
        return None if row is None else (AccountToken(*row[:-1]), row[-1])

    @_writes
    def note_token_use(self, id: str, at: int, address: str) -> None:
        self.engine.run("UPDATE account_token SET last_used_at = ?, last_address = ? WHERE id = ?", (at, address, id))

    @_writes
    def revoke_token(self, id: str, *, at: int, actor: str) -> bool:
        found = self.token(id)
        if found is None or self.engine.run("DELETE FROM account_token WHERE id = ?", (id,)) != 1:
            return False
        self._record(at, "revoke token", actor, account=found[0].account, token=id, label=found[0].label)
        return True

    # --- sessions ----------------------------------------------------------------------------------------------------

    @_writes
    def create_session(self, session: AccountSession, hash: str, at_most: int) -> None:
        self.need_account(session.account)
        self.engine.run("DELETE FROM account_session WHERE expires_at <= ?", (session.created_at,))
        own = self.engine.rows("SELECT id FROM account_session WHERE account = ? ORDER BY seen_at DESC, id", (session.account,))
        for (oldest,) in own[max(0, at_most - 1) :]:
            self.engine.run("DELETE FROM account_session WHERE id = ?", (oldest,))
        self.engine.run(
            """INSERT INTO account_session (id, hash, account, created_at, seen_at, expires_at, address, agent, external)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                session.id,
                hash,
                session.account,
                session.created_at,
                session.seen_at,
                session.expires_at,
                session.address,
                session.agent,
                session.external,
            ),
        )

    @_one_at_a_time
    def session(self, hash: str) -> AccountSession | None:
        row = self.engine.row(f"SELECT {_SESSION} FROM account_session WHERE hash = ?", (hash,))
        return None if row is None else AccountSession(*row)

    @_one_at_a_time
    def sessions(self, account: str | None = None) -> list[AccountSession]:
        rows = self.engine.rows(f"SELECT {_SESSION} FROM account_session ORDER BY account, seen_at DESC, id")
        return [AccountSession(*row) for row in rows if account is None or row[1] == account]

    @_writes
    def note_session_use(self, id: str, at: int, address: str) -> None:
        self.engine.run("UPDATE account_session SET seen_at = ?, address = ? WHERE id = ?", (at, address, id))

    @_writes
    def end_session(self, id: str, *, at: int, actor: str, address: str, event: str = "end session") -> bool:
        row = self.engine.row("SELECT account FROM account_session WHERE id = ?", (id,))
        if row is None or self.engine.run("DELETE FROM account_session WHERE id = ?", (id,)) != 1:
            return False
        self._record(at, event, actor, account=row[0], address=address)
        return True

    def _end_sessions(self, account: str) -> int:
        self.engine.run("DELETE FROM known_device WHERE account = ?", (account,))
        return self.engine.run("DELETE FROM account_session WHERE account = ?", (account,))

    # --- devices from which an account has logged in -------------------------------------------------------------------

    @_writes
    def remember_device(self, hash: str, account: str, now: int, expires_at: int, at_most: int) -> None:
        self.engine.run("DELETE FROM known_device WHERE expires_at <= ?", (now,))
        self.engine.run(
            """INSERT INTO known_device (hash, account, expires_at) VALUES (?, ?, ?)
               ON CONFLICT (hash) DO UPDATE SET expires_at = excluded.expires_at""",
            (hash, account, expires_at),
        )
        own = self.engine.rows("SELECT hash FROM known_device WHERE account = ? ORDER BY expires_at DESC, hash", (account,))
        for (oldest,) in own[at_most:]:
            self.engine.run("DELETE FROM known_device WHERE hash = ?", (oldest,))

    @_one_at_a_time
    def device_account(self, hash: str, now: int) -> str | None:
        row = self.engine.row("SELECT account FROM known_device WHERE hash = ? AND expires_at > ?", (hash, now))
        return None if row is None else str(row[0])

    # --- entries for the audit log -------------------------------------------------------------------------------------

    @_one_at_a_time
    def waiting_events(self, limit: int) -> list[AccountEvent]:
        rows = self.engine.rows("SELECT id, at, event, actor, detail FROM account_event ORDER BY id LIMIT ?", (limit,))
        return [AccountEvent(*row) for row in rows]

    @_writes
    def forget_events(self, ids: Sequence[int]) -> None:
        self.engine.many("DELETE FROM account_event WHERE id = ?", [(number,) for number in ids])

    def _record(self, at: int, event: str, actor: str, **detail: Any) -> None:
        """Record a change for the audit log, in the transaction of the change."""
        number = self.engine.insert(
            "INSERT INTO account_event (at, event, actor, detail) VALUES (?, ?, ?, ?)",
            (at, event, actor, json.dumps(detail)),
        )
        self.engine.run("DELETE FROM account_event WHERE id <= ?", (number - EVENTS_MAX,))

    # --- the file of users of earlier releases -------------------------------------------------------------------------

    @_writes
    def take_over(self, entries: Mapping[str, tuple[str, str, str]], at: int) -> bool:
        """Create the accounts of a file of users: name → (role, password hash, stamp). False: this was done before."""
        if self.engine.row("SELECT value FROM meta WHERE key = 'file_of_users'") is not None:
            return False
        self.engine.run("INSERT INTO meta (key, value) VALUES ('file_of_users', 'taken over')")
        for name, (role, password, stamp) in entries.items():
            self.create_account(name, role, stamp=stamp, at=at, actor="upgrade", password=password)
        return True


def _account(row: Row) -> Account:
    name, kind, role, stamp, source, email, full_name, is_active, created_at, last_login_at = row
    return Account(name, kind, role, stamp, source, email, full_name, bool(is_active), created_at, last_login_at)


def _nearest(name: str, known: Iterable[str]) -> str:
    found = did_you_mean(name, list(known))
    return f".{found}" if found else ""
