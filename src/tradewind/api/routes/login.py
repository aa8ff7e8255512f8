"""Login and logout."""

from __future__ import annotations

import asyncio

import anyio.to_thread
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.background import BackgroundTask

from tradewind.api.auth.guard import COOKIE, Identity
from tradewind.api.auth.login_log import FAILED, LOGIN
from tradewind.api.auth.policy import allow, open_to_all
from tradewind.api.auth.tokens import BadToken
from tradewind.api.responses import Api, described, json_response
from tradewind.api.services import Services
from tradewind.api.shapes import Login

router = APIRouter(prefix="/auth", tags=["Login"])


class Credentials(BaseModel):
    model_config = ConfigDict(extra="forbid")

    username: str = Field(min_length=1, max_length=200)
    password: str = Field(min_length=1, max_length=1024)


@router.post("/token", status_code=201, responses=described(Login, 201, also=(429,)))
@router.post("/token/cli", status_code=201, responses=described(Login, 201, also=(429,)))
@open_to_all()
def token(body: Credentials, request: Request, api: Api) -> Response:
    """Get a token for a user name and a password. After some failures attempts have to wait."""
    address = _address(request)
    wait = api.throttle.admit(address, body.username)
    user = api.users.login(body.username, body.password) if not wait else None
    api.logins.note(FAILED if user is None else LOGIN, body.username, address)
    if wait:
        answer = json_response({"detail": f"Too many attempts; try again in {wait} s."}, 429, {"Retry-After": str(wait)})
    elif user is None:
        answer = json_response({"detail": "The user name or the password is wrong."}, 401)
    else:
        api.throttle.succeeded(address, body.username)
        answer = json_response(Login(api.tokens.issue(user.name, user.stamp)), 201, {"Cache-Control": "no-store"})
    answer.background = BackgroundTask(_flush, api)
    return answer


@router.post("/logout", status_code=204, responses={204: {"description": "The token is invalid now."}})
@allow("edit", "login")
def logout(request: Request, api: Api) -> Response:
    """Log out: the token of the request and the token in the cookie become invalid."""
    me: Identity = request.state.identity
    ended = {me.jti: (me.expires_at, me.name)}
    cookie = request.cookies.get(COOKIE, "")
    try:
        claims = api.tokens.check(cookie) if cookie else None
    except BadToken:
        claims = None
    if claims is not None:
        ended[str(claims["jti"])] = (int(claims["exp"]) * 1_000_000, str(claims["sub"]))
    for jti, (expires_at, name) in ended.items():
        api.logins.log_out(jti, expires_at, name, _address(request))
    api.logins.flush()
    answer = Response(status_code=204, background=BackgroundTask(_flush, api))
    if cookie:
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


async def _flush(api: Services) -> None:
    """Send logins to the scheduler after the response, and again when the next row is due."""
    wait = await anyio.to_thread.run_sync(api.logins.flush)
    if wait is not None and not api.flush_is_scheduled:
        api.flush_is_scheduled = True
        asyncio.get_running_loop().call_later(wait / 1_000_000, _flush_again, api)


def _flush_again(api: Services) -> None:
    api.flush_is_scheduled = False
    task = asyncio.ensure_future(_flush(api))
    api.tasks.add(task)
    task.add_done_callback(api.tasks.discard)
