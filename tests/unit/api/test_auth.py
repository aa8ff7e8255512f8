"""Nobody gets in without a login, nobody does more than their role allows, and a browser cannot be tricked into it."""

from __future__ import annotations

import itertools
import os
import re
import time
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from starlette.routing import Route

from tests.unit.api.conftest import PASSWORD, ROLES, World
from tradewind.api.app import guarded_routes
from tradewind.api.auth.passwords import PasswordCheck, ensure_admin
from tradewind.api.auth.policy import OPEN, POLICIES, Policy, allow, may, policy_of
from tradewind.api.web_page import ADDRESSES
from tradewind.model.errors import ConfigError
from tradewind.model.moments import HOUR, MINUTE, SECOND
from tradewind.store.accounts import open_accounts

ROUTES = [(method, route) for route in guarded_routes() for method in sorted(route.methods or ())]
NAMES = [f"{method} {route.path}" for method, route in ROUTES]
OPEN_ADDRESSES = {
    "/api/v2/monitor/health",
    "/api/tradewind/v1/ready",
    "/api/v2/version",
    "/api/v2/auth/login",
    "/auth/token",
    "/auth/token/cli",
    "/auth/login",
    "/auth/providers",
    "/auth/oidc/login",
    "/auth/oidc/callback",
}
WEB_PAGE = {*ADDRESSES, "/static/{name}", "/favicon.svg"}
OPEN_PAGES = {
    "/docs",
    "/openapi.json",
    "/style.css",
    "/api/v1/{rest:path}",
    "/api/experimental/{rest:path}",
    "/health",
    *WEB_PAGE,
}


NUMBERS = (
    "try_number",
    "task_try_number",
    "map_index",
    "import_error_id",
    "event_log_id",
    "version_number",
    "backfill_id",
    "asset_id",
    "asset_alias_id",
    "callback_id",
)


READ_WITH_EDIT_PERMISSION = {"/api/v2/connections/enqueue-test"}
"""The GET of an operation that only those may start who may edit: its result belongs to them."""


def filled(path: str) -> str:
    return re.sub(r"\{(\w+)(:path)?\}", lambda m: "1" if m[1] in NUMBERS else "x", path)


def test_every_route_has_a_policy_and_only_these_are_open() -> None:
    assert all(policy_of(route.endpoint) is not None for _, route in ROUTES)
    assert {route.path for _, route in ROUTES if policy_of(route.endpoint) == OPEN} == OPEN_ADDRESSES


def test_only_known_routes_are_outside_of_the_api(world: World) -> None:
    pages = {route.path for route in world.app.routes if type(route) is Route}
    assert pages == OPEN_PAGES
    documented = set(world.bare("GET", "/openapi.json").json()["paths"])
    assert documented == {re.sub(r":path\}", "}", route.path) for _, route in ROUTES if route.include_in_schema}


def test_no_route_that_changes_something_has_a_read_policy() -> None:
    for method, route in ROUTES:
        policy = policy_of(route.endpoint)
        assert policy is not None
        if policy != OPEN:
            reads = (method == "GET" or route.path.endswith("/list")) and route.path not in READ_WITH_EDIT_PERMISSION
            assert (policy.action == "read") == reads, route.path


@pytest.mark.parametrize(("method", "route"), ROUTES, ids=NAMES)
def test_only_open_routes_answer_without_a_login(world: World, method: str, route: Any) -> None:
    if policy_of(route.endpoint) == OPEN:
        return
    answer = world.bare(method, filled(route.path), json=valid_body(route.path, method))
    assert answer.status_code == 401, answer.text
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "route"), ROUTES, ids=NAMES)
def test_each_role_has_exactly_its_permissions(world: World, method: str, route: Any, role: str) -> None:
    policy = policy_of(route.endpoint)
    assert policy is not None
    if policy == OPEN:
        return
    query = {"/wait": {"interval": "1"}, "/search": {"q": "x"}}.get(route.path[route.path.rindex("/") :], {})
    headers = {"Airflow-Connection-Test-Token": "x"} if route.path.endswith("/enqueue-test") else {}
    body = valid_body(route.path, method)
    answer = world.request(method, filled(route.path), role, json=body, params=query, headers=headers)
    assert (answer.status_code != 403) == may(role, policy), answer.text
    no_scheduler = (503,) if route.path.endswith("/events") and "tradewind" in route.path else ()
    assert answer.status_code in (200, 201, 202, 204, 307, 404, 403, *no_scheduler), answer.text


