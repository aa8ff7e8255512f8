"""A login and a logout through the real server: the audit log, and a token that stays refused after a restart."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from tests.acceptance.harness import Standalone


def _ask(standalone: Standalone, method: str, path: str, token: str = "", body: object = None) -> tuple[int, object]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(standalone.address + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, None


def _login(standalone: Standalone, password: str) -> tuple[int, str]:
    status, answer = _ask(standalone, "POST", "/auth/token", body={"username": "admin", "password": password})
    return status, str(answer["access_token"]) if isinstance(answer, dict) else ""


def test_a_logout_is_effective_in_every_process_and_is_logged(fresh: Standalone) -> None:
    with fresh.started():
        password = fresh.password
        assert _login(fresh, "wrong")[0] == 401
        (_, ended), (_, kept) = _login(fresh, password), _login(fresh, password)
        assert _ask(fresh, "POST", "/auth/logout", ended)[0] == 204
        assert _ask(fresh, "GET", "/api/v2/dags", ended)[0] == 401
        assert _ask(fresh, "GET", "/api/v2/dags", kept)[0] == 200
    with fresh.started():
        assert _ask(fresh, "GET", "/api/v2/dags", ended)[0] == 401
        assert _ask(fresh, "GET", "/api/v2/dags", kept)[0] == 200
        assert "ended" in fresh.cli("users", "logout", "-u", "admin")
        assert _ask(fresh, "GET", "/api/v2/dags", kept)[0] == 401
        assert _login(fresh, password)[0] == 201

        def all_recorded() -> bool:
            with fresh.store() as store:
                found = {view.event for view in store.event_logs(owner="admin").rows}
            return {"login", "login failed", "logout"} <= found

        fresh.wait(all_recorded, "logins and the logout in the audit log")
