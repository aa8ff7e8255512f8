"""The account that is logged in: its permissions, password, sessions and personal tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.account_shapes import (
    Me,
    NewTokenInfo,
    Sessions,
    Tokens,
    me_view,
    menu_links,
    session_view,
    token_view,
)
from tradewind.api.auth.guard import Identity, address_of, refuse_personal_tokens
from tradewind.api.auth.passwords import hash_password, new_stamp, weakness
from tradewind.api.auth.policy import Policy, allow
from tradewind.api.responses import Api, Caller, described, error_responses, invalid, json_response
from tradewind.api.services import Services
from tradewind.api.triage import failed_run_count
from tradewind.model.accounts import ROLES, Account
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.phrases import english, phrase
from tradewind.store.views import read_plugins

router = APIRouter(prefix="/api/tradewind/v1/me", tags=["Me"])

DAYS_MAX = 3650
Label = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]


@router.get("", responses=described(Me))
@allow("read", "me")
def get_me(api: Api, caller: Caller) -> Response:
    """The account that sends this request, what it may do, and what the bar of the web page shows."""
    reader = api.reader()
    reads = caller.access.may(Policy("read", "task_instance"))
    failed = failed_run_count(reader) if reads else None
    return json_response(me_view(_account(api, caller), caller, menu_links(read_plugins(reader.plugins())), failed))


class NewPassword(BaseModel):
    model_config = ConfigDict(extra="forbid")

    current_password: str = Field(max_length=1024)
    new_password: str = Field(max_length=1024)


@router.post("/password", status_code=204, responses=error_responses(409, 429, 503))
@allow("edit", "me")
def change_password(api: Api, caller: Caller, request: Request, body: NewPassword) -> Response:
    """Change the password of this account. All sessions and login tokens of the account end, also the session of this request."""
    account = _account(api, caller)
    if account.source != "local" or account.kind != "user":
        raise HTTPException(409, english(phrase("error_password_elsewhere", name=account.name)))
    refuse_personal_tokens(caller)
    wait, found = api.password_login.check(account.name, body.current_password, address_of(request))
    if wait:
        raise HTTPException(429, english(phrase("error_attempts", seconds=wait)), headers={"Retry-After": str(wait)})
    if found is None:
        raise HTTPException(403, english(phrase("error_old_password")))
    reason = weakness(body.new_password, account.name, api.config.password_min_length)
    if reason is not None:
        raise invalid(("body", "new_password"), reason)
    api.accounts.store.set_password(
        account.name, hash_password(body.new_password), new_stamp(), at=api.clock.wall(), actor=account.name
    )
    return Response(status_code=204)


@router.get("/sessions", responses=described(Sessions))
@allow("read", "me")
def list_my_sessions(api: Api, caller: Caller) -> Response:
    """The browser logins of this account."""
    found = [one for one in api.accounts.store.sessions(caller.name) if api.accounts.is_alive(one)]
    current = caller.jti if caller.method == "session" else ""
    return json_response(Sessions([session_view(one, api.accounts.ends_at(one), current) for one in found], len(found)))


@router.delete("/sessions/{session_id}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "me")
def end_my_session(api: Api, caller: Caller, request: Request, session_id: str) -> Response:
    """End a session of this account."""
    own = {one.id for one in api.accounts.store.sessions(caller.name)}
    ended = session_id in own and api.accounts.store.end_session(
        session_id, at=api.clock.wall(), actor=caller.name, address=address_of(request)
    )
    if not ended:
        raise NotFound(f"There is no session {session_id!r} of {caller.name}.")
    return Response(status_code=204)


@router.get("/tokens", responses=described(Tokens))
@allow("read", "me")
def list_my_tokens(api: Api, caller: Caller) -> Response:
    """The personal tokens of this account."""
    found = api.accounts.store.tokens(caller.name)
    return json_response(Tokens([token_view(one) for one in found], len(found)))


class NewToken(BaseModel):
    model_config = ConfigDict(extra="forbid")

    label: Label
    role: str | None = Field(default=None, description="The role that limits the token. Null: the rights of the account.")
    days: float | None = Field(default=90, gt=0, le=DAYS_MAX, description="Null: until it is revoked.")


@router.post("/tokens", status_code=201, responses=described(NewTokenInfo, 201, also=(503,)))
@allow("edit", "me")
def create_my_token(api: Api, caller: Caller, body: NewToken) -> Response:
    """Create a personal token. Its text is in this response only."""
    refuse_personal_tokens(caller)
    return new_token(api, _account(api, caller), body, caller.name)


def new_token(api: Services, account: Account, body: NewToken, actor: str) -> Response:
    """Create a token of an account. Raises RequestValidationError (422): there is no such role."""
    if body.role is not None and body.role not in ROLES:
        raise invalid(("body", "role"), f"{body.role!r} is not a role.{did_you_mean(body.role, ROLES)}")
    seconds = None if body.days is None else max(1, round(body.days * 24 * 3600))
    text, token = api.accounts.create_token(account, body.label, body.role or "admin", seconds, actor)
    return json_response(NewTokenInfo(text, token_view(token)), 201, {"Cache-Control": "no-store"})


@router.delete("/tokens/{token_id}", status_code=204, responses=error_responses(404, 503))
@allow("edit", "me")
def revoke_my_token(api: Api, caller: Caller, token_id: str) -> Response:
    """Revoke a personal token of this account."""
    found = api.accounts.store.token(token_id)
    if (
        found is None
        or found[0].account != caller.name
        or not api.accounts.store.revoke_token(token_id, at=api.clock.wall(), actor=caller.name)
    ):
        raise NotFound(f"There is no token {token_id!r} of {caller.name}.")
    return Response(status_code=204)


def _account(api: Services, caller: Identity) -> Account:
    return api.accounts.store.need_account(caller.name)