BACKFILL = {"dag_id": "nobody", "from_date": "2024-01-01T00:00:00Z", "to_date": "2024-01-02T00:00:00Z"}


def valid_body(path: str, method: str) -> Any:
    if method in ("GET", "DELETE"):
        return None
    bodies = {
        "/api/v2/dags/{dag_id}": {"is_paused": True},
        "/api/v2/dags/{dag_id}/dagRuns": {"logical_date": None},
        "/api/v2/dags/{dag_id}/clearTaskInstances": {},
        "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}": {"note": "x"},
        "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/clear": {},
        "/api/v2/backfills": BACKFILL,
        "/api/v2/backfills/dry_run": BACKFILL,
        "/api/v2/assets/events": {"asset_id": 1},
        "/api/v2/assets/{asset_id}/materialize": {},
        "/api/v2/callbacks/{callback_id}/retry": None,
        "/api/v2/pools": {"name": "p", "slots": 1},
        "/api/v2/pools/{pool_name}": {"slots": 1},
        "/api/v2/variables": {"key": "k", "value": 1},
        "/api/v2/variables/{variable_key:path}": {"key": "x", "value": 1},
        "/auth/logout": None,
        "/api/tradewind/v1/me/password": {"current_password": PASSWORD, "new_password": "battery staple"},
        "/api/tradewind/v1/me/tokens": {"label": "x"},
        "/api/v2/connections": {"connection_id": "c", "conn_type": "http"},
        "/api/v2/connections/{connection_id}": {"connection_id": "x", "conn_type": "http"},
        "/api/v2/connections/test": {"connection_id": "x", "conn_type": "no such type"},
        "/api/v2/connections/enqueue-test": {"connection_id": "x", "conn_type": "no such type"},
        "/api/v2/dags": {"is_paused": True},
        "/api/v2/assets/{asset_id}/state-store/{key:path}": {"value": 1},
    }
    if method == "PATCH" and path in _BULK:
        return {"actions": []}
    if "xcomEntries" in path or "state-store" in path:
        return {"key": "k", "value": 1} if method == "POST" else {"value": 1}
    if path.endswith(("/list", "/clearDagRuns", "/clearPartitions")):
        return {}
    if path.startswith(_ACCOUNTS):
        return _OF_ACCOUNTS[path.removeprefix(_ACCOUNTS)]
    if path.endswith("/hitlDetails"):
        return {"chosen_options": ["Approve"]}
    if path.startswith("/api/tradewind/v1/dags/{dag_id}/"):
        return _PREVIEWED[path.removeprefix("/api/tradewind/v1/dags/{dag_id}/")]
    if "/taskInstances/" in path or "/taskGroupInstances/" in path:
        return {"note": "x"}
    empty = path.startswith("/api/v2/backfills/{") or path.endswith(("favorite", "/defaults", "{file_token}"))
    return None if empty else bodies[path]


_ACCOUNTS = "/api/tradewind/v1/accounts/"
_OF_ACCOUNTS: dict[str, dict[str, Any] | None] = {
    "users": {"username": "new", "role": "viewer"},
    "users/{username}": {"role": "viewer"},
    "users/{username}/password": {},
    "users/{username}/logout": None,
    "users/{username}/tokens": {"label": "x"},
    "roles": {"name": "new"},
    "roles/{role}/grants": {"grants": []},
    "teams": {"name": "new"},
    "teams/{team}/members/{username}": {"role": "viewer"},
    "teams/{team}/dags": {},
}
_SPAN = {"from_date": "2024-01-01T00:00:00Z", "to_date": "2024-01-02T00:00:00Z"}
_PREVIEWED = {
    "clear/preview": {"run_id": "x"},
    "clear": {"run_id": "x", "fingerprint": "x"},
    "mark/preview": {"run_id": "x", "state": "success"},
    "mark": {"run_id": "x", "state": "success", "fingerprint": "x"},
    "backfill/preview": _SPAN,
    "backfill": {**_SPAN, "fingerprint": "x"},
}
_BULK = {
    "/api/v2/connections",
    "/api/v2/pools",
    "/api/v2/variables",
    "/api/v2/dags/{dag_id}/dagRuns",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances",
}


