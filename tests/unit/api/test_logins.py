"""Logins and logouts: who finds them in the audit log, which tokens they end, and how little a guesser can write."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.unit.api.conftest import PASSWORD, World
from tradewind.api.app import create_app
from tradewind.api.auth.login_log import LOGOUTS_MAX, ROWS_PER_MINUTE, SEVERAL, LoginCount, LoginCounter, LoginKey, LoginLog
from tradewind.model.errors import Unreachable
from tradewind.model.moments import MINUTE, SECOND
from tradewind.platform.clock import ManualClock
from tradewind.wire.commands import NoteLogins

ADDRESS = "127.0.0.1"


def login(world: World, name: str = "admin", password: str = PASSWORD) -> httpx.Response:
    return world.bare("POST", "/auth/token", json={"username": name, "password": password})


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def status(world: World, token: str) -> int:
    return world.bare("GET", "/api/v2/dags", headers=bearer(token)).status_code


def events(world: World) -> list[tuple[str, str, Any]]:
    """(event, actor, detail) of the audit log, as the API shows it."""
    rows = world.json("/api/v2/eventLogs")["event_logs"]
    return [(row["event"], row["owner"], row["extra"]) for row in rows]


# --- the audit log --------------------------------------------------------------------------------------------------------


def test_logins_failures_and_logouts_are_in_the_audit_log(world: World) -> None:
    token = login(world).json()["access_token"]
    assert login(world, "ann", "wrong").status_code == 401
    assert world.bare("POST", "/auth/logout", headers=bearer(token)).status_code == 204
    found = events(world)
    assert [event[:2] for event in found] == [("login", "admin"), ("login failed", "ann"), ("logout", "admin")]
    assert all(ADDRESS in event[2] for event in found)


def test_failed_logins_are_one_row_a_minute_with_a_count(world: World) -> None:
    for _ in range(30):  # most are throttled: they count as well
        login(world, "admin", "wrong")
    assert [call[0] for call in world.control.calls] == ["note_logins"]
    world.clock.advance(MINUTE)
    world.app.state.services.logins.flush()
    assert [args["rows"][0]["count"] for _, _, args in world.control.calls] == [1, 29]
    assert '"count": 29' in events(world)[1][2]


def test_a_login_without_a_scheduler_is_recorded_later(world: World) -> None:
    world.control.gone = True
    token = login(world).json()["access_token"]
    assert status(world, token) == 200
    assert events(world) == []
    world.control.gone = False
    world.clock.advance(10 * SECOND)
    world.app.state.services.logins.flush()
    assert [event[:2] for event in events(world)] == [("login", "admin")]


def test_buffered_logins_are_sent_or_logged_at_the_end(world: World, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        login(world, "ann", "wrong")
    world.app.state.services.logins.close()
    assert sum(row["count"] for _, _, args in world.control.calls for row in args["rows"]) == 2
    login(world, "ann", "wrong")
    world.control.gone = True
    world.app.state.services.logins.close()
    assert [record.getMessage() for record in caplog.records][-1] == "login failed"


def test_an_address_of_any_length_is_kept_within_bounds(world: World) -> None:
    """A proxy can send a text of any length as an address."""
    logins = world.app.state.services.logins
    logins.note("login", "n" * 5_000, "a" * 5_000)
    assert logins.flush() is None
    event, name, detail = events(world)[0]
    assert (event, len(name)) == ("login", 200)
    assert "a" * 100 in detail
    assert "a" * 101 not in detail


# --- bounds, in pure code ---------------------------------------------------------------------------------------------------


def test_many_names_are_counted_in_one_row() -> None:
    counter = LoginCounter(3)
    for number in range(1000):
        counter.add(LoginKey(f"n{number}", ADDRESS), LoginCount(1, number, number))
    first = counter.take(0)
    assert first == {
        **{LoginKey(f"n{number}", ADDRESS): LoginCount(1, number, number) for number in range(3)},
        SEVERAL: LoginCount(997, 3, 999),
    }
    counter.add(LoginKey("other", ADDRESS), LoginCount(1, 5, 5))
    assert counter.take(MINUTE - 1) == {}
    assert counter.next_due(MINUTE - 1) == 1
    assert list(counter.take(MINUTE)) == [LoginKey("other", ADDRESS)]
    assert counter.next_due(MINUTE) is None


def test_without_a_scheduler_sends_are_rare_and_buffers_bounded() -> None:
    asked: list[Any] = []

    def call(command: Any, /, **args: Any) -> Any:
        asked.append(command)
        raise Unreachable("away")

    clock = ManualClock()
    log = LoginLog(clock, lambda: call)
    for number in range(5_000):
        log.note("login failed", f"n{number}", ADDRESS)
        assert log.flush() == 10 * SECOND
    assert [type(command) for command in asked] == [NoteLogins]
    assert len(log._counters["login failed"]._waiting) == ROWS_PER_MINUTE["login failed"] + 1
    for number in range(LOGOUTS_MAX):
        log.log_out(str(number), 1, "admin", ADDRESS)
    with pytest.raises(Unreachable, match="too many logouts"):
        log.log_out("one more", 1, "admin", ADDRESS)


# --- logging out ------------------------------------------------------------------------------------------------------------


def test_a_logout_invalidates_only_its_token(world: World) -> None:
    token, other = (login(world).json()["access_token"] for _ in range(2))
    assert world.bare("POST", "/auth/logout", headers=bearer(token)).status_code == 204
    assert (status(world, token), status(world, other)) == (401, 200)
    assert world.bare("POST", "/auth/logout", headers=bearer(token)).status_code == 401


def test_another_process_refuses_the_token_too(world: World) -> None:
    """As after a restart: the process has nothing in memory."""
    token = login(world).json()["access_token"]
    services = world.app.state.services
    second = create_app(world.config, controls=lambda: world.control, clock=world.clock).state.services
    jti = str(services.tokens.check(token)["jti"])
    assert not second.is_revoked(jti)
    world.bare("POST", "/auth/logout", headers=bearer(token))
    assert second.is_revoked(jti)
    second.close()


def test_a_logout_without_a_scheduler_counts_at_once_in_this_process(world: World) -> None:
    token = login(world).json()["access_token"]
    jti = str(world.app.state.services.tokens.check(token)["jti"])
    world.control.gone = True
    assert world.bare("POST", "/auth/logout", headers=bearer(token)).status_code == 204
    assert status(world, token) == 401
    assert not world.store.token_revoked(jti)
    world.control.gone = False
    world.clock.advance(10 * SECOND)
    world.app.state.services.logins.flush()
    assert world.store.token_revoked(jti)
    assert status(world, token) == 401


def test_a_logout_invalidates_the_cookie(world: World) -> None:
    first, second = (login(world).json()["access_token"] for _ in range(2))
    answer = world.bare("POST", "/auth/logout", headers={**bearer(first), "Cookie": f"_token={second}"})
    assert '_token=""' in answer.headers["set-cookie"]
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert (status(world, first), status(world, second)) == (401, 401)


def test_another_site_cannot_log_a_user_out(world: World) -> None:
    token = login(world).json()["access_token"]
    assert world.bare("POST", "/auth/logout", headers={"Cookie": f"_token={token}"}).status_code == 403
    assert status(world, token) == 200
