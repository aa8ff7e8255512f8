"""Login and logout: login tokens as in Airflow, and sessions for browsers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

import anyio.to_thread
from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.background import BackgroundTask

from tradewind.api.account_shapes import Me, me_view, menu_links
from tradewind.api.auth.accounts import DEVICE_SECONDS
from tradewind.api.auth.guard import COOKIE, SESSION_COOKIE, Identity, address_of, not_forged
from tradewind.api.auth.policy import allow, open_to_all
from tradewind.api.auth.tokens import BadToken
from tradewind.api.responses import Api, Caller, described, invalid, json_response
from tradewind.api.services import Services
from tradewind.api.shapes import Login
from tradewind.model.accounts import Account
from tradewind.model.phrases import english, phrase
from tradewind.store.views import read_plugins

router = APIRouter(prefix="/auth", tags=["Login"])

DEVICE_COOKIE = "tradewind_device"
"""Identifies a browser in which a person has logged in before, so that password guesses from other browsers do not make this
person wait.
"""


class Credentials(BaseModel):
    model_config = ConfigDict(extra="forbid")

    username: str = Field(min_length=1, max_length=200)
    password: str = Field(min_length=1, max_length=1024)


_INVALID = "#/components/schemas/HTTPValidationError"
_FORM = "application/x-www-form-urlencoded"
_FIELDS_MAX = 10
"""Of a form."""


async def _credentials(request: Request) -> Credentials:
    """The credentials in a JSON object or in a form. Raises RequestValidationError (422)."""
    data = await request.body()
    try:
        if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() == _FORM:
            return Credentials.model_validate(dict(parse_qsl(data.decode(), max_num_fields=_FIELDS_MAX)))
        return Credentials.model_validate_json(data)
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in error.errors()]) from None
    except ValueError as error:
        raise invalid(("body",), f"the form cannot be read: {error}") from None


_REFERENCE = {"schema": {"$ref": "#/components/schemas/Credentials"}}
_BODY = {"requestBody": {"required": True, "content": {"application/json": _REFERENCE, _FORM: _REFERENCE}}}
_WRONG_BODY = {"description": "The body is not valid.", "content": {"application/json": {"schema": {"$ref": _INVALID}}}}
_TOKEN: dict[int | str, dict[str, Any]] = {**described(Login, 201, also=(429, 503)), 422: _WRONG_BODY}


@router.post("/token", status_code=201, responses=_TOKEN, openapi_extra=_BODY)
@router.post("/token/cli", status_code=201, responses=_TOKEN, openapi_extra=_BODY)
@open_to_all()
def token(body: Annotated[Credentials, Depends(_credentials)], request: Request, api: Api) -> Response:
    """Get a token for a user name and a password, in JSON or a form. After some failures attempts have to wait."""
    wait, account = api.password_login.check(body.username, body.password, address_of(request))
    if account is None:
        return _refused(wait, api)
    api.accounts.store.note_login(account.name, api.clock.wall())
    answer = json_response(Login(api.tokens.issue(account.name, account.stamp)), 201, {"Cache-Control": "no-store"})
    return flush_logins(answer, api)


@router.post("/login", responses=described(Me, also=(429, 503)))
@open_to_all()
def log_in(body: Credentials, request: Request, api: Api) -> Response:
    """Start a session in a browser, and get the account. The response sets an HttpOnly cookie.

    Needs the header X-Tradewind-Request, as each later request that changes something.
    """
    not_forged(request)
    device = request.cookies.get(DEVICE_COOKIE, "")[:200]
    wait, account = api.password_login.check(body.username, body.password, address_of(request), device)
    if account is None:
        return _refused(wait, api)
    answer = start_session(api, request, account, json_response)
    return flush_logins(answer, api)


def start_session(
    api: Services, request: Request, account: Account, answer_with: Callable[[Me], Response], external: str = ""
) -> Response:
    """Start a session and set its cookies on the response that `answer_with` makes of the account."""
    secret, session = api.accounts.log_in(account, address_of(request), request.headers.get("User-Agent", ""), external)
    old = request.cookies.get(SESSION_COOKIE, "")
    if old and (found := api.accounts.by_session(old)) is not None:
        api.accounts.store.end_session(
            found.credential, at=api.clock.wall(), actor=found.account.name, address=address_of(request)
        )
    access = api.accounts.access(account)
    identity = Identity(account.name, account.role, session.id, api.accounts.ends_at(session), access, "session")
    answer = answer_with(me_view(account, identity, menu_links(read_plugins(api.reader().plugins())), None))
    secure = is_secure(request, api)
    answer.set_cookie(
        SESSION_COOKIE,
        secret,
        max_age=api.config.session_seconds,
        path="/",
        httponly=True,
        samesite="lax",
        secure=secure,
    )
    device = api.accounts.remember_device(account, request.cookies.get(DEVICE_COOKIE, "")[:200])
    answer.set_cookie(
        DEVICE_COOKIE, device, max_age=DEVICE_SECONDS, path="/auth", httponly=True, samesite="strict", secure=secure
    )
    answer.headers["Cache-Control"] = "no-store"
    return answer


LOGOUT_HEADER = "X-Tradewind-Logout"
"""Header of the answer to a logout: the address where the browser also logs out at the identity provider."""

_LOGGED_OUT = {
    "description": "The token or the session is invalid now.",
    "headers": {
        LOGOUT_HEADER: {"description": "Where to end the login at the identity provider.", "schema": {"type": "string"}}
    },
}


@router.post("/logout", status_code=204, responses={204: _LOGGED_OUT})
@allow("edit", "login")
def logout(request: Request, api: Api, me: Caller) -> Response:
    """Log out: the token of the request, and the token and the session in its cookies, become invalid."""
    ended = {me.jti: (me.expires_at, me.name)} if me.method == "jwt" else {}
    cookie = request.cookies.get(COOKIE, "")
    try:
        claims = api.tokens.check(cookie) if cookie else None
    except BadToken:
        claims = None
    if claims is not None:
        ended[str(claims["jti"])] = (int(claims["exp"]) * 1_000_000, str(claims["sub"]))
    for jti, (expires_at, name) in ended.items():
        api.logins.log_out(jti, expires_at, name, address_of(request))
    session = request.cookies.get(SESSION_COOKIE, "")
    found = api.accounts.by_session(session) if session else None
    if found is not None:
        api.accounts.store.end_session(
            found.credential, at=api.clock.wall(), actor=me.name, address=address_of(request), event="logout"
        )
    api.logins.flush()
    answer = Response(status_code=204)
    if found is not None and found.account.source == "oidc" and api.oidc is not None:
        elsewhere = api.oidc.logout_url(found.external, own_address(request, api) + "/login")
        if elsewhere is not None:
            answer.headers[LOGOUT_HEADER] = elsewhere
    if cookie:
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    if session:
        answer.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="lax", secure=is_secure(request, api))
    return flush_logins(answer, api)


def is_own_path(target: str) -> bool:
    """Whether a URL stays on this server."""
    parts = urlsplit(target)
    return not parts.scheme and not parts.netloc and target.startswith("/") and not target.startswith(("//", "/\\"))


def own_address(request: Request, api: Services) -> str:
    """The address of this server in the browser: `https://tradewind.example.com`."""
    return api.config.base_url or f"{request.url.scheme}://{request.url.netloc}"


def is_secure(request: Request, api: Services) -> bool:
    """Whether the browser reaches this server over TLS, directly or through a trusted proxy."""
    return request.url.scheme == "https" or api.config.base_url.startswith("https://")


def _refused(wait: int, api: Services) -> Response:
    if wait:
        headers = {"Retry-After": str(wait)}
        return flush_logins(json_response({"detail": english(phrase("error_attempts", seconds=wait))}, 429, headers), api)
    return flush_logins(json_response({"detail": english(phrase("error_login"))}, 401), api)


def flush_logins(answer: Response, api: Services) -> Response:
    """Send logins to the scheduler after this response."""
    answer.background = BackgroundTask(_flush, api)
    return answer


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