def test_each_role_has_the_permissions_of_the_roles_before_it() -> None:
    allowed = [{policy for policy in POLICIES if may(role, policy)} for role in ROLES]
    assert all(less < more for less, more in itertools.pairwise(allowed))
    assert allowed[-1] == POLICIES
    assert not may("stranger", Policy("read", "dag"))


def test_a_route_cannot_name_a_permission_that_nobody_has() -> None:
    with pytest.raises(ValueError, match="no role may destroy"):
        allow("destroy", "dag")


def test_a_route_without_a_policy_is_closed_even_to_the_admin(world: World) -> None:
    @world.app.get("/forgotten")
    def forgotten() -> str:
        return "secret"

    answer = world.get("/forgotten")
    assert (answer.status_code, "secret" in answer.text) == (403, False)


# --- tokens -----------------------------------------------------------------------------------------------------------


def login(world: World, name: str = "admin", password: str = PASSWORD) -> Any:
    return world.bare("POST", "/auth/token", json={"username": name, "password": password})


def with_token(world: World, token: str) -> int:
    return world.bare("GET", "/api/v2/dags", headers={"Authorization": f"Bearer {token}".encode("latin-1")}).status_code


def test_a_login_may_be_a_form_as_in_airflow(world: World) -> None:
    form = {"username": "admin", "password": "änd & so=on"}
    for path in ("/auth/token", "/auth/token/cli"):
        assert world.bare("POST", path, data=form).status_code == 401, "read as it was sent, and wrong"
        right = world.bare("POST", path, data={**form, "password": PASSWORD})
        assert (right.status_code, with_token(world, right.json()["access_token"])) == (201, 200)


@pytest.mark.parametrize(
    "sent", [b"username=admin", b"username=admin&password=x&more=1", b"\xff\xfe", b"&".join([b"a=1"] * 20)]
)
def test_a_broken_form_is_422_and_not_repeated(world: World, sent: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    answer = world.bare("POST", "/auth/token", content=sent, headers=headers)
    assert answer.status_code == 422
    assert all(set(one) == {"loc", "msg", "type"} and one["loc"][0] == "body" for one in answer.json()["detail"])


def test_a_login_issues_a_token_that_is_valid_until_it_expires(world: World) -> None:
    answer = login(world)
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    token = answer.json()["access_token"]
    assert with_token(world, token) == 200
    world.clock.advance(world.config.token_seconds * SECOND - MINUTE)
    assert with_token(world, token) == 200
    world.clock.advance(2 * MINUTE)
    assert with_token(world, token) == 401


@pytest.mark.parametrize(("name", "password"), [("admin", "wrong"), ("nobody", PASSWORD), ("admin", PASSWORD + "\0")])
def test_a_wrong_login_does_not_say_what_was_wrong(world: World, name: str, password: str) -> None:
    answer = login(world, name, password)
    assert (answer.status_code, answer.json()) == (401, {"detail": "The user name or the password is wrong."})


def claims(world: World, **changed: Any) -> dict[str, Any]:
    now = world.clock.wall() // SECOND
    user = world.app.state.services.accounts.find("admin")
    good = {
        "sub": "admin",
        "stamp": user.stamp,
        "iss": "tradewind",
        "aud": "tradewind-api",
        "iat": now,
        "nbf": now,
        "exp": now + 60,
        "jti": "a",
    }
    return {key: value for key, value in {**good, **changed}.items() if value is not ...}


def key_of(world: World) -> OctKey:
    world.token()
    return OctKey.import_key(bytes.fromhex((world.home / "jwt.key").read_text()))


def test_the_forged_token_is_valid_without_changes(world: World) -> None:
    key = key_of(world)
    assert with_token(world, jwt.encode({"alg": "HS256"}, claims(world), key)) == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": 1},
        {"exp": ...},
        {"nbf": 9_999_999_999},
        {"aud": "someone-else"},
        {"aud": ...},
        {"iss": "airflow"},
        {"iss": ...},
        {"sub": "nobody"},
        {"sub": ...},
        {"stamp": "0" * 16},
        {"stamp": ...},
        {"jti": ...},
        {"exp": "soon"},
        {"sub": ["admin"]},
    ],
    ids=str,
)
def test_a_token_with_other_claims_is_refused(world: World, changed: dict[str, Any]) -> None:
    key = key_of(world)
    assert with_token(world, jwt.encode({"alg": "HS256"}, claims(world, **changed), key)) == 401


