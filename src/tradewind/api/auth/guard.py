"""What every request passes first: who is it, may they do this, and does the request say only what the route knows?

Deny by default: the guard is a dependency of the whole application, and a route without a policy is closed. A cookie is sent by
browsers by themselves, so an unsafe request with a cookie must also carry a header that no other site's page can set, and
must come from our own origin. A bearer token needs neither.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from tradewind.api.auth.policy import OPEN, may, policy_of
from tradewind.api.auth.tokens import BadToken
from tradewind.api.bodies import refuse_what_cannot_be_kept
from tradewind.api.services import Services
from tradewind.model.errors import did_you_mean

COOKIE = "_token"
CSRF_HEADER = "X-Tradewind-Request"
"""Any value; that it is there at all needs our own origin's permission (CORS preflight), which we never give."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Identity(NamedTuple):
    """Who asks."""

    name: str
    role: str
    jti: str
    """Name of the token."""
    expires_at: int
    """Microseconds: when the token ends."""


async def guard(request: Request) -> None:
    """Raises HTTPException 401, 403 or 400, RequestValidationError (422)."""
    services: Services = request.app.state.services
    endpoint = request.scope.get("endpoint")
    policy = policy_of(endpoint)
    if policy is None:
        raise HTTPException(403, "This address has no policy, so nobody may use it.")
    if policy != OPEN:
        identity = _authenticated(request, services)
        if not may(identity.role, policy):
            raise HTTPException(
                403, f"{identity.name} has the role {identity.role}, which may not {policy.action} {policy.resource}."
            )
        request.state.identity = identity
    _known_parameters(request, services.query_names.get(endpoint, frozenset()))
    await refuse_what_cannot_be_kept(request)


def _authenticated(request: Request, services: Services) -> Identity:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        token = token.strip()
    elif scheme:
        raise _unauthorized("Only bearer tokens are taken: Authorization: Bearer <token>.")
    else:
        token = request.cookies.get(COOKIE, "")
        if token:
            _not_forged(request)
    if not token:
        raise _unauthorized("Log in first: POST /auth/token with username and password.")
    try:
        claims = services.tokens.check(token)
    except BadToken:
        raise _unauthorized("This token is not valid (any more); log in again.") from None
    user = services.users.find(str(claims["sub"]))
    jti = str(claims["jti"])
    if user is None or user.stamp != claims["stamp"] or services.is_revoked(jti):
        raise _unauthorized("This token is not valid (any more); log in again.")
    return Identity(user.name, user.role, jti, int(claims["exp"]) * 1_000_000)


def _not_forged(request: Request) -> None:
    """Raises 403 when another site's page could have made a browser send this."""
    if request.method in _SAFE:
        return
    if CSRF_HEADER not in request.headers:
        raise HTTPException(403, f"A request with a cookie that changes something needs the header {CSRF_HEADER}.")
    origin = request.headers.get("Origin") or request.headers.get("Referer")
    if origin is None or urlsplit(origin).netloc != request.headers.get("Host"):
        raise HTTPException(403, f"This request comes from {origin or 'an unknown place'}, not from our own pages.")


def _known_parameters(request: Request, known: frozenset[str]) -> None:
    """A filter that is not known must not be ignored: the answer would look filtered and not be."""
    for name in request.query_params:
        if name not in known:
            raise HTTPException(
                400, f"The parameter {name!r} is not known (or not supported yet) here.{did_you_mean(name, known)}"
            )


def _unauthorized(why: str) -> HTTPException:
    return HTTPException(401, why, headers={"WWW-Authenticate": "Bearer"})
