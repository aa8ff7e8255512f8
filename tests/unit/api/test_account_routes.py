"""Administration of accounts over the API: users, services, tokens, sessions, roles, teams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.api.conftest import PASSWORD, World

BASE = "/api/tradewind/v1/accounts"


def send(world: World, method: str, path: str, body: Any = None, status: int = 200, role: str = "admin") -> Any:
    answer = world.request(method, f"{BASE}/{path}", role, json=body)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def login(world: World, name: str, password: str) -> int:
    return world.bare("POST", "/auth/token", json={"username": name, "password": password}).status_code


def test_a_user_is_created_with_a_generated_password_and_logs_in(world: World) -> None:
    made = send(world, "POST", "users", {"username": "ann", "role": "user", "email": "ann@example.org"}, 201)
    assert (made["user"]["username"], made["user"]["role"], made["user"]["is_active"]) == ("ann", "user", True)
    assert login(world, "ann", made["password"]) == 201
    assert send(world, "GET", "users/ann")["email"] == "ann@example.org"
    assert [one["username"] for one in send(world, "GET", "users")["users"]] == ["admin", "ann", "op", "user", "viewer"]
    assert send(world, "GET", "users?limit=1&offset=1") == {"users": [send(world, "GET", "users/ann")], "total_entries": 5}
    send(world, "POST", "users", {"username": "ann", "role": "user"}, 409)
    given = send(world, "POST", "users", {"username": "bob", "role": "op", "password": "battery staple 7"}, 201)
    assert given["password"] is None
    assert login(world, "bob", "battery staple 7") == 201


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"username": "a/b", "role": "user"}, 422, "username"),
        ({"username": "ann", "role": "king"}, 422, "role"),
        ({"username": "ann", "role": "user", "password": "x"}, 422, "1 of at least"),
        ({"username": "ann", "role": "user", "roles": ["gests"]}, 404, "gests"),
        ({"username": "ann", "role": "user", "kind": "service", "password": "battery staple 7"}, 422, "no password"),
    ],
)
def test_an_invalid_account_is_refused_and_not_created(world: World, body: dict[str, Any], status: int, says: str) -> None:
    answer = world.request("POST", f"{BASE}/users", json=body)
    assert (answer.status_code, says in answer.text) == (status, True), answer.text
    assert send(world, "GET", "users")["total_entries"] == 4


def test_an_account_that_is_switched_off_cannot_log_in_and_its_logins_end(world: World) -> None:
    token = {"Authorization": f"Bearer {world.token('op')}"}
    assert world.bare("GET", "/api/v2/dags", headers=token).status_code == 200
    assert send(world, "PATCH", "users/op", {"is_active": False})["is_active"] is False
    assert world.bare("GET", "/api/v2/dags", headers=token).status_code == 401
    assert login(world, "op", PASSWORD) == 401
    send(world, "PATCH", "users/op", {"is_active": True, "role": "viewer", "full_name": "Olga"})
    assert login(world, "op", PASSWORD) == 201
    assert world.request("PATCH", "/api/v2/pools/default_pool", "op", json={"slots": 1}).status_code == 403
    found = send(world, "PATCH", "users/op", {"email": "o@example.org"})
    assert (found["role"], found["full_name"], found["email"]) == ("viewer", "Olga", "o@example.org"), "others stay"


def test_the_only_admin_stays_admin(world: World) -> None:
    for method, body in (("PATCH", {"role": "op"}), ("PATCH", {"is_active": False}), ("DELETE", None)):
        assert "only admin" in send(world, method, "users/admin", body, 409)["detail"]
    send(world, "DELETE", "users/op", status=204)
    send(world, "GET", "users/op", status=404)


def test_a_password_is_reset(world: World) -> None:
    token = {"Authorization": f"Bearer {world.token('viewer')}"}
    made = send(world, "POST", "users/viewer/password", {})["password"]
    assert world.bare("GET", "/api/v2/dags", headers=token).status_code == 401
    assert (login(world, "viewer", PASSWORD), login(world, "viewer", made)) == (401, 201)
    assert send(world, "POST", "users/viewer/password", {"password": "battery staple 7"}) == {"password": None}
    assert login(world, "viewer", "battery staple 7") == 201
    send(world, "POST", "users/viewer/password", {"password": "x"}, 422)
    send(world, "POST", "users/nobody/password", {}, 404)


def test_services_have_tokens(world: World) -> None:
    assert send(world, "POST", "users", {"username": "ci", "role": "user", "kind": "service"}, 201)["password"] is None
    made = send(world, "POST", "users/ci/tokens", {"label": "deploy", "role": "viewer", "days": 1}, 201)
    bearer = {"Authorization": f"Bearer {made['token']}"}
    assert world.bare("GET", "/api/v2/dags", headers=bearer).status_code == 200
    assert [one["label"] for one in send(world, "GET", "tokens?username=ci")["tokens"]] == ["deploy"]
    send(world, "POST", "users/ci/password", {}, 409)
    send(world, "POST", "users/viewer/tokens", {"label": "x"}, 409)
    send(world, "DELETE", f"tokens/{made['info']['id']}", status=204)
    assert world.bare("GET", "/api/v2/dags", headers=bearer).status_code == 401
    send(world, "DELETE", f"tokens/{made['info']['id']}", status=404)


def test_a_personal_token_of_an_admin_changes_no_accounts(world: World) -> None:
    made = world.request("POST", "/api/tradewind/v1/me/tokens", json={"label": "x"}).json()
    bearer = {"Authorization": f"Bearer {made['token']}"}
    assert world.bare("GET", f"{BASE}/users", headers=bearer).status_code == 200
    for method, path, body in (
        ("POST", "users", {"username": "mallory", "role": "admin"}),
        ("POST", "users/viewer/password", {}),
        ("PATCH", "users/viewer", {"role": "admin"}),
        ("DELETE", "users/viewer", None),
    ):
        assert world.bare(method, f"{BASE}/{path}", headers=bearer, json=body).status_code == 403, path


def test_sessions_are_listed_and_ended(world: World) -> None:
    headers = {"X-Tradewind-Request": "1", "Origin": "http://tradewind.test"}
    body = {"username": "viewer", "password": PASSWORD}
    world.http.cookies.clear()
    assert world.bare("POST", "/auth/login", json=body, headers=headers).status_code == 200
    cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in world.http.cookies.items())}
    world.http.cookies.clear()
    (session,) = send(world, "GET", "sessions?username=viewer")["sessions"]
    assert world.bare("GET", "/api/v2/dags", headers=cookie).status_code == 200
    send(world, "DELETE", f"sessions/{session['id']}", status=204)
    assert world.bare("GET", "/api/v2/dags", headers=cookie).status_code == 401
    assert send(world, "GET", "sessions")["total_entries"] == 0
    send(world, "GET", "sessions?username=nobody", status=404)
    token = {"Authorization": f"Bearer {world.token('viewer')}"}
    send(world, "POST", "users/viewer/logout", status=204)
    assert world.bare("GET", "/api/v2/dags", headers=token).status_code == 401


def test_custom_roles_and_their_grants(world: World) -> None:
    world.dag()
    grant = {"dag_id": "sal*", "action": "read"}
    made = send(world, "POST", "roles", {"name": "guests", "grants": [grant]}, 201)
    assert made["grants"] == [grant]
    send(world, "POST", "roles", {"name": "Viewer"}, 409)
    send(world, "POST", "users", {"username": "ann", "role": "public", "roles": ["guests"], "password": "battery staple"}, 201)
    assert world.get("/api/v2/dags/sales", "ann").status_code == 200
    assert send(world, "PUT", "roles/guests/grants", {"grants": []})["grants"] == []
    assert world.get("/api/v2/dags/sales", "ann").status_code in (403, 404)
    assert [one["name"] for one in send(world, "GET", "roles")["roles"]][-1] == "guests"
    send(world, "DELETE", "roles/guests", status=204)
    assert send(world, "GET", "users/ann")["roles"] == []
    send(world, "PUT", "roles/guests/grants", {"grants": []}, 404)


def test_teams_have_members_and_dags(world: World) -> None:
    world.dag()
    send(world, "POST", "teams", {"name": "finance"}, 201)
    assert send(world, "PUT", "teams/finance/dags", {"dags": ["sales"], "bundles": ["pay"]})["dags"] == ["sales"]
    assert world.get("/api/v2/dags/sales", "viewer").status_code == 404
    send(world, "PUT", "teams/finance/members/viewer", {"role": "user"})
    assert world.get("/api/v2/dags/sales", "viewer").status_code == 200
    (team,) = send(world, "GET", "teams")["teams"]
    assert team["members"] == [{"username": "viewer", "role": "user"}]
    found = send(world, "PUT", "teams/finance/dags", {"dags": ["sales", "x*"]})
    assert (found["dags"], found["bundles"]) == (["sales", "x*"], [])
    send(world, "POST", "teams", {"name": "other"}, 201)
    send(world, "PUT", "teams/other/dags", {"dags": ["sales"]}, 409)
    send(world, "DELETE", "teams/finance/members/viewer", status=204)
    send(world, "DELETE", "teams/finance/members/viewer", status=404)
    send(world, "DELETE", "teams/finance", status=204)
    assert world.get("/api/v2/dags/sales", "viewer").status_code == 200
    send(world, "PUT", "teams/finance/dags", {}, 404)


def account_rows(world: World) -> list[tuple[str, str, str]]:
    found = world.json("/api/v2/eventLogs?event_pattern=account&order_by=id")["event_logs"]
    return [(one["event"], one["owner"], json.loads(one["extra"])["account"]) for one in found]


def test_changes_are_in_the_audit_log_once(world: World) -> None:
    audit = world.app.state.services.account_audit
    audit.send()
    before = account_rows(world)
    send(world, "POST", "users", {"username": "ann", "role": "user"}, 201)
    send(world, "PATCH", "users/ann", {"is_active": False})
    world.control.gone = True
    assert audit.send() == 0, "kept until there is a scheduler"
    world.control.gone = False
    kept = world.accounts.waiting_events(10)
    assert audit.send() == 2
    assert world.accounts.waiting_events(10) == []
    expected = [("create account", "admin", "ann"), ("change account", "admin", "ann")]
    assert account_rows(world)[len(before) :] == expected
    for event in kept:  # as if the process had ended before it deleted them
        audit._send_one(event)
    assert account_rows(world)[len(before) :] == expected


def test_an_entry_that_the_scheduler_refuses_does_not_block_the_others(world: World) -> None:
    audit = world.app.state.services.account_audit
    audit.send()
    before = account_rows(world)
    store: Any = world.accounts
    with store.engine.transaction():
        store.engine.run("INSERT INTO account_event (at, event, actor, detail) VALUES (1, 'broken', 'x', '[1]')")
    send(world, "DELETE", "users/op", status=204)
    assert audit.send() == 2
    assert account_rows(world)[len(before) :] == [("delete account", "admin", "op")]
