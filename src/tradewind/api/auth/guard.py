"""The guard of every request: authentication, authorization, and the check for unknown query parameters.

Deny by default: the guard is a dependency of the whole application, and a route without a policy is closed. A browser sends a
cookie by itself. So a request that changes something with a cookie must also carry a header that no page of another site can set,
and must come from our own origin. A bearer token needs neither.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from tradewind.api.auth.policy import OPEN, may, policy_of
from tradewind.api.auth.tokens import BadToken
from tradewind.api.request_values import refuse_unstorable_values
from tradewind.api.services import Services
from tradewind.model.errors import did_you_mean

COOKIE = "_token"
CSRF_HEADER = "X-Tradewind-Request"
"""With any value. A page of another origin may send this header only after a CORS preflight, which we never allow."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Identity(NamedTuple):
    """The user who sends a request."""

    name: str
    role: str
    jti: str
    """Id of the token."""
    expires_at: int
    """When the token expires, microseconds."""


async def guard(request: Request) -> None:
    """Raises HTTPException 401, 403 or 400, RequestValidationError (422)."""
    services: Services = request.app.state.services
    endpoint = request.scope.get("endpoint")
    policy = policy_of(endpoint)
    if policy is None:
        raise HTTPException(403, "This route has no policy, so nobody may use it.")
    if policy != OPEN:
        identity = _authenticated(request, services)
        if not may(identity.role, policy):
            raise HTTPException(
                403,
                f"{identity.name} has the role {identity.role}, which has no permission to {policy.action} {policy.resource}.",
            )
        request.state.identity = identity
    _known_parameters(request, services.query_names.get(endpoint, frozenset()))
    await refuse_unstorable_values(request)


def _authenticated(request: Request, services: Services) -> Identity:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        token = token.strip()
    elif scheme:
        raise _unauthorized("Only bearer tokens are accepted: Authorization: Bearer <token>.")
    else:
        token = request.cookies.get(COOKIE, "")
        if token:
            _not_forged(request)
    if not token:
        raise _unauthorized("Log in first: POST /auth/token with username and password.")
    try:
        claims = services.tokens.check(token)
    except BadToken:
        raise _unauthorized("This token is not valid, or not valid any more; log in again.") from None
    user = services.users.find(str(claims["sub"]))
    jti = str(claims["jti"])
    if user is None or user.stamp != claims["stamp"] or services.is_revoked(jti):
        raise _unauthorized("This token is not valid, or not valid any more; log in again.")
    return Identity(user.name, user.role, jti, int(claims["exp"]) * 1_000_000)


def _not_forged(request: Request) -> None:
    """Raises 403 where a page of another site could have made the browser send this request."""
    if request.method in _SAFE:
        return
    if CSRF_HEADER not in request.headers:
        raise HTTPException(403, f"A request that changes something and uses a cookie needs the header {CSRF_HEADER}.")
    origin = request.headers.get("Origin") or request.headers.get("Referer")
    if origin is None or urlsplit(origin).netloc != request.headers.get("Host"):
        raise HTTPException(403, f"This request comes from {origin or 'an unknown origin'}, not from the pages of this server.")


def _known_parameters(request: Request, known: frozenset[str]) -> None:
    """Raises 400 for an unknown query parameter: if a filter were ignored, the response would look filtered and would not be."""
    for name in request.query_params:
        if name not in known:
            raise HTTPException(
                400, f"This route does not know (or not yet support) the parameter {name!r}.{did_you_mean(name, known)}"
            )


def _unauthorized(why: str) -> HTTPException:
    return HTTPException(401, why, headers={"WWW-Authenticate": "Bearer"})
