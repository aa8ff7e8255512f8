"""Administration of accounts: people and services, their tokens and sessions, roles and teams. Only admins may use it.

The routes write to the database of accounts, each change with its entry for the audit log. A personal token cannot change anything
here: an account that it created would outlive its revocation.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.account_shapes import (
    GeneratedPassword,
    NewTokenInfo,
    NewUserInfo,
    RoleInfo,
    RoleInfos,
    Sessions,
    TeamInfo,
    TeamInfos,
    Tokens,
    UserInfo,
    UserInfos,
    role_view,
    session_view,
    team_view,
    token_view,
    user_view,
)
from tradewind.api.auth.guard import address_of, refuse_personal_tokens
from tradewind.api.auth.passwords import hash_password, new_password, new_stamp, weakness
from tradewind.api.auth.policy import allow, permissions_of
from tradewind.api.responses import (
    Api,
    Caller,
    Limit,
    Offset,
    described,
    error_responses,
    invalid,
    json_response,
    page_size,
)
from tradewind.api.routes.me import NewToken, new_token
from tradewind.api.services import Services
from tradewind.model.accounts import NAME_MAX, ROLES, GrantAction, TeamDags
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.phrases import english, phrase

router = APIRouter(prefix="/api/tradewind/v1/accounts", tags=["Accounts"])

_NO_STORE = {"Cache-Control": "no-store"}

Name = Annotated[str, Field(min_length=1, max_length=NAME_MAX, pattern=r"^[^\x00-\x1f\x7f/]+$")]
"""The name of a new account, role or team. A slash is not allowed, because the name is part of a path."""
Text = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
BuiltIn = Literal["public", "viewer", "user", "op", "admin"]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


# --- users and services --------------------------------------------------------------------------------------------------


@router.get("/users", responses=described(UserInfos))
@allow("read", "account")
def list_users(api: Api, kind: Literal["user", "service"] | None = None, limit: Limit = 50, offset: Offset = 0) -> Response:
    """List people and services by name."""
    store = api.accounts.store
    found = store.accounts(kind)
    page = found[offset : offset + page_size(api, limit)]
    return json_response(UserInfos([user_view(one, store.memberships(one.name)) for one in page], len(found)))


class NewUser(_Body):
    """A person or a service. A service has no password, only tokens."""

    username: Name
    role: BuiltIn
    roles: list[Name] = Field(default=[], max_length=100, description="Custom roles.")
    kind: Literal["user", "service"] = "user"
    password: str | None = Field(default=None, max_length=1024, description="Null: a password is generated.")
    email: Text = ""
    full_name: Text = ""


@router.post("/users", status_code=201, responses=described(NewUserInfo, 201, also=(404, 409, 503)))
@allow("edit", "account")
def create_user(api: Api, caller: Caller, body: NewUser) -> Response:
    """Create an account. A generated password is in this response only."""
    refuse_personal_tokens(caller)
    if body.kind == "service" and body.password is not None:
        raise invalid(("body", "password"), english(phrase("error_service_password")))
    store = api.accounts.store
    _need_roles(api, body.roles)
    password = None if body.kind == "service" else body.password or new_password()
    _refuse_weak(api, body.password, body.username, "password")
    made = store.create_account(
        body.username,
        body.role,
        stamp=new_stamp(),
        at=api.clock.wall(),
        actor=caller.name,
        kind=body.kind,
        password=None if password is None else hash_password(password),
        email=body.email,
        full_name=body.full_name,
    )
    if body.roles:
        store.set_roles(body.username, body.roles, at=api.clock.wall(), actor=caller.name)
    shown = password if body.password is None else None
    return json_response(NewUserInfo(user_view(made, store.memberships(made.name)), shown), 201, _NO_STORE)


@router.get("/users/{username}", responses=described(UserInfo, also=(404,)))
@allow("read", "account")
def get_user(api: Api, username: str) -> Response:
    """One account."""
    return _user(api, username)


class UserPatch(_Body):
    """The fields to change. Other fields keep their values."""

    role: BuiltIn | None = None
    roles: list[Name] | None = Field(default=None, max_length=100, description="All custom roles.")
    email: Text | None = None
    full_name: Text | None = None
    is_active: bool | None = Field(default=None, description="False: the account is disabled. Its sessions and tokens end.")


@router.patch("/users/{username}", responses=described(UserInfo, also=(404, 409, 503)))
@allow("edit", "account")
def patch_user(api: Api, caller: Caller, username: str, body: UserPatch) -> Response:
    """Change an account. 409: the account is the only admin, and the change would take this role away."""
    refuse_personal_tokens(caller)
    store, at = api.accounts.store, api.clock.wall()
    _need_roles(api, body.roles or ())
    store.change_account(
        username,
        at=at,
        actor=caller.name,
        stamp=new_stamp(),
        role=body.role,
        email=body.email,
        full_name=body.full_name,
        is_active=body.is_active,
    )
    if body.roles is not None:
        store.set_roles(username, body.roles, at=at, actor=caller.name)
    return _user(api, username)


@router.delete("/users/{username}", status_code=204, responses=error_responses(404, 409, 503))
@allow("edit", "account")
def delete_user(api: Api, caller: Caller, username: str) -> Response:
    """Delete an account with its tokens and sessions. 409: it is the only admin."""
    refuse_personal_tokens(caller)
    api.accounts.store.delete_account(username, at=api.clock.wall(), actor=caller.name)
    return Response(status_code=204)


class PasswordReset(_Body):
    password: str | None = Field(default=None, max_length=1024, description="Null: a password is generated.")


@router.post("/users/{username}/password", responses=described(GeneratedPassword, also=(404, 409, 503)))
@allow("edit", "account")
def reset_password(api: Api, caller: Caller, username: str, body: PasswordReset) -> Response:
    """Give an account a new password. Its sessions and login tokens end; personal tokens stay."""
    refuse_personal_tokens(caller)
    store = api.accounts.store
    account = store.need_account(username)
    if account.source != "local" or account.kind != "user":
        raise Conflict(english(phrase("error_password_elsewhere", name=username)))
    _refuse_weak(api, body.password, username, "password")
    password = body.password or new_password()
    store.set_password(username, hash_password(password), new_stamp(), at=api.clock.wall(), actor=caller.name)
    return json_response(GeneratedPassword(None if body.password else password), headers=_NO_STORE)


@router.post("/users/{username}/logout", status_code=204, responses=error_responses(404, 503))
@allow("edit", "account")
def end_logins(api: Api, caller: Caller, username: str) -> Response:
    """End all sessions and login tokens of an account; personal tokens stay."""
    refuse_personal_tokens(caller)
    api.accounts.store.end_logins(username, new_stamp(), at=api.clock.wall(), actor=caller.name)
    return Response(status_code=204)


def _user(api: Services, name: str) -> Response:
    store = api.accounts.store
    return json_response(user_view(store.need_account(name), store.memberships(name)))


def _need_roles(api: Services, roles: tuple[str, ...] | list[str]) -> None:
    """Raises NotFound: there is no such custom role."""
    known = api.accounts.store.roles() if roles else {}
    for name in roles:
        if name not in known:
            raise NotFound(f"There is no custom role {name!r}.{did_you_mean(name, known)}")


def _refuse_weak(api: Services, password: str | None, name: str, field: str) -> None:
    reason = None if password is None else weakness(password, name, api.config.password_min_length)
    if reason is not None:
        raise invalid(("body", field), reason)


# --- tokens and sessions -------------------------------------------------------------------------------------------------


@router.get("/tokens", responses=described(Tokens, also=(404,)))
@allow("read", "account")
def list_tokens(api: Api, username: str | None = None, limit: Limit = 50, offset: Offset = 0) -> Response:
    """List the tokens of people and services, of one account or of all accounts."""
    if username is not None:
        api.accounts.store.need_account(username)
    found = api.accounts.store.tokens(username)
    page = found[offset : offset + page_size(api, limit)]
    return json_response(Tokens([token_view(one) for one in page], len(found)))


@router.post("/users/{username}/tokens", status_code=201, responses=described(NewTokenInfo, 201, also=(404, 409, 503)))
@allow("edit", "account")
def create_token(api: Api, caller: Caller, username: str, body: NewToken) -> Response:
    """Create a token for a service. 409: people create their own tokens. Its text is in this response only."""
    refuse_personal_tokens(caller)
    account = api.accounts.store.need_account(username)
    if account.kind != "service":
        raise Conflict(f"{username} is a person and creates personal tokens with POST /api/tradewind/v1/me/tokens.")
    return new_token(api, account, body, caller.name)


@router.delete("/tokens/{token_id}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "account")
def revoke_token(api: Api, caller: Caller, token_id: str) -> Response:
    """Revoke any token."""
    refuse_personal_tokens(caller)
    if not api.accounts.store.revoke_token(token_id, at=api.clock.wall(), actor=caller.name):
        raise NotFound(f"There is no token {token_id!r}.")
    return Response(status_code=204)


@router.get("/sessions", responses=described(Sessions, also=(404,)))
@allow("read", "account")
def list_sessions(api: Api, caller: Caller, username: str | None = None, limit: Limit = 50, offset: Offset = 0) -> Response:
    """List logins in browsers of one account or of all accounts, the most recently used first."""
    if username is not None:
        api.accounts.store.need_account(username)
    found = [one for one in api.accounts.store.sessions(username) if api.accounts.is_alive(one)]
    page = found[offset : offset + page_size(api, limit)]
    current = caller.jti if caller.method == "session" else ""
    return json_response(Sessions([session_view(one, api.accounts.ends_at(one), current) for one in page], len(found)))


@router.delete("/sessions/{session_id}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "account")
def end_session(api: Api, caller: Caller, request: Request, session_id: str) -> Response:
    """End any session."""
    refuse_personal_tokens(caller)
    at, address = api.clock.wall(), address_of(request)
    if not api.accounts.store.end_session(session_id, at=at, actor=caller.name, address=address):
        raise NotFound(f"There is no session {session_id!r}.")
    return Response(status_code=204)


# --- roles ---------------------------------------------------------------------------------------------------------------


@router.get("/roles", responses=described(RoleInfos))
@allow("read", "account")
def list_roles(api: Api) -> Response:
    """List the built-in roles, then the custom ones with their grants."""
    store = api.accounts.store
    grants = store.grants()
    built_in = [
        RoleInfo(name, "", True, sorted(f"{one.action}:{one.resource}" for one in permissions_of(name)), []) for name in ROLES
    ]
    custom = [role_view(name, description, grants) for name, description in store.roles().items()]
    return json_response(RoleInfos([*built_in, *custom], len(built_in) + len(custom)))


class Grant(_Body):
    """Permission for the DAGs with this id, or whose ids match a pattern with `*`."""

    dag_id: str = Field(min_length=1, max_length=250)
    action: GrantAction


class NewRole(_Body):
    name: Name
    description: Text = ""
    grants: list[Grant] = Field(default=[], max_length=1000)


@router.post("/roles", status_code=201, responses=described(RoleInfo, 201, also=(409, 503)))
@allow("edit", "account")
def create_role(api: Api, caller: Caller, body: NewRole) -> Response:
    """Create a custom role."""
    refuse_personal_tokens(caller)
    if body.name.lower() in ROLES:
        raise Conflict(english(phrase("error_role_built_in", role=body.name.lower())))
    store, at = api.accounts.store, api.clock.wall()
    store.create_role(body.name, body.description, at=at, actor=caller.name)
    if body.grants:
        store.set_grants(body.name, [(one.dag_id, one.action) for one in body.grants], at=at, actor=caller.name)
    return json_response(role_view(body.name, body.description, store.grants(body.name)), 201)


class Grants(_Body):
    grants: list[Grant] = Field(max_length=1000)


@router.put("/roles/{role}/grants", responses=described(RoleInfo, also=(404, 503)))
@allow("edit", "account")
def set_grants(api: Api, caller: Caller, role: str, body: Grants) -> Response:
    """Replace the grants of a custom role."""
    refuse_personal_tokens(caller)
    store = api.accounts.store
    store.set_grants(role, [(one.dag_id, one.action) for one in body.grants], at=api.clock.wall(), actor=caller.name)
    return json_response(role_view(role, store.roles().get(role, ""), store.grants(role)))


@router.delete("/roles/{role}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "account")
def delete_role(api: Api, caller: Caller, role: str) -> Response:
    """Delete a custom role; accounts lose it."""
    refuse_personal_tokens(caller)
    api.accounts.store.delete_role(role, at=api.clock.wall(), actor=caller.name)
    return Response(status_code=204)


# --- teams ---------------------------------------------------------------------------------------------------------------


@router.get("/teams", responses=described(TeamInfos))
@allow("read", "account")
def list_teams(api: Api) -> Response:
    """List the teams with their members and their DAGs."""
    store = api.accounts.store
    teams, members, dags = store.teams(), store.members(), store.team_dags()
    return json_response(TeamInfos([team_view(name, text, members, dags) for name, text in teams.items()], len(teams)))


class NewTeam(_Body):
    name: Name
    description: Text = ""


@router.post("/teams", status_code=201, responses=described(TeamInfo, 201, also=(409, 503)))
@allow("edit", "account")
def create_team(api: Api, caller: Caller, body: NewTeam) -> Response:
    """Create a team without members and DAGs."""
    refuse_personal_tokens(caller)
    api.accounts.store.create_team(body.name, body.description, at=api.clock.wall(), actor=caller.name)
    return json_response(team_view(body.name, body.description, [], []), 201)


@router.delete("/teams/{team}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "account")
def delete_team(api: Api, caller: Caller, team: str) -> Response:
    """Delete a team. Its DAGs belong to no team then."""
    refuse_personal_tokens(caller)
    api.accounts.store.delete_team(team, at=api.clock.wall(), actor=caller.name)
    return Response(status_code=204)


class Member(_Body):
    role: BuiltIn


@router.put("/teams/{team}/members/{username}", responses=described(TeamInfo, also=(404, 503)))
@allow("edit", "account")
def set_member(api: Api, caller: Caller, team: str, username: str, body: Member) -> Response:
    """Add an account to a team, or change its role there."""
    refuse_personal_tokens(caller)
    api.accounts.store.set_member(team, username, body.role, at=api.clock.wall(), actor=caller.name)
    return _team(api, team)


@router.delete("/teams/{team}/members/{username}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "account")
def remove_member(api: Api, caller: Caller, team: str, username: str) -> Response:
    """Remove an account from a team."""
    refuse_personal_tokens(caller)
    if not api.accounts.store.set_member(team, username, None, at=api.clock.wall(), actor=caller.name):
        raise NotFound(f"{username!r} is no member of the team {team!r}.")
    return Response(status_code=204)


class TeamDagsBody(_Body):
    """All DAGs of the team."""

    bundles: list[Annotated[str, Field(min_length=1, max_length=250)]] = Field(default=[], max_length=1000)
    dags: list[Annotated[str, Field(min_length=1, max_length=250)]] = Field(
        default=[], max_length=1000, description="DAG ids, or patterns with `*`."
    )


@router.put("/teams/{team}/dags", responses=described(TeamInfo, also=(404, 409, 503)))
@allow("edit", "account")
def set_team_dags(api: Api, caller: Caller, team: str, body: TeamDagsBody) -> Response:
    """Replace the DAGs of a team. 409: another team has one of the DAGs; the DAGs before it in the list are assigned."""
    refuse_personal_tokens(caller)
    store, at = api.accounts.store, api.clock.wall()
    before = set(store.team_dags(team))
    wanted = [*(TeamDags(team, "bundle", one) for one in body.bundles), *(TeamDags(team, "dag", one) for one in body.dags)]
    for one in wanted:
        if one not in before:
            store.assign_dags(one, at=at, actor=caller.name)
    for one in before - set(wanted):
        store.unassign_dags(one, at=at, actor=caller.name)
    return _team(api, team)


def _team(api: Services, team: str) -> Response:
    store = api.accounts.store
    teams = store.teams()
    if team not in teams:
        raise NotFound(f"There is no team {team!r}.{did_you_mean(team, teams)}")
    return json_response(team_view(team, teams[team], store.members(team), store.team_dags(team)))
