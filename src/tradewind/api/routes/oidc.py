"""Login at an identity provider (OpenID Connect), and the ways to log in that the login page shows."""

from __future__ import annotations

from html import escape
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tradewind.api.account_shapes import LoginProvider, LoginProviders
from tradewind.api.auth.guard import address_of
from tradewind.api.auth.login_attempt import ATTEMPT_SECONDS, new_attempt, seal, unseal
from tradewind.api.auth.login_log import FAILED, LOGIN
from tradewind.api.auth.oidc import CALLBACK, HINT_MAX, OidcProvider
from tradewind.api.auth.policy import open_to_all
from tradewind.api.pages import problem_page
from tradewind.api.responses import Api, described, error_responses, json_response, status_of
from tradewind.api.routes.login import flush_logins, is_own_path, is_secure, own_address, start_session
from tradewind.api.services import Services
from tradewind.model.errors import LoginRefused, TradewindError

router = APIRouter(prefix="/auth", tags=["Login"])

ATTEMPT_COOKIE = "tradewind_oidc"
_COOKIE_PATH = "/auth/oidc"
_START = "/auth/oidc/login"
_UNKNOWN = "(identity provider)"
"""Name in the audit log for the failed login of a person whom the provider has not named."""


@router.get("/providers", responses=described(LoginProviders))
@open_to_all()
def list_providers(api: Api) -> Response:
    """List the identity providers with which people can log in, in addition to name and password."""
    oidc = api.oidc
    found = [] if oidc is None else [LoginProvider(name="oidc", label=oidc.config.label, url=_START)]
    return json_response(LoginProviders(providers=found))


@router.get(
    "/oidc/login",
    status_code=303,
    response_class=RedirectResponse,
    responses={303: {"description": "The person logs in there."}, **error_responses(404, 502, 503)},
)
@open_to_all()
def start_login(
    api: Api,
    request: Request,
    next: Annotated[str, Query(max_length=2000, description="Path of this server to go to after the login.")] = "/",
) -> Response:
    """Go to the identity provider to log in. The browser comes back to `/auth/oidc/callback`."""
    provider = _provider(api)
    if not is_own_path(next):
        raise HTTPException(400, "Invalid or unsafe next URL: give a path of this server, like /dags")
    attempt = new_attempt(own_address(request, api) + CALLBACK, next)
    try:
        url = provider.login_url(attempt)
    except TradewindError as error:
        return _problem(error, next)
    answer = RedirectResponse(url, 303, headers={"Cache-Control": "no-store"})
    answer.set_cookie(
        ATTEMPT_COOKIE,
        seal(attempt, api.tokens.key_for("oidc attempt"), api.clock.wall()),
        max_age=ATTEMPT_SECONDS,
        path=_COOKIE_PATH,
        httponly=True,
        samesite="lax",
        secure=is_secure(request, api),
    )
    return answer


@router.get(
    "/oidc/callback",
    status_code=303,
    response_class=RedirectResponse,
    responses={303: {"description": "The person is logged in."}, **error_responses(404, 502, 503)},
)
@open_to_all(any_parameters=True)
def end_login(api: Api, request: Request) -> Response:
    """End a login: the browser comes here from the identity provider, with a code. Starts a session."""
    provider = _provider(api)
    text = request.cookies.get(ATTEMPT_COOKIE, "")
    attempt = unseal(text, api.tokens.key_for("oidc attempt"), api.clock.wall()) if text else None
    if attempt is None:
        return _without_attempt(
            _problem(
                LoginRefused("This login was started in another browser, or more than 10 minutes ago. Start it again."), "/"
            )
        )
    name = _UNKNOWN
    try:
        person, id_token = provider.person(attempt, dict(request.query_params))
        name = person.name
        account = api.oidc_accounts.account_of(person)
    except TradewindError as error:
        api.logins.note(FAILED, name, address_of(request))
        return flush_logins(_without_attempt(_problem(error, attempt.next)), api)
    api.logins.note(LOGIN, account.name, address_of(request))
    hint = id_token if len(id_token) <= HINT_MAX else ""
    answer = start_session(api, request, account, lambda me: RedirectResponse(attempt.next, 303), external=hint)
    return flush_logins(_without_attempt(answer), api)


def _provider(api: Services) -> OidcProvider:
    if api.oidc is None:
        raise HTTPException(404, "No identity provider is set up here: the setting oidc.issuer is none.")
    return api.oidc


def _without_attempt(answer: Response) -> Response:
    answer.delete_cookie(ATTEMPT_COOKIE, path=_COOKIE_PATH, httponly=True, samesite="lax")
    return answer


def _problem(error: TradewindError, next: str) -> Response:
    """A page that shows the error. The provider's text may be hostile, so it is escaped."""
    again = f"{_START}?{urlencode({'next': next})}"
    body = (
        f"<h1>The login failed</h1><p>{escape(str(error))}</p>"
        f'<p><a href="{escape(again)}">Try again</a> · <a href="/login">Other ways to log in</a></p>'
    )
    return HTMLResponse(problem_page("Tradewind: the login failed", body), status_of(error))
