"""The accounts: what is kept, who cannot be removed, and the takeover of the file of users of earlier releases."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.model.accounts import AccountSession, AccountToken, TeamDags, TeamMember
from tradewind.model.errors import ConfigError, Conflict, NotFound
from tradewind.store.accounts import open_accounts
from tradewind.store.port.accounts import AccountStore
from tradewind.store.sql.accounts import EVENTS_MAX, SqlAccounts

NOW = 1_700_000_000_000_000
OLD = {"ada": {"role": "admin", "password": "$argon2id$x", "logins": "1"}, "bob": {"role": "viewer", "password": "$argon2id$y"}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AccountStore]:
    found = open_accounts(str(tmp_path / "accounts.db"), "", NOW)
    for name, role in (("ada", "admin"), ("bob", "viewer")):
        found.create_account(name, role, stamp="s", at=NOW, actor="test", password="hash")
    yield found
    found.close()


def session(id: str, account: str = "bob", at: int = NOW) -> AccountSession:
    return AccountSession(id, account, at, at, NOW + 1_000_000, "::1", "Firefox", "")


def token(id: str, account: str = "bob") -> AccountToken:
    return AccountToken(id, account, "ci", "viewer", NOW, account, None, None, "")


def events(store: AccountStore) -> list[str]:
    return [one.event for one in store.waiting_events(1000)]


def private_file(path: Path, content: str) -> Path:
    path.write_text(content)
    os.chmod(path, 0o600)
    return path


def test_users_of_an_earlier_release_become_accounts_once(tmp_path: Path) -> None:
    old = private_file(tmp_path / "passwords", json.dumps(OLD))
    store = open_accounts(str(tmp_path / "accounts.db"), str(old), NOW)
    assert [(one.name, one.role) for one in store.accounts()] == [("ada", "admin"), ("bob", "viewer")]
    assert store.password("ada") == "$argon2id$x"
    assert store.need_account("ada").stamp == "9e48c2aca9eedef1", "as earlier releases computed it: tokens stay valid"
    assert not old.exists()
    kept = tmp_path / "passwords.taken-over"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    store.delete_account("bob", at=NOW, actor="ada")
    store.close()
    os.rename(kept, old)
    again = open_accounts(str(tmp_path / "accounts.db"), str(old), NOW)
    assert [one.name for one in again.accounts()] == ["ada"], "a deleted user does not come back with the file"
    again.close()


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', '{"a": {"role": "king", "password": "x"}}', '{"a": {"role": "op"}}'])
def test_a_broken_file_of_users_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    old = private_file(tmp_path / "passwords", content)
    with pytest.raises(ConfigError, match="passwords"):
        open_accounts(str(tmp_path / "accounts.db"), str(old), NOW)
    assert old.exists()


@pytest.mark.parametrize("name", ["passwords", "accounts.db"])
def test_files_that_others_can_read_are_refused(tmp_path: Path, name: str) -> None:
    private_file(tmp_path / "passwords", json.dumps(OLD))
    (tmp_path / name).touch()
    os.chmod(tmp_path / name, 0o644)
    with pytest.raises(ConfigError, match="not private"):
        open_accounts(str(tmp_path / "accounts.db"), str(tmp_path / "passwords"), NOW)


def test_the_only_admin_can_neither_leave_nor_lose_the_role(store: AccountStore) -> None:
    store.create_account("robot", "admin", stamp="s", at=NOW, actor="ada", kind="service")
    for change in ({"role": "op"}, {"is_active": False}):
        with pytest.raises(Conflict, match="only admin"):
            store.change_account("ada", at=NOW, actor="ada", **change)
    with pytest.raises(Conflict, match="only admin"):
        store.delete_account("ada", at=NOW, actor="ada")
    store.change_account("bob", role="admin", at=NOW, actor="ada")
    store.delete_account("ada", at=NOW, actor="bob")
    assert store.account("ada") is None


def test_an_account_takes_everything_with_it(store: AccountStore) -> None:
    store.create_role("sales", "", at=NOW, actor="ada")
    store.create_team("money", "", at=NOW, actor="ada")
    store.set_roles("bob", ["sales"], at=NOW, actor="ada")
    store.set_member("money", "bob", "user", at=NOW, actor="ada")
    store.create_token(token("t1"), "h1")
    store.create_session(session("s1"), "h2", 5)
    store.remember_device("d1", "bob", NOW, NOW + 1, 5)
    store.delete_account("bob", at=NOW, actor="ada")
    assert (store.tokens(), store.sessions(), store.members()) == ([], [], [])
    assert store.session("h2") is None
    assert store.token("t1") is None
    assert store.device_account("d1", NOW) is None
    store.create_account("bob", "viewer", stamp="s", at=NOW, actor="ada")
    assert store.memberships("bob") == ((), (), ()), "another person with the same name inherits nothing"


@pytest.mark.parametrize("how", ["set_password", "end_logins", "switch_off"])
def test_sessions_end_with_the_password_and_with_a_logout(store: AccountStore, how: str) -> None:
    store.create_session(session("s1"), "h1", 5)
    store.create_session(session("s2", "ada"), "h2", 5)
    store.create_token(token("t1"), "h")
    if how == "set_password":
        store.set_password("bob", "new", "s2", at=NOW, actor="bob")
    elif how == "end_logins":
        assert store.end_logins("bob", "s2", at=NOW, actor="ada") == 1
    else:
        store.change_account("bob", is_active=False, stamp="s2", at=NOW, actor="ada")
    assert [one.id for one in store.sessions()] == ["s2"]
    assert store.need_account("bob").stamp == "s2"
    assert len(store.tokens("bob")) == 1, "a program goes on"


def test_sessions_and_devices_of_an_account_are_bounded(store: AccountStore) -> None:
    for number in range(5):
        store.create_session(session(f"s{number}", at=NOW + number), f"h{number}", 3)
        store.remember_device(f"d{number}", "bob", NOW, NOW + number + 1, 3)
    assert [one.id for one in store.sessions("bob")] == ["s4", "s3", "s2"]
    assert [store.device_account(f"d{number}", NOW) for number in range(5)] == [None, None, "bob", "bob", "bob"]
    store.create_session(session("late", at=NOW + 2_000_000), "h", 3)
    assert [one.id for one in store.sessions("bob")] == ["late"], "expired sessions are removed"


def test_dags_belong_to_one_team(store: AccountStore) -> None:
    for team in ("money", "people"):
        store.create_team(team, "", at=NOW, actor="ada")
    store.assign_dags(TeamDags("money", "dag", "sales_*"), at=NOW, actor="ada")
    store.assign_dags(TeamDags("money", "dag", "sales_*"), at=NOW, actor="ada")
    with pytest.raises(Conflict, match="belongs to the team 'money'"):
        store.assign_dags(TeamDags("people", "dag", "sales_*"), at=NOW, actor="ada")
    store.set_member("money", "bob", "viewer", at=NOW, actor="ada")
    store.set_member("money", "bob", "op", at=NOW, actor="ada")
    assert store.memberships("bob").teams == (TeamMember("money", "bob", "op"),)
    assert store.unassign_dags(TeamDags("money", "dag", "sales_*"), at=NOW, actor="ada")
    assert not store.unassign_dags(TeamDags("money", "dag", "sales_*"), at=NOW, actor="ada")
    store.delete_team("money", at=NOW, actor="ada")
    assert store.memberships("bob").teams == ()


def test_a_wrong_name_is_answered_with_the_nearest(store: AccountStore) -> None:
    store.create_role("sales", "", at=NOW, actor="ada")
    with pytest.raises(NotFound, match="'ada'"):
        store.need_account("adda")
    with pytest.raises(NotFound, match="'sales'"):
        store.set_roles("bob", ["saels"], at=NOW, actor="ada")
    with pytest.raises(NotFound, match="teams create"):
        store.set_member("money", "bob", "op", at=NOW, actor="ada")


def test_every_change_leaves_an_entry_and_a_failed_one_leaves_none(store: AccountStore) -> None:
    store.forget_events([one.id for one in store.waiting_events(100)])
    store.create_token(token("t1"), "secret-hash")
    store.revoke_token("t1", at=NOW, actor="bob")
    with pytest.raises(Conflict):
        store.create_account("bob", "op", stamp="s", at=NOW, actor="ada")
    assert events(store) == ["create token", "revoke token"]
    found = store.waiting_events(1)[0]
    assert (found.actor, json.loads(found.detail)["account"]) == ("bob", "bob")
    assert not any("hash" in one.detail for one in store.waiting_events(100))


def test_entries_that_nobody_fetches_are_bounded(store: AccountStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tradewind.store.sql.accounts.EVENTS_MAX", 5)
    for number in range(20):
        store.create_role(f"r{number}", "", at=NOW, actor="ada")
    assert len(events(store)) == 5
    assert EVENTS_MAX > 1000


def test_two_processes_share_the_accounts(store: AccountStore, tmp_path: Path) -> None:
    other = open_accounts(str(tmp_path / "accounts.db"), "", NOW)
    other.set_password("bob", "new", "s2", at=NOW, actor="ada")
    assert store.password("bob") == "new"
    assert isinstance(other, SqlAccounts)
    other.close()