def test_other_signatures_are_refused(world: World) -> None:
    good = world.token()
    head, body, signature = good.split(".")
    none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0"  # {"alg":"none","typ":"JWT"}
    rsa = RSAKey.generate_key(2048)
    forged = [
        f"{none}.{body}.",
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-2]}AA",
        f"{head}.{body}",
        jwt.encode({"alg": "HS256"}, claims(world), OctKey.generate_key(256)),
        jwt.encode({"alg": "HS512"}, claims(world), key_of(world), algorithms=["HS512"]),
        jwt.encode({"alg": "RS256"}, claims(world), rsa),
        "",
        "x",
        "..",
        "a.b.c",
        good + "x" * 5000,
        "\x80.\xff.\x00",
    ]
    assert [with_token(world, token) for token in forged] == [401] * len(forged)


def test_a_new_password_or_a_removed_user_invalidates_tokens(world: World, password_hash: str) -> None:
    token = world.token("op")
    assert with_token(world, token) == 200
    world.set_users({"admin": "admin"}, password_hash)
    assert with_token(world, token) == 401
    token = world.token("admin")
    world.set_users({"admin": "admin"}, password_hash[:-1] + ("A" if password_hash[-1] != "A" else "B"))
    assert with_token(world, token) == 401


def test_a_changed_role_counts_at_once(world: World, password_hash: str) -> None:
    world.set_users({"ann": "admin", "admin": "admin"}, password_hash)
    token = world.token("ann")
    world.set_users({"ann": "viewer", "admin": "admin"}, password_hash)
    answer = world.bare("GET", "/api/v2/eventLogs", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 403


def test_other_schemes_are_refused_with_a_sentence(world: World) -> None:
    answer = world.bare("GET", "/api/v2/dags", headers={"Authorization": "Basic YWRtaW46YWRtaW4="})
    assert answer.status_code == 401
    assert "bearer" in answer.json()["detail"]


# --- cookies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"X-Tradewind-Request": "1"}, 403),
        ({"Origin": "http://tradewind.test"}, 403),
        ({"X-Tradewind-Request": "1", "Origin": "http://evil.test"}, 403),
        ({"X-Tradewind-Request": "1", "Origin": "null"}, 403),
        ({"X-Tradewind-Request": "1", "Referer": "http://tradewind.test.evil.test/"}, 403),
        ({"X-Tradewind-Request": "1", "Origin": "http://tradewind.test"}, 200),
        ({"X-Tradewind-Request": "1", "Referer": "http://tradewind.test/dags"}, 200),
    ],
)
def test_a_cookie_may_change_something_only_from_our_origin(world: World, headers: dict[str, str], status: int) -> None:
    world.dag()
    cookie = {"Cookie": f"_token={world.token()}"}
    answer = world.bare("PATCH", "/api/v2/dags/sales", json={"is_paused": False}, headers={**cookie, **headers})
    assert answer.status_code == status, answer.text
    assert len(world.control.calls) == (status == 200)
    assert world.bare("GET", "/api/v2/dags", headers=cookie).status_code == 200


def test_a_form_from_another_page_is_no_json(world: World) -> None:
    world.dag()
    body = '{"is_paused": false}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        headers = {} if kind is None else {"Content-Type": kind}
        assert world.request("PATCH", "/api/v2/dags/sales", content=body, headers=headers).status_code == 422
    assert world.control.calls == []


# --- guessing -----------------------------------------------------------------------------------------------------------


def test_failed_logins_are_throttled_until_the_wait_ends(world: World) -> None:
    assert [login(world, password="wrong").status_code for _ in range(5)] == [401] * 5
    answer = login(world)
    assert answer.status_code == 429, "even the right password has to wait now"
    wait = int(answer.headers["retry-after"])
    assert 1 <= wait <= 2
    assert login(world, "viewer").status_code == 201, "others are not locked out"
    world.clock.advance(wait * SECOND)
    assert login(world).status_code == 201
    assert login(world, password="wrong").status_code == 401, "counted anew"


