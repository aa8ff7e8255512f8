"""The guard of every request: authentication, authorization, and the check for unknown query parameters.

Deny by default: the guard is a dependency of the whole application, and a route without a policy is closed. A browser sends a
cookie by itself. So a request that changes something with a cookie must also carry a header that no page of another site can set,
and must come from the origin of this server. A bearer token needs neither.

A request proves who sends it in one of these ways:

- `Authorization: Bearer` with a login token (a JWT of `/auth/token`) or a personal token (`tw_…`);
- the cookie of a session (`POST /auth/login`), or of a login token, as Airflow's web page uses it;
- `Authorization: Basic`, only below `/api/v1`, as in Airflow 2. The password may be a personal token.
"""

from __future__ import annotations

import base64
import binascii
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import anyio.to_thread
from fastapi import HTTPException, Request

from tradewind.api.auth.accounts import TOKEN_PREFIX, SignedIn
from tradewind.api.auth.dag_access import READ_DAG
from tradewind.api.auth.objects import dag_of
from tradewind.api.auth.permissions import Access
from tradewind.api.auth.policy import (
    DAG_RESOURCES,
    OPEN,
    PERSONAL_RESOURCES,
    Policy,
    accepts_any_parameters,
    checks_objects,
    policy_of,
)
from tradewind.api.auth.tokens import BadToken
from tradewind.api.request_values import refuse_unstorable_values
from tradewind.api.services import Services
from tradewind.model.errors import did_you_mean
from tradewind.model.phrases import english, phrase

COOKIE = "_token"
"""Cookie with a login token, as in Airflow."""
SESSION_COOKIE = "tradewind_session"
CSRF_HEADER = "X-Tradewind-Request"
"""The header may have any value. A page of another origin may send it only after a CORS preflight, which this server never
allows.
"""

