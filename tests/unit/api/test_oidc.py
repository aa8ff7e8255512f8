"""Logins at an identity provider: the whole way through the routes, against a provider on real HTTP."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.unit.api.conftest import World
from tests.unit.api.oidc_provider import CLIENT, SECRET, OidcServer
from tradewind.api.app import create_app
from tradewind.api.auth.oidc import claim_of, is_private_address
from tradewind.api.config import LdapConfig, OidcConfig
from tradewind.model.moments import HOUR, MINUTE, SECOND

GROUPS = {"admins": ("admin",), "eng": ("op",), "finance": ("team:finance:user", "role:auditor")}


def use_logins(world: World, oidc: OidcConfig | None = None, ldap: LdapConfig | None = None) -> None:
    """Give the application of this world other settings for logins."""
    new = create_app(dataclasses.replace(world.config, oidc=oidc, ldap=ldap), controls=lambda: world.control, clock=world.clock)
    world.app.state.services.close()
    world.app.state.services = new.state.services


class Browser:
    """Somebody who logs in at the provider. It keeps cookies as a browser does."""

    def __init__(self, world: World, provider: OidcServer) -> None:
        self.world = world
        self.provider = provider
        self.cookies: dict[str, str] = {}

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.send("GET", path, **more)

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        self.world.http.cookies.clear()
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()), **more.pop("headers", {})}
        answer = self.world.bare(method, path, headers=headers, **more)
        for name, value in answer.cookies.items():
            self.cookies[name] = value
        for line in answer.headers.get_list("set-cookie"):
            if "Max-Age=0" in line:
                self.cookies.pop(line.partition("=")[0], None)
        self.world.http.cookies.clear()
        return answer

    def log_in(self, next: str = "/dags", also: str = "") -> httpx.Response:
        """The whole way; returns the answer to the callback."""
        begun = self.get(f"/auth/oidc/login?next={next}")
        assert begun.status_code == 303, begun.text
        back = self.provider.log_in(begun.headers["location"])
        return self.get(back + also)

    def me(self) -> Any:
        answer = self.get("/api/tradewind/v1/me")
        return answer.json() if answer.status_code == 200 else None


Make = Callable[..., Browser]


@pytest.fixture
def provider(world: World) -> Iterator[OidcServer]:
    server = OidcServer(world.clock.wall)
    yield server
    server.close()


@pytest.fixture
def browser(world: World, provider: OidcServer) -> Make:
    """Sets up the login with some settings, and opens a browser."""

    def make(**settings: Any) -> Browser:
        values: dict[str, Any] = {
            "issuer": provider.issuer,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "label": "Log in with Example",
            "scopes": "openid profile",
            "name_claim": "preferred_username",
            "groups_claim": "groups",
            "groups": {},
            "default_role": "viewer",
            **settings,
        }
        use_logins(world, oidc=OidcConfig(**values))
        return Browser(world, provider)

    return make


def problem(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    return answer.text


def test_the_first_login_creates_the_account_and_starts_a_session(world: World, browser: Make) -> None:
    ann = browser()
    answer = ann.log_in("/dags/sales")
    assert (answer.status_code, answer.headers["location"]) == (303, "/dags/sales")
    assert "tradewind_oidc" not in ann.cookies
    me = ann.me()
    assert (me["username"], me["role"], me["source"], me["email"], me["full_name"]) == (
        "ann",
        "viewer",
        "oidc",
        "ann@example.com",
        "Ann Lee",
    )
    assert not me["can_change_password"]
    assert [row["event"] for row in world.json("/api/v2/eventLogs?owner=ann")["event_logs"]] == ["login"]


def test_the_login_page_learns_of_the_provider(world: World, browser: Make) -> None:
    assert world.bare("GET", "/auth/providers").json() == {"providers": []}
    assert world.bare("GET", "/auth/oidc/login").status_code == 404
    assert browser().get("/auth/providers").json() == {
        "providers": [{"name": "oidc", "label": "Log in with Example", "url": "/auth/oidc/login"}]
    }


def test_an_account_is_found_by_its_id_and_not_by_its_name(provider: OidcServer, browser: Make) -> None:
    first = browser()
    first.log_in()
    provider.claims |= {"preferred_username": "ann-lee", "name": "Ann Lee-Ray"}
    again = Browser(first.world, provider)
    again.log_in()
    assert (again.me()["username"], again.me()["full_name"]) == ("ann", "Ann Lee-Ray")


def test_nobody_gets_the_account_of_somebody_else_by_its_name(world: World, provider: OidcServer, browser: Make) -> None:
    provider.claims["preferred_username"] = "admin"
    ann = browser()
    assert "belongs to another account" in problem(ann.log_in(), 403)
    assert ann.me() is None
    account = world.accounts.account("admin")
    assert account is not None
    assert account.source == "local"


def test_groups_give_the_role_the_teams_and_the_custom_roles(world: World, provider: OidcServer, browser: Make) -> None:
    at = {"at": world.clock.wall(), "actor": "test"}
    for team in ("finance", "other"):
        world.accounts.create_team(team, "", **at)  # type: ignore[arg-type]
    for role in ("auditor", "by-hand"):
        world.accounts.create_role(role, "", **at)  # type: ignore[arg-type]
    ann = browser(groups=GROUPS, default_role="")
    provider.claims["groups"] = ["eng", "finance", "unknown"]
    ann.log_in()
    assert (ann.me()["role"], ann.me()["teams"], ann.me()["roles"]) == ("op", [{"team": "finance", "role": "op"}], ["auditor"])
    world.accounts.set_member("other", "ann", "user", **at)  # type: ignore[arg-type]
    world.accounts.set_roles("ann", ["auditor", "by-hand"], **at)  # type: ignore[arg-type]

    provider.claims["groups"] = "finance"
    ann.log_in()
    assert ann.me()["role"] == "public"
    assert {team["team"] for team in ann.me()["teams"]} == {"finance", "other"}

    provider.claims["groups"] = ["eng"]
    ann.log_in()
    assert (ann.me()["role"], ann.me()["teams"], ann.me()["roles"]) == ("op", [{"team": "other", "role": "op"}], ["by-hand"])


def test_without_a_group_nobody_logs_in(provider: OidcServer, browser: Make) -> None:
    ann = browser(groups=GROUPS, default_role="")
    provider.claims["groups"] = ["unknown"]
    assert "has no group that may use this server" in problem(ann.log_in(), 403)
    assert ann.me() is None


def test_groups_may_come_from_the_userinfo_endpoint(provider: OidcServer, browser: Make) -> None:
    provider.userinfo = {"realm_access": {"roles": ["eng"]}}
    ann = browser(groups=GROUPS, groups_claim="realm_access.roles", default_role="")
    ann.log_in()
    assert ann.me()["role"] == "op"
    provider.userinfo = {"realm_access": {"roles": ["admins"]}, "sub": "somebody else"}
    assert "another person" in problem(ann.log_in(), 502)


def test_roles_are_given_here_where_groups_give_none(world: World, browser: Make) -> None:
    ann = browser()
    ann.log_in()
    world.accounts.change_account("ann", role="op", at=world.clock.wall(), actor="test")
    ann.log_in()
    assert ann.me()["role"] == "op"


def test_a_disabled_account_stays_disabled(world: World, browser: Make) -> None:
    ann = browser()
    ann.log_in()
    world.accounts.change_account("ann", is_active=False, stamp="x", at=world.clock.wall(), actor="test")
    assert "is disabled" in problem(ann.log_in(), 403)
    assert ann.me() is None


def test_new_accounts_can_be_forbidden(browser: Make) -> None:
    assert "There is no account for ann here" in problem(browser(create_accounts=False).log_in(), 403)


# --- attacks and faults ------------------------------------------------------------------------------------------------------


def test_an_answer_for_another_browser_is_refused(provider: OidcServer, browser: Make) -> None:
    """An attacker who makes somebody open the attacker's answer logs nobody in."""
    attacker = browser()
    back = provider.log_in(attacker.get("/auth/oidc/login").headers["location"])
    victim = Browser(attacker.world, provider)
    assert "another browser" in problem(victim.get(back), 403)
    victim.get("/auth/oidc/login")
    assert "another login" in problem(victim.get(back), 403)
    assert victim.me() is None
    assert "/token" not in provider.requests


