"""Responses about accounts: who is logged in, users, roles, teams, tokens, sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from tradewind.api.auth.guard import CSRF_HEADER, NEVER, Identity
from tradewind.api.auth.policy import permissions_of
from tradewind.model.accounts import Account, AccountSession, AccountToken, DagGrant, Memberships, TeamDags, TeamMember
from tradewind.model.moments import iso
from tradewind.store.views import PluginView


class TeamRole(msgspec.Struct, frozen=True):
    """A team of the account."""

    team: str
    role: str
    """Role for the DAGs of the team."""


class Csrf(msgspec.Struct, frozen=True):
    """The protection against forged requests: the header that a changing request must have in addition to the session cookie."""

    needed: bool
    """False: the request was not authenticated by a cookie."""
    header: str
    """Send this header with any value."""


class MenuLink(msgspec.Struct, frozen=True):
    """A link of a plugin to another web page: an absolute address with http or https, or a path of this server."""

    name: str
    href: str
    category: str | None


class Me(msgspec.Struct, frozen=True):
    """The account that is logged in."""

    username: str
    full_name: str
    email: str
    kind: str
    source: str
    """Where the password is checked: `local`, `ldap` or `oidc`."""
    role: str
    roles: list[str]
    """Custom roles."""
    teams: list[TeamRole]
    permissions: list[str]
    """`action:resource`, for example `edit:dag`. If `sees_all_dags` is false, the permissions for DAGs hold only for some DAGs."""
    sees_all_dags: bool
    authentication: Literal["session", "token", "jwt", "basic"]
    expires_at: str | None
    can_change_password: bool
    csrf: Csrf
    links: list[MenuLink]
    """Links that plugins add to the bar of the web page."""
    failed_runs: int | None
    """As `failed_total` of the triage page; null: the account may not read task instances. Not counted in the answer of a login."""


class LoginProvider(msgspec.Struct, frozen=True):
    """An identity provider with which people can log in."""

    name: str
    label: str
    """The text of the button."""
    url: str
    """Path of this server that starts the login; the query parameter `next` names the page to open after the login."""


class LoginProviders(msgspec.Struct, frozen=True):
    """The identity providers of this server."""

    providers: list[LoginProvider]


class SessionInfo(msgspec.Struct, frozen=True):
    """A login in a browser."""

    id: str
    username: str
    is_current: bool
    """The session of this request."""
    created_at: str
    seen_at: str
    """Time of the last use. The real time may be up to five minutes later."""
    ends_at: str
    """When the session ends if no more requests come."""
    address: str
    browser: str


class Sessions(msgspec.Struct, frozen=True):
    """Sessions, the most recently used first."""

    sessions: list[SessionInfo]
    total_entries: int


class TokenInfo(msgspec.Struct, frozen=True):
    """A personal token, without its secret."""

    id: str
    username: str
    label: str
    role: str
    """The role that limits what the token may do."""
    created_at: str
    created_by: str
    expires_at: str | None
    last_used_at: str | None
    last_address: str


class Tokens(msgspec.Struct, frozen=True):
    """Personal tokens."""

    tokens: list[TokenInfo]
    total_entries: int


class NewTokenInfo(msgspec.Struct, frozen=True):
    """A new token. Its text is shown only now."""

    token: str
    """Send it as `Authorization: Bearer <token>`."""
    info: TokenInfo


class UserInfo(msgspec.Struct, frozen=True):
    """An account of a person or a service."""

    username: str
    kind: str
    role: str
    roles: list[str]
    teams: list[TeamRole]
    source: str
    email: str
    full_name: str
    is_active: bool
    created_at: str
    last_login_at: str | None


class UserInfos(msgspec.Struct, frozen=True):
    """A page of accounts, by name."""

    users: list[UserInfo]
    total_entries: int


class NewUserInfo(msgspec.Struct, frozen=True):
    """A new account. A generated password is shown only now."""

    user: UserInfo
    password: str | None
    """Null: the request gave the password, or the account has no password."""


class GeneratedPassword(msgspec.Struct, frozen=True):
    """A generated password, shown only now. Null: the request gave the password."""

    password: str | None


class GrantInfo(msgspec.Struct, frozen=True):
    """What a custom role may do with some DAGs."""

    dag_id: str
    """A DAG id, or a pattern with `*`."""
    action: str


class RoleInfo(msgspec.Struct, frozen=True):
    """A role: one of the built-in ones, which are fixed, or a custom one with its grants."""

    name: str
    description: str
    is_built_in: bool
    permissions: list[str]
    """`action:resource`; of built-in roles."""
    grants: list[GrantInfo]
    """The grants of a custom role."""


class RoleInfos(msgspec.Struct, frozen=True):
    """All roles."""

    roles: list[RoleInfo]
    total_entries: int


class MemberInfo(msgspec.Struct, frozen=True):
    """A member of a team."""

    username: str
    role: str


class TeamInfo(msgspec.Struct, frozen=True):
    """A team, its members and its DAGs."""

    name: str
    description: str
    members: list[MemberInfo]
    bundles: list[str]
    dags: list[str]
    """DAG ids, or patterns with `*`."""


class TeamInfos(msgspec.Struct, frozen=True):
    """All teams."""

    teams: list[TeamInfo]
    total_entries: int


def menu_links(plugins: Iterable[PluginView]) -> list[MenuLink]:
    """The links of plugins for the bar of the web page. An address that could run a script, such as `javascript:`, is left out."""
    return [
        MenuLink(link.name, link.href, link.category)
        for plugin in plugins
        for link in plugin.external_views
        if link.destination == "nav" and link.name and _leads_to_page(link.href)
    ]


def _leads_to_page(href: str) -> bool:
    """Whether a browser may follow an address of user code: http, https, or a path of this server. Never `javascript:`."""
    return href.startswith(("https://", "http://")) or (href.startswith("/") and not href.startswith(("//", "/\\")))


def me_view(account: Account, identity: Identity, links: list[MenuLink], failed_runs: int | None) -> Me:
    """The response about the account that sends a request."""
    access = identity.access
    by_cookie = identity.method == "session"
    return Me(
        username=account.name,
        full_name=account.full_name,
        email=account.email,
        kind=account.kind,
        source=account.source,
        role=access.effective_role,
        roles=list(access.custom_roles),
        teams=[TeamRole(team, role) for team, role in access.teams.items()],
        permissions=sorted(f"{one.action}:{one.resource}" for one in permissions_of("admin") if access.may(one)),
        sees_all_dags=access.reads_all,
        authentication=identity.method,
        expires_at=iso(None if identity.expires_at == NEVER else identity.expires_at),
        can_change_password=account.source == "local" and account.kind == "user",
        csrf=Csrf(by_cookie, CSRF_HEADER),
        links=links,
        failed_runs=failed_runs,
    )


def session_view(session: AccountSession, ends_at: int, current: str) -> SessionInfo:
    return SessionInfo(
        session.id,
        session.account,
        session.id == current,
        iso(session.created_at) or "",
        iso(session.seen_at) or "",
        iso(ends_at) or "",
        session.address,
        session.agent,
    )


def token_view(token: AccountToken) -> TokenInfo:
    return TokenInfo(
        token.id,
        token.account,
        token.label,
        token.role,
        iso(token.created_at) or "",
        token.created_by,
        iso(token.expires_at),
        iso(token.last_used_at),
        token.last_address,
    )


def user_view(account: Account, memberships: Memberships) -> UserInfo:
    return UserInfo(
        username=account.name,
        kind=account.kind,
        role=account.role,
        roles=list(memberships.roles),
        teams=[TeamRole(one.team, one.role) for one in memberships.teams],
        source=account.source,
        email=account.email,
        full_name=account.full_name,
        is_active=account.is_active,
        created_at=iso(account.created_at) or "",
        last_login_at=iso(account.last_login_at),
    )


def role_view(name: str, description: str, grants: list[DagGrant]) -> RoleInfo:
    return RoleInfo(name, description, False, [], [GrantInfo(one.pattern, one.action) for one in grants if one.role == name])


def team_view(name: str, description: str, members: list[TeamMember], dags: list[TeamDags]) -> TeamInfo:
    return TeamInfo(
        name,
        description,
        [MemberInfo(one.account, one.role) for one in members if one.team == name],
        [one.pattern for one in dags if one.team == name and one.kind == "bundle"],
        [one.pattern for one in dags if one.team == name and one.kind == "dag"],
    )