ACCEPTS_BASIC = "tradewind.accepts_basic"
"""Key in the scope of a request of Airflow 2 that is translated to `/api/v2`."""
BASIC_PATHS = "/api/v1/"
"""Basic authentication is accepted only below this path."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_SECRET_MAX = 500
"""Maximum length of a cookie or a personal token. Those of Tradewind have less than 100 characters."""

NEVER = 2**62

Method = Literal["session", "token", "jwt", "basic"]


class Identity(NamedTuple):
    """The account that sends a request."""

    name: str
    role: str
    jti: str
    """Id of the login token, the session or the personal token."""
    expires_at: int
    """When the credential expires, microseconds; `NEVER`: it does not expire."""
    access: Access = Access("public")
    method: Method = "jwt"


async def guard(request: Request) -> None:
    """Raises HTTPException 401, 403 or 400, RequestValidationError (422)."""
    services: Services = request.app.state.services
    endpoint = request.scope.get("endpoint")
    policy = policy_of(endpoint)
    if policy is None:
        raise HTTPException(403, "This route has no policy, so nobody may use it.")
    if policy != OPEN:
        identity = await _authenticated(request, services)
        if not identity.access.may(policy):
            raise HTTPException(
                403,
                english(
                    phrase(
                        "error_role",
                        name=identity.name,
                        role=identity.access.effective_role,
                        action=policy.action,
                        resource=policy.resource,
                    )
                ),
            )
        await _check_object(request, services, identity, policy)
        request.state.identity = identity
    if not accepts_any_parameters(endpoint):
        _known_parameters(request, services.query_names.get(endpoint, frozenset()))
    await refuse_unstorable_values(request)


async def _check_object(request: Request, services: Services, identity: Identity, policy: Policy) -> None:
    """Decide on the DAG that the request is about. For a DAG that the account may not read, the answer is the same as for a
    DAG that does not exist.

    Raises:
        NotFound: the account may not read the DAG.
        HTTPException: 403; it may read the DAG, but not do this with it, or the route needs the DAG to decide.
    """
    access, resource = identity.access, policy.resource
    if access.role == "admin":
        return  # `access.may` has decided
    endpoint = request.scope.get("endpoint")
    dag_id = await dag_of(request, services.whole_reader)
    if dag_id is None:
        if (
            resource in DAG_RESOURCES
            and policy.action != "read"
            and not checks_objects(endpoint)
            and not access.may_on_all(policy)
        ):
            some = phrase("error_some_dags", name=identity.name, action=policy.action, resource=resource)
            raise HTTPException(403, english(some))
        return
    reads = policy.action == "read" or resource in PERSONAL_RESOURCES
    need(services, identity, policy if resource in DAG_RESOURCES else Policy("read" if reads else "edit", "dag"), dag_id)


def need(services: Services, identity: Identity, policy: Policy, dag_id: str) -> None:
    """Check that the account may do this with this DAG. For routes that find their DAGs themselves (`checks_objects`).

    Raises:
        NotFound: the account may not read the DAG.
        HTTPException: 403; it may read the DAG, but not do this with it.
    """
    visible = services.visible_to(identity.access)
    if visible is not None:
        exists = bool(services.whole_reader().dag_bundles([dag_id]))
        if not exists or not services.decides(identity.access, READ_DAG, dag_id):
            # raises NotFound: the answer is the same for a DAG that exists and for one that does not
            services.limited_to(visible - {dag_id}).reader().need_dag(dag_id)
    if not services.decides(identity.access, policy, dag_id):
        why = phrase("error_dag_forbidden", name=identity.name, action=policy.action, resource=policy.resource, dag=dag_id)
        raise HTTPException(403, english(why))


async def _authenticated(request: Request, services: Services) -> Identity:
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() == "bearer" and secret.startswith(TOKEN_PREFIX):
        return await _by_token(secret, request, services)
    if scheme.lower() == "bearer":
        return _by_login_token(secret, services)
    if scheme.lower() == "basic" and (request.url.path.startswith(BASIC_PATHS) or ACCEPTS_BASIC in request.scope):
        return await _by_password(secret, request, services)
    if scheme:
        raise _unauthorized("Only bearer tokens are accepted: Authorization: Bearer <token>.")
    if request.cookies.get(SESSION_COOKIE):
        not_forged(request)
        return await _by_session(request.cookies[SESSION_COOKIE], request, services)
    cookie = request.cookies.get(COOKIE, "")
    if cookie:
        not_forged(request)
    return _by_login_token(cookie, services)


def _by_login_token(token: str, services: Services) -> Identity:
    if not token:
        raise _unauthorized("Log in first: POST /auth/token with username and password.")
    try:
        claims = services.tokens.check(token)
    except BadToken:
        raise _unauthorized(_NOT_VALID) from None
    account = services.accounts.find(str(claims["sub"]))
    jti = str(claims["jti"])
    if account is None or account.stamp != claims["stamp"] or services.is_revoked(jti):
        raise _unauthorized(_NOT_VALID)
    access = services.accounts.access(account)
    return Identity(account.name, account.role, jti, int(claims["exp"]) * 1_000_000, access, "jwt")


async def _by_session(secret: str, request: Request, services: Services) -> Identity:
    found = services.accounts.by_session(secret) if len(secret) <= _SECRET_MAX else None
    if found is None:
        raise _unauthorized("Your session has ended; log in again.")
    if found.wants_note:
        at, address = services.clock.wall(), address_of(request)
        await anyio.to_thread.run_sync(services.accounts.store.note_session_use, found.credential, at, address)
    return _identity(found, "session")


async def _by_token(secret: str, request: Request, services: Services, method: Method = "token") -> Identity:
    found = services.accounts.by_token(secret) if len(secret) <= _SECRET_MAX else None
    if found is None:
        raise _unauthorized("This personal token is not valid: it is unknown, was revoked, or has expired.")
    if found.wants_note:
        at, address = services.clock.wall(), address_of(request)
        await anyio.to_thread.run_sync(services.accounts.store.note_token_use, found.credential, at, address)
    return _identity(found, method)


async def _by_password(secret: str, request: Request, services: Services) -> Identity:
    """Basic authentication. A correct password is remembered for some minutes, so that not every request needs a slow hash."""
    try:
        name, mark, password = base64.b64decode(secret, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        name = mark = password = ""
    if not mark:
        raise _unauthorized("The Authorization header does not hold a user name and a password.", "Basic")
    if password.startswith(TOKEN_PREFIX):
        found = await _by_token(password, request, services, "basic")
        if found.name != name:
            raise _unauthorized("This personal token belongs to another account.", "Basic")
        return found
    accounts = services.accounts
    account = accounts.verified_lately(name, password)
    if account is None:
        wait, account = await anyio.to_thread.run_sync(services.password_login.check, name, password, address_of(request))
        if wait:
            raise HTTPException(429, english(phrase("error_attempts", seconds=wait)), headers={"Retry-After": str(wait)})
        if account is None:
            raise _unauthorized(english(phrase("error_login")), "Basic")
        accounts.remember_verified(account, password)
    return Identity(account.name, account.role, "", NEVER, accounts.access(account), "basic")


def _identity(found: SignedIn, method: Method) -> Identity:
    return Identity(found.account.name, found.account.role, found.credential, found.expires_at or NEVER, found.access, method)


def not_forged(request: Request) -> None:
    """Check that no page of another site can have made the browser send this request. Raises 403."""
    if request.method in _SAFE:
        return
    if CSRF_HEADER not in request.headers:
        raise HTTPException(403, f"A request that changes something and uses a cookie needs the header {CSRF_HEADER}.")
    origin = request.headers.get("Origin") or request.headers.get("Referer")
    services: Services = request.app.state.services
    ours = {request.headers.get("Host"), urlsplit(services.config.base_url).netloc or None}
    if origin is None or urlsplit(origin).netloc not in ours - {None}:
        raise HTTPException(403, f"This request comes from {origin or 'an unknown origin'}, not from the pages of this server.")


def refuse_personal_tokens(identity: Identity) -> None:
    """Raises 403 for a request with a personal token. Otherwise a person with a leaked token could create another token, an
    account or a password, which stay valid after the leaked token is revoked.
    """
    if identity.method == "token":
        raise HTTPException(403, "A personal token cannot do this; log in with name and password.")


def address_of(request: Request) -> str:
    """The address of the client: behind a trusted proxy, the address that the proxy names."""
    return request.client.host if request.client is not None else ""


def _known_parameters(request: Request, known: frozenset[str]) -> None:
    """Raises 400 for an unknown query parameter: if a filter were ignored, the response would look filtered and would not be.

    `limit` and `offset` are not filters: clients send them to every list, and a list without pages is complete, as in Airflow.
    """
    for name in request.query_params:
        if name not in known and name not in ("limit", "offset"):
            raise HTTPException(
                400, f"This route does not know (or not yet support) the parameter {name!r}.{did_you_mean(name, known)}"
            )


_NOT_VALID = english(phrase("error_token"))


def _unauthorized(why: str, scheme: str = "Bearer") -> HTTPException:
    return HTTPException(401, why, headers={"WWW-Authenticate": scheme})