def test_throttle_waits_double_up_to_a_maximum(world: World) -> None:
    throttle = world.app.state.services.throttle
    waits = []
    for _ in range(20):
        wait = throttle.admit("1.2.3.4", "admin")
        if wait:
            waits.append(wait)
            world.clock.advance(wait * SECOND)
            assert throttle.admit("1.2.3.4", "admin") == 0
    assert waits[:4] == [1, 2, 4, 8]
    assert max(waits) <= 300
    world.clock.advance(HOUR)
    assert throttle.admit("1.2.3.4", "admin") == 0


def test_failures_do_not_throttle_other_users_or_addresses(world: World) -> None:
    """Neither other users at the same address, nor the same user at another address."""
    throttle = world.app.state.services.throttle
    for number in range(100):
        throttle.admit("1.2.3.4", f"user{number}")
    for _ in range(10):
        throttle.admit("1.2.3.4", "admin")
    assert throttle.admit("1.2.3.4", "admin") > 0
    assert throttle.admit("1.2.3.4", "ann") == 0
    assert throttle.admit("5.6.7.8", "admin") == 0


def test_many_other_names_do_not_reset_a_wait(world: World) -> None:
    throttle = world.app.state.services.throttle
    for _ in range(6):
        throttle.admit("1.2.3.4", "admin")
    for number in range(5000):
        throttle.admit("1.2.3.4", f"user{number}")
    assert throttle.admit("1.2.3.4", "admin") > 0
    assert len(throttle._counts) <= 4096


# --- files --------------------------------------------------------------------------------------------------------------


def test_the_first_start_creates_one_admin_and_returns_the_password_once(tmp_path: Any) -> None:
    path = tmp_path / "accounts.db"
    store = open_accounts(str(path), "", 1)
    password = ensure_admin(store, 1)
    assert password is not None
    assert len(password) >= 20
    assert ensure_admin(store, 2) is None
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert not any(password.encode() in file.read_bytes() for file in tmp_path.iterdir())
    check = PasswordCheck()
    assert check.is_right(store.password("admin"), password)
    assert not check.is_right(store.password("admin"), password + "x")
    assert store.need_account("admin").role == "admin"
    store.close()


def test_a_password_that_cannot_be_checked_is_not_called_wrong(world: World) -> None:
    """The hash wants 4 TiB of memory, so the check fails as it does on a machine without free memory."""
    stored = "$argon2id$v=19$m=4294967295,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$" + "A" * 43
    world.app.state.services.accounts.store.set_password("viewer", stored, "stamp", at=1, actor="test")
    answer = world.bare("POST", "/auth/token", json={"username": "viewer", "password": PASSWORD})
    assert answer.status_code == 503
    assert answer.json()["detail"] == "The password cannot be checked now: Memory allocation error"


@pytest.mark.parametrize("name", ["accounts.db", "jwt.key"])
def test_files_that_are_not_private_are_refused(world: World, name: str) -> None:
    token = world.token()
    os.chmod(world.home / name, 0o644)
    if name == "jwt.key":
        world.app.state.services.tokens._key = None
    else:
        world.app.state.services.accounts.close()
    answer = world.bare("GET", "/api/v2/dags", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, "not private" in answer.json()["detail"]) == (500, True)


def test_a_key_file_is_created_once_and_is_private(world: World) -> None:
    world.token()
    key = world.home / "jwt.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.write_text("short")
    world.app.state.services.tokens._key = None
    with pytest.raises(ConfigError, match="does not hold 32 bytes"):
        world.token()


def test_unknown_names_take_as_long_as_known_ones(world: World) -> None:
    accounts = world.app.state.services.accounts
    accounts.check_password("nobody", "x")  # makes the decoy

    def seconds(name: str) -> float:
        start = time.perf_counter()
        accounts.check_password(name, "x")
        return time.perf_counter() - start

    known = min(seconds("admin") for _ in range(3))
    unknown = min(seconds("nobody") for _ in range(3))
    assert unknown > known / 3
