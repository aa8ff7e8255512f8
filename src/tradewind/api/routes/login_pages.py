"""Airflow's addresses for the login and the logout of people. They redirect to Tradewind's pages."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from tradewind.api.auth.policy import allow, open_to_all
from tradewind.api.responses import Api, Caller, described, error_responses
from tradewind.api.routes.login import LOGOUT_HEADER, is_own_path, logout
from tradewind.api.shapes import Problem

router = APIRouter(prefix="/api/v2/auth", tags=["Login"])
_REDIRECT: dict[int | str, dict[str, Any]] = {307: {"description": "The page is there."}}


@router.get("/login", status_code=307, response_class=RedirectResponse, responses={**_REDIRECT, **described(Problem, 400)})
@open_to_all()
def login_page(
    next: Annotated[str | None, Query(description="Path of this server to go to after the login.")] = None,
) -> Response:
    """Go to the page for people. Programs get a token with `POST /auth/token`."""
    if next is not None and not is_own_path(next):
        raise HTTPException(400, "Invalid or unsafe next URL: give a path of this server, like /docs")
    return RedirectResponse("/" if not next else f"/?{urlencode({'next': next})}", 307)


@router.get("/logout", status_code=307, response_class=RedirectResponse, responses={**_REDIRECT, **error_responses(503)})
@allow("read", "login")
def logout_page(request: Request, api: Api, me: Caller) -> Response:
    """End the login of the request, then go to the page for people."""
    ended = logout(request, api, me)
    answer = RedirectResponse(ended.headers.get(LOGOUT_HEADER, "/"), 307, background=ended.background)
    for name, value in ended.raw_headers:
        if name == b"set-cookie":
            answer.raw_headers.append((name, value))
    return answer