def test_an_old_or_a_forged_attempt_is_refused(world: World, provider: OidcServer, browser: Make) -> None:
    ann = browser()
    back = provider.log_in(ann.get("/auth/oidc/login").headers["location"])
    world.clock.advance(11 * MINUTE)
    assert "10 minutes" in problem(ann.get(back), 403)
    ann.cookies["tradewind_oidc"] = "gAAAAA"
    assert "10 minutes" in problem(ann.get(back), 403)


def test_a_code_works_once(provider: OidcServer, browser: Make) -> None:
    ann = browser()
    back = provider.log_in(ann.get("/auth/oidc/login").headers["location"])
    kept = dict(ann.cookies)
    assert ann.get(back).status_code == 303
    second = Browser(ann.world, provider)
    second.cookies = kept
    text = problem(second.get(back), 502)
    assert "the code is not valid &lt;b&gt;here&lt;/b&gt;" in text, "what the provider says is escaped"


WRONG: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "the nonce of another login": lambda claims: {**claims, "nonce": "x"},
    "no nonce": lambda claims: {name: value for name, value in claims.items() if name != "nonce"},
    "another audience": lambda claims: {**claims, "aud": "other"},
    "another issuer": lambda claims: {**claims, "iss": "http://127.0.0.1:1"},
    "expired": lambda claims: {**claims, "exp": claims["exp"] - 200},
    "made in the future": lambda claims: {**claims, "iat": claims["iat"] + 200},
    "for another client": lambda claims: {**claims, "aud": [CLIENT, "other"], "azp": "other"},
    "several clients and no azp": lambda claims: {**claims, "aud": [CLIENT, "other"]},
    "no subject": lambda claims: {name: value for name, value in claims.items() if name != "sub"},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=list(WRONG))
