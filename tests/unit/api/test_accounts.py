"""Sessions of browsers, personal tokens, basic authentication, and the routes below /me."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from tests.unit.api.conftest import PASSWORD, World
from tradewind.api.auth.guard import CSRF_HEADER, SESSION_COOKIE
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND

BROWSER = {CSRF_HEADER: "1", "Origin": "http://tradewind.test", "User-Agent": "Firefox"}
ME = "/api/tradewind/v1/me"


def log_in(world: World, name: str = "viewer", password: str = PASSWORD, **headers: str) -> httpx.Response:
    world.http.cookies.clear()
    answer = world.bare("POST", "/auth/login", json={"username": name, "password": password}, headers={**BROWSER, **headers})
    world.http.cookies.clear()
    return answer


def cookie(answer: httpx.Response, name: str = SESSION_COOKIE) -> str:
    found = [line for line in answer.headers.get_list("set-cookie") if line.startswith(name + "=")]
    assert len(found) == 1
    return found[0]


def secret(answer: httpx.Response, name: str = SESSION_COOKIE) -> str:
    return cookie(answer, name).split(";")[0].split("=", 1)[1]


def with_session(world: World, found: str, method: str = "GET", path: str = ME, **more: Any) -> httpx.Response:
    headers = {"Cookie": f"{SESSION_COOKIE}={found}", **more.pop("headers", BROWSER)}
    return world.bare(method, path, headers=headers, **more)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


# --- sessions -------------------------------------------------------------------------------------------------------------


def test_a_browser_logs_in_works_and_logs_out(world: World) -> None:
    answer = log_in(world)
    assert (answer.status_code, answer.json()["username"]) == (200, "viewer")
    found = secret(answer)
    me = with_session(world, found).json()
    assert (me["role"], me["authentication"], me["sees_all_dags"]) == ("viewer", "session", True)
    assert "read:dag" in me["permissions"]
    assert "edit:dag" not in me["permissions"]
    assert me["csrf"] == {"needed": True, "header": CSRF_HEADER}
    gone = with_session(world, found, "POST", "/auth/logout")
    assert gone.status_code == 204
    assert f'{SESSION_COOKIE}=""' in cookie(gone)
    assert with_session(world, found).status_code == 401


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(world: World) -> None:
    answer = log_in(world)
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {part.strip() for part in cookie(answer).split(";")}
    assert "Secure" not in cookie(answer)
    world.http.base_url = httpx.URL("https://tradewind.test")
    answer = log_in(world, Origin="https://tradewind.test")
    assert "Secure" in cookie(answer)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("left_out", [CSRF_HEADER, "Origin"])
def test_another_site_cannot_log_a_browser_in(world: World, left_out: str) -> None:
    headers = {name: value for name, value in BROWSER.items() if name != left_out}
    answer = world.bare("POST", "/auth/login", json={"username": "viewer", "password": PASSWORD}, headers=headers)
    assert (answer.status_code, answer.headers.get("set-cookie")) == (403, None)


def test_a_session_changes_something_only_from_our_pages(world: World) -> None:
    found = secret(log_in(world, "user"))
    world.dag()
    for headers, status in (({}, 403), ({CSRF_HEADER: "1", "Origin": "http://evil.test"}, 403), (BROWSER, 200)):
        answer = with_session(world, found, "PATCH", "/api/v2/dags/sales", json={"is_paused": True}, headers=headers)
        assert answer.status_code == status, answer.text


def test_a_session_ends_without_requests_and_at_its_absolute_limit(world: World) -> None:
    idle, longest = world.config.session_idle_seconds * SECOND, world.config.session_seconds * SECOND
    found = secret(log_in(world))
    world.clock.advance(idle + SECOND)
    assert with_session(world, found).status_code == 401
    found = secret(log_in(world))
    for _ in range(longest // (6 * HOUR) - 1):
        world.clock.advance(6 * HOUR)
        assert with_session(world, found).status_code == 200
    world.clock.advance(6 * HOUR)
    assert with_session(world, found).status_code == 401


def test_a_new_login_replaces_the_session_of_the_browser(world: World) -> None:
    first = secret(log_in(world))
    second = secret(log_in(world, Cookie=f"{SESSION_COOKIE}={first}"))
    assert first != second
    assert with_session(world, first).status_code == 401, "a session that somebody planted in the browser is not used"
    assert with_session(world, second).status_code == 200


def test_users_list_and_end_their_own_sessions_only(world: World) -> None:
    mine, other = secret(log_in(world)), secret(log_in(world))
    stranger = secret(log_in(world, "user"))
    listed = with_session(world, mine, path=f"{ME}/sessions").json()["sessions"]
    assert len(listed) == 2
    assert [one["browser"] for one in listed] == ["Firefox"] * 2
    assert mine not in str(listed), "the secret is never shown"
    (end,) = [one["id"] for one in listed if not one["is_current"]]
    assert with_session(world, stranger, "DELETE", f"{ME}/sessions/{end}").status_code == 404
    assert with_session(world, mine, "DELETE", f"{ME}/sessions/{end}").status_code == 204
    assert (with_session(world, other).status_code, with_session(world, mine).status_code) == (401, 200)


def test_a_changed_password_ends_all_sessions(world: World) -> None:
    found, other = secret(log_in(world)), secret(log_in(world))
    for body, status in (
        ({"current_password": "wrong", "new_password": "battery staple"}, 403),
        ({"current_password": PASSWORD, "new_password": "short"}, 422),
        ({"current_password": PASSWORD, "new_password": "i am the viewer"}, 422),
        ({"current_password": PASSWORD, "new_password": "battery staple"}, 204),
    ):
        assert with_session(world, found, "POST", f"{ME}/password", json=body).status_code == status
    assert [with_session(world, one).status_code for one in (found, other)] == [401, 401]
    assert log_in(world).status_code == 401
    assert log_in(world, password="battery staple").status_code == 200


def test_a_switched_off_account_is_refused_at_once(world: World) -> None:
    found = secret(log_in(world))
    token = world.token("viewer")
    world.accounts.change_account("viewer", is_active=False, stamp="x", at=1, actor="admin")
    assert with_session(world, found).status_code == 401
    assert world.bare("GET", ME, headers=bearer(token)).status_code == 401
    assert log_in(world).status_code == 401


def test_the_last_use_of_a_session_is_written_now_and_then(world: World) -> None:
    found = secret(log_in(world))
    before = world.accounts.sessions("viewer")[0].seen_at
    world.clock.advance(MINUTE)
    with_session(world, found)
    assert world.accounts.sessions("viewer")[0].seen_at == before
    world.clock.advance(5 * MINUTE)
    with_session(world, found)
    assert world.accounts.sessions("viewer")[0].seen_at == before + 6 * MINUTE


# --- personal tokens --------------------------------------------------------------------------------------------------------


def new_token(world: World, name: str = "op", **body: Any) -> tuple[str, str]:
    found = secret(log_in(world, name))
    answer = with_session(world, found, "POST", f"{ME}/tokens", json={"label": "ci", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()["token"], answer.json()["info"]["id"]


def test_a_personal_token_is_shown_once_and_stored_as_a_hash(world: World) -> None:
    token, id = new_token(world)
    assert world.bare("GET", ME, headers=bearer(token)).json()["authentication"] == "token"
    listed = world.get(f"{ME}/tokens", "op").json()["tokens"]
    assert [one["id"] for one in listed] == [id]
    assert listed[0]["last_used_at"] is not None
    tail = token[-20:]
    assert tail not in str(listed)
    assert not any(tail.encode() in file.read_bytes() for file in world.home.iterdir() if file.name.startswith("accounts"))


def test_a_token_does_no_more_than_its_role_and_its_account(world: World) -> None:
    world.dag()
    weak, _ = new_token(world, "op", role="viewer")
    assert world.bare("GET", "/api/v2/dags", headers=bearer(weak)).status_code == 200
    assert world.bare("GET", "/api/v2/variables", headers=bearer(weak)).status_code == 403
    patch: dict[str, Any] = {"method": "PATCH", "path": "/api/v2/dags/sales", "json": {"is_paused": True}}
    assert world.bare(headers=bearer(weak), **patch).status_code == 403
    strong, _ = new_token(world, "viewer", role="admin")
    assert world.bare(headers=bearer(strong), **patch).status_code == 403
    assert world.bare("GET", "/api/v2/eventLogs", headers=bearer(strong)).status_code == 403


def test_a_token_ends_when_it_expires_is_revoked_or_its_account_goes(world: World) -> None:
    token, _ = new_token(world, days=1)
    world.clock.advance(DAY - SECOND)
    assert world.bare("GET", ME, headers=bearer(token)).status_code == 200
    world.clock.advance(SECOND)
    assert world.bare("GET", ME, headers=bearer(token)).status_code == 401
    token, id = new_token(world)
    assert world.request("DELETE", f"{ME}/tokens/{id}", "admin").status_code == 404, "of another account"
    assert world.request("DELETE", f"{ME}/tokens/{id}", "op").status_code == 204
    assert world.bare("GET", ME, headers=bearer(token)).status_code == 401
    token, _ = new_token(world)
    world.accounts.delete_account("op", at=1, actor="admin")
    assert world.bare("GET", ME, headers=bearer(token)).status_code == 401


def test_a_token_creates_no_token_and_changes_no_password(world: World) -> None:
    token, _ = new_token(world)
    assert world.bare("POST", f"{ME}/tokens", json={"label": "x"}, headers=bearer(token)).status_code == 403
    body = {"current_password": PASSWORD, "new_password": "battery staple"}
    assert world.bare("POST", f"{ME}/password", json=body, headers=bearer(token)).status_code == 403


@pytest.mark.parametrize("wrong", ["tw_", "tw_x", "tw_x_y", "tw_" + "x" * 2000, "tw__"])
def test_other_texts_are_no_tokens(world: World, wrong: str) -> None:
    token, id = new_token(world)
    for text in (wrong, token[:-1] + ("a" if token[-1] != "a" else "b"), f"tw_{id}_"):
        assert world.bare("GET", ME, headers=bearer(text)).status_code == 401


# --- basic authentication -----------------------------------------------------------------------------------------------------


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.fixture
def with_old_route(world: World) -> World:
    """A route below /api/v1, as the API of Airflow 2 has them."""
    from tradewind.api.auth.policy import allow

    @world.app.get("/api/v1/for-test")
    @allow("read", "dag")
    def for_test() -> str:
        return "yes"

    world.app.router.routes.insert(0, world.app.router.routes.pop())
    return world


def test_basic_authentication_works_below_api_v1_only(with_old_route: World) -> None:
    world = with_old_route
    assert world.bare("GET", "/api/v1/for-test", headers=basic("viewer", PASSWORD)).status_code == 200
    wrong = world.bare("GET", "/api/v1/for-test", headers=basic("viewer", "wrong"))
    assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, "Basic")
    assert world.bare("GET", "/api/v2/dags", headers=basic("viewer", PASSWORD)).status_code == 401
    for text in ("Basic", "Basic x", "Basic " + base64.b64encode(b"no-colon").decode(), "Basic \xff"):
        headers = {"Authorization": text.encode("latin-1")}
        assert world.bare("GET", "/api/v1/for-test", headers=headers).status_code == 401


def test_basic_authentication_costs_one_slow_hash_and_follows_the_password(
    with_old_route: World, monkeypatch: pytest.MonkeyPatch, password_hash: str
) -> None:
    world, services = with_old_route, with_old_route.app.state.services
    checked: list[str] = []
    original = services.accounts.check_password

    def check_password(username: str, *args: Any) -> Any:
        checked.append(username)
        return original(username, *args)

    monkeypatch.setattr(services.accounts, "check_password", check_password)
    for _ in range(5):
        assert world.bare("GET", "/api/v1/for-test", headers=basic("viewer", PASSWORD)).status_code == 200
    assert checked == ["viewer"]
    world.accounts.set_password("viewer", "another hash", "s", at=1, actor="admin")
    assert world.bare("GET", "/api/v1/for-test", headers=basic("viewer", PASSWORD)).status_code == 401
    assert len(checked) == 2


def test_guesses_by_basic_authentication_have_to_wait(with_old_route: World) -> None:
    statuses = [with_old_route.bare("GET", "/api/v1/for-test", headers=basic("viewer", "wrong")).status_code for _ in range(7)]
    assert statuses == [401] * 5 + [429] * 2


def test_the_password_of_basic_authentication_may_be_a_personal_token(with_old_route: World) -> None:
    token, _ = new_token(with_old_route)
    assert with_old_route.bare("GET", "/api/v1/for-test", headers=basic("op", token)).status_code == 200
    assert with_old_route.bare("GET", "/api/v1/for-test", headers=basic("viewer", token)).status_code == 401


# --- known browsers -----------------------------------------------------------------------------------------------------------


def test_guesses_from_the_same_address_do_not_stop_a_known_browser(world: World) -> None:
    device = secret(log_in(world), "tradewind_device")
    for _ in range(6):
        log_in(world, password="wrong")
    assert log_in(world).status_code == 429
    assert log_in(world, Cookie=f"tradewind_device={device}").status_code == 200
    assert log_in(world, "user", Cookie=f"tradewind_device={device}").status_code == 200, "another name, not attacked"
    for _ in range(6):
        log_in(world, "op", password="wrong")
    assert log_in(world, "op", Cookie=f"tradewind_device={device}").status_code == 429, "known for one account only"


def test_a_guesser_with_many_addresses_gets_one_attempt_each_and_the_user_still_gets_in(world: World) -> None:
    throttle = world.app.state.services.throttle
    assert sum(throttle.admit(f"10.0.0.{number}", "ann") == 0 for number in range(50) for _ in range(1)) == 50
    assert [throttle.admit("10.0.1.1", "ann") == 0 for _ in range(3)] == [True, False, False]
    assert throttle.admit("192.168.0.7", "ann") == 0, "the user of the name, from an address of her own"
    world.clock.advance(2 * HOUR)
    assert [throttle.admit("10.0.1.2", "ann") == 0 for _ in range(6)] == [True] * 5 + [False]
