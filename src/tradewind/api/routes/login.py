"""Logging in."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.answers import Api, described, json_answer
from tradewind.api.auth.policy import open_to_all
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
    """A token for a name and a password. Attempts are slowed down after a few failures."""
    address = request.client.host if request.client is not None else ""
    wait = api.throttle.admit(address, body.username)
    if wait:
        raise HTTPException(429, f"Too many attempts; try again in {wait} s.", headers={"Retry-After": str(wait)})
    user = api.users.login(body.username, body.password)
    if user is None:
        raise HTTPException(401, "The name or the password is wrong.")
    api.throttle.succeeded(address, body.username)
    return json_answer(Login(api.tokens.give(user.name, user.stamp)), 201, {"Cache-Control": "no-store"})