def test_a_wrong_id_token_is_refused(
    provider: OidcServer, browser: Make, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    provider.change = change
    ann = browser()
    problem(ann.log_in(), 502)
    assert ann.me() is None


def test_a_token_signed_with_a_shared_secret_is_refused(provider: OidcServer, browser: Make) -> None:
    provider.algorithm = "HS256"
    assert "ID token is not valid" in problem(browser().log_in(), 502)


def test_a_token_of_another_key_with_the_same_id_is_refused(provider: OidcServer, browser: Make) -> None:
    ann = browser()
    back = provider.log_in(ann.get("/auth/oidc/login").headers["location"])
    ann.world.app.state.services.oidc.check()  # now it has the published keys
    provider.new_keys(provider.key.kid)
    assert "bad_signature" in problem(ann.get(back), 502)
    assert ann.me() is None


def test_the_keys_of_the_provider_may_change(world: World, provider: OidcServer, browser: Make) -> None:
    ann = browser()
    assert ann.log_in().status_code == 303
    provider.new_keys()
    world.clock.advance(11 * SECOND)
    assert ann.log_in().status_code == 303
    assert provider.requests.count("/keys") == 2
    assert provider.requests.count("/.well-known/openid-configuration") == 1
    world.clock.advance(HOUR)
    assert ann.log_in().status_code == 303
    assert provider.requests.count("/.well-known/openid-configuration") == 2


def test_tokens_with_unknown_keys_do_not_flood_the_provider(provider: OidcServer, browser: Make) -> None:
    ann = browser()
    ann.log_in()
    for _ in range(5):
        provider.new_keys()
        problem(ann.log_in(), 502)
    assert provider.requests.count("/keys") == 1


def test_the_refusal_of_the_provider_is_shown_as_text(browser: Make, provider: OidcServer) -> None:
    ann = browser()
    state = parse_qs(urlsplit(ann.get("/auth/oidc/login").headers["location"]).query)["state"][0]
    answer = ann.get(f"/auth/oidc/callback?error=access_denied&error_description=<script>alert(1)</script>&state={state}")
    assert "<script>" not in problem(answer, 403)
    assert "/token" not in provider.requests


def test_an_answer_of_another_issuer_is_refused(provider: OidcServer, browser: Make) -> None:
    ann = browser()
    back = provider.log_in(ann.get("/auth/oidc/login").headers["location"]).replace("iss=http", "iss=https")
    assert "another issuer" in problem(ann.get(back), 502)


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"issuer": "https://other.example"}, "set oidc.issuer to exactly this text"),
        ({"token_endpoint": "http://other.example/token"}, "no https address"),
        ({"jwks_uri": None}, "no https address"),
        ({"error": "broken"}, "answers 400"),
    ],
)
def test_a_wrong_discovery_document_is_named(provider: OidcServer, browser: Make, metadata: dict[str, Any], why: str) -> None:
    provider.metadata = metadata
    assert why in problem(browser().get("/auth/oidc/login"), 502)


