"""Accounts of people and services, their roles, teams, tokens and sessions. The API and the command line write them.

A method that changes something takes the time (`at`, microseconds) and the author of the change (`actor`), and writes the entry
for the audit log in the same transaction. Errors are `StoreError` and its subclasses, and those that a method names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

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


class PeopleStore(Protocol):
    """Accounts and their passwords."""

    def accounts(self, kind: AccountKind | None = None) -> list[Account]:
        """All accounts by name, or only the accounts of one kind."""

    def account(self, name: str) -> Account | None:
        """The account with this name."""

    def need_account(self, name: str) -> Account:
        """The account with this name. Raises NotFound with the nearest name."""

    def external_account(self, external_id: str) -> Account | None:
        """The account with this id at the identity provider or the directory."""

    def password(self, name: str) -> str | None:
        """The hash of the account's password. None: there is no such account, or it has no password."""

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
        """Create an account. `password`: its hash. Raises Conflict: the name exists."""

    def set_password(self, name: str, password: str, stamp: str, *, at: int, actor: str) -> None:
        """Replace the hash of the password. Sessions and login tokens of the account end. Raises NotFound."""

    def end_logins(self, name: str, stamp: str, *, at: int, actor: str) -> int:
        """End sessions and login tokens of the account; personal tokens stay. Returns the number of ended sessions. Raises
        NotFound.
        """

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
        """Change the given fields. An account that becomes inactive loses its sessions, and gets the new `stamp`.

        Raises:
            NotFound: there is no such account.
            Conflict: it is the only admin.
        """

    def delete_account(self, name: str, *, at: int, actor: str) -> None:
        """Delete an account with its tokens and sessions. Raises NotFound, and Conflict for the only admin."""

    def note_login(self, name: str, at: int) -> None:
        """Store the time when the account logged in."""

    def take_over(self, entries: Mapping[str, tuple[str, str, str]], at: int) -> bool:
        """Create the accounts of a file of users: name → (role, password hash, stamp). False: this was done before."""


class RoleStore(Protocol):
    """Custom roles, grants and teams."""

    def memberships(self, account: str) -> Memberships:
        """The custom roles, grants and teams of an account."""

    def roles(self) -> dict[str, str]:
        """Custom roles: name → description."""

    def create_role(self, name: str, description: str, *, at: int, actor: str) -> None:
        """Create a custom role. Raises Conflict: it exists."""

    def delete_role(self, name: str, *, at: int, actor: str) -> None:
        """Delete a custom role; accounts lose it. Raises NotFound."""

    def set_roles(self, account: str, roles: Iterable[str], *, at: int, actor: str) -> None:
        """Replace the custom roles of an account. Raises NotFound for the account or a role."""

    def grants(self, role: str | None = None) -> list[DagGrant]:
        """The grants of a custom role, or of all roles."""

    def set_grants(self, role: str, grants: Iterable[tuple[str, GrantAction]], *, at: int, actor: str) -> None:
        """Replace the grants of a custom role: (pattern of DAG ids, action). Raises NotFound."""

    def teams(self) -> dict[str, str]:
        """Teams: name → description."""

    def create_team(self, name: str, description: str, *, at: int, actor: str) -> None:
        """Create a team. Raises Conflict: it exists."""

    def delete_team(self, name: str, *, at: int, actor: str) -> None:
        """Delete a team. Its DAGs belong to no team then. Raises NotFound."""

    def members(self, team: str | None = None) -> list[TeamMember]:
        """The members of a team, or of all teams."""

    def set_member(self, team: str, account: str, role: str | None, *, at: int, actor: str) -> bool:
        """Add an account to a team or change its role in the team; with the role None, remove it. False: it was not a member.

        Raises:
            NotFound: there is no such team or account.
        """

    def team_dags(self, team: str | None = None) -> list[TeamDags]:
        """The DAGs of a team, or of all teams."""

    def assign_dags(self, dags: TeamDags, *, at: int, actor: str) -> None:
        """Give a bundle, or DAGs by a pattern, to a team. Raises NotFound, and Conflict if another team has them."""

    def unassign_dags(self, dags: TeamDags, *, at: int, actor: str) -> bool:
        """Remove a bundle or a pattern from a team. False: the team did not have it. Raises NotFound."""


class SessionStore(Protocol):
    """Tokens, sessions and known devices. Secrets are stored as hashes."""

    def create_token(self, token: AccountToken, hash: str) -> None:
        """Store a new token. Raises NotFound: there is no such account."""

    def tokens(self, account: str | None = None) -> list[AccountToken]:
        """The tokens of an account, or of all accounts."""

    def token(self, id: str) -> tuple[AccountToken, str] | None:
        """A token and the hash of its secret."""

    def note_token_use(self, id: str, at: int, address: str) -> None:
        """Store when and from which address a token was used."""

    def revoke_token(self, id: str, *, at: int, actor: str) -> bool:
        """Delete a token. False: there was none."""

    def create_session(self, session: AccountSession, hash: str, at_most: int) -> None:
        """Store a new session. If the account has more than `at_most` sessions, those that were not used for the longest time
        end. Raises NotFound.
        """

    def session(self, hash: str) -> AccountSession | None:
        """The session with this hash, whether it has expired or not."""

    def sessions(self, account: str | None = None) -> list[AccountSession]:
        """The sessions of an account, or of all accounts, the most recently used first."""

    def note_session_use(self, id: str, at: int, address: str) -> None:
        """Store when and from which address a session was used."""

    def end_session(self, id: str, *, at: int, actor: str, address: str, event: str = "end session") -> bool:
        """Delete a session. `event`: its name in the audit log. False: there was none."""

    def remember_device(self, hash: str, account: str, now: int, expires_at: int, at_most: int) -> None:
        """Store that the account has logged in from a device. If the account has more than `at_most` devices, the oldest are
        removed.
        """

    def device_account(self, hash: str, now: int) -> str | None:
        """The account that has logged in from this device."""

    def waiting_events(self, limit: int) -> list[AccountEvent]:
        """The oldest entries that wait for the audit log."""

    def forget_events(self, ids: Sequence[int]) -> None:
        """Delete entries that the scheduler has written to the audit log."""


class AccountStore(PeopleStore, RoleStore, SessionStore, Protocol):
    """All operations on accounts. Safe for several threads and processes."""

    def back_up(self, file: str) -> None:
        """Write a consistent copy of all accounts into a new file, even while others write."""

    def close(self) -> None: ...
