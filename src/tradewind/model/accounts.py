"""Accounts of people and services, and their roles, teams, sessions and tokens. Plain values.

The API and the command line write them. The scheduler does not read them. All moments are microseconds, UTC.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

ROLES = ("public", "viewer", "user", "op", "admin")
"""Each role has the permissions of the roles before it, and more. `public` alone gives access to no DAG: only grants and teams give
access, as in Airflow."""

NAME_MAX = 200
"""Maximum length of the name of an account, a role or a team."""

AccountKind = Literal["user", "service"]
AccountSource = Literal["local", "ldap", "oidc"]
GrantAction = Literal["read", "run", "edit", "delete"]

GRANT_ACTIONS: tuple[GrantAction, ...] = ("read", "run", "edit", "delete")
"""The actions that a grant for a DAG can permit: read all of the DAG; start runs; change the DAG, its runs and its task instances;
delete it. Each of the last three includes `read`."""


class Account(NamedTuple):
    """A person or a service that can use the API."""

    name: str
    kind: AccountKind
    role: str
    stamp: str
    """Changes with the password, and when all logins of the account are ended. Login tokens contain it, so they become invalid."""
    source: AccountSource
    """Which system checks the password: Tradewind itself, the directory, or the identity provider of the organisation."""
    email: str
    full_name: str
    is_active: bool
    created_at: int
    last_login_at: int | None


class TeamMember(NamedTuple):
    """An account in a team. Its role in the team applies to the DAGs of the team, in addition to the role of the account."""

    team: str
    account: str
    role: str


class DagGrant(NamedTuple):
    """A custom role may do this action with the DAGs whose id matches `pattern` (`*` stands for any characters)."""

    role: str
    pattern: str
    action: GrantAction


class TeamDags(NamedTuple):
    """DAGs of a team: the DAGs of a bundle, or the DAGs whose id matches a pattern."""

    team: str
    kind: Literal["bundle", "dag"]
    pattern: str


class Memberships(NamedTuple):
    """The custom roles, grants and teams of an account."""

    roles: tuple[str, ...]
    """Custom roles."""
    teams: tuple[TeamMember, ...]
    grants: tuple[DagGrant, ...]
    """The grants of the custom roles."""


class AccountToken(NamedTuple):
    """A personal token, or a token of a service account. The secret itself is not stored."""

    id: str
    account: str
    label: str
    role: str
    """The role that limits the token: the token gives the permissions of this role that the account also has."""
    created_at: int
    created_by: str
    expires_at: int | None
    """None: the token does not expire."""
    last_used_at: int | None
    last_address: str


class AccountSession(NamedTuple):
    """A login in a browser. Its cookie contains a secret; only a hash of the secret is stored."""

    id: str
    account: str
    created_at: int
    seen_at: int
    expires_at: int
    """The latest end of the session; a session without requests ends earlier."""
    address: str
    agent: str
    """The browser, from the header of its request."""
    external: str
    """For logout at the identity provider: the session's ID token. Empty for other logins."""


class AccountEvent(NamedTuple):
    """An entry for the audit log, kept until the scheduler has written it there."""

    id: int
    at: int
    event: str
    actor: str
    detail: str
    """JSON."""


def highest(*roles: str) -> str:
    """The role with the most permissions. Unknown names count as `public`."""
    return max(roles, key=rank_of_role, default=ROLES[0])


def lowest(*roles: str) -> str:
    """The role with the fewest permissions. Unknown names count as `public`."""
    return min(roles, key=rank_of_role, default=ROLES[0])


def rank_of_role(role: str) -> int:
    """The position of a role in `ROLES`; 0 for an unknown name."""
    return ROLES.index(role) if role in ROLES else 0