def test_a_provider_that_does_not_answer_is_named(provider: OidcServer, browser: Make) -> None:
    ann = browser(issuer="http://127.0.0.1:1")
    assert "cannot be reached now" in problem(ann.get("/auth/oidc/login"), 503)


def test_a_missing_name_names_the_setting(browser: Make) -> None:
    assert "oidc.name_claim" in problem(browser(name_claim="upn").log_in(), 502)


@pytest.mark.parametrize("next", ["//evil.example", "https://evil.example", "/\\evil.example", "evil"])
def test_the_login_leads_nowhere_else(browser: Make, next: str) -> None:
    assert browser().get("/auth/oidc/login", params={"next": next}).status_code == 400


# --- ways to say who this server is, and the logout ----------------------------------------------------------------------------


def test_a_secret_in_the_form_and_a_public_client(provider: OidcServer, browser: Make) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert browser().log_in().status_code == 303
    provider.metadata, provider.public_client = {}, True
    assert browser(client_secret=None).log_in().status_code == 303


def test_a_logout_ends_the_login_at_the_provider_too(provider: OidcServer, browser: Make) -> None:
    ann = browser()
    ann.log_in()
    headers = {"X-Tradewind-Request": "1", "Origin": "http://tradewind.test"}
    answer = ann.send("POST", "/auth/logout", headers=headers)
    assert answer.status_code == 204
    elsewhere = urlsplit(answer.headers["x-tradewind-logout"])
    query = parse_qs(elsewhere.query)
    assert f"{elsewhere.scheme}://{elsewhere.netloc}{elsewhere.path}" == f"{provider.issuer}/end"
    assert query["post_logout_redirect_uri"] == ["http://tradewind.test/login"]
    assert query["id_token_hint"][0].count(".") == 2
    assert ann.me() is None
    ann.log_in()
    assert ann.get("/api/v2/auth/logout").headers["location"].startswith(f"{provider.issuer}/end?")


def test_claims_and_addresses() -> None:
    claims = {"a.b": 1, "a": {"c": {"d": 2}, "b": 3}, "e": "x"}
    assert [claim_of(claims, name) for name in ("a.b", "a.c.d", "a.x", "e.f", "z")] == [1, 2, None, None, None]
    local, remote = "http://localhost:8080", "https://login.example.com"
    assert is_private_address("https://x.example/y", remote)
    assert is_private_address("http://127.0.0.1:5/y", local)
    assert not is_private_address("http://127.0.0.1:5/y", remote)
    assert not is_private_address("http://x.example/y", local)
    assert not is_private_address("file:///etc/passwd", local)
