"""Logins whose passwords a directory checks, against an OpenLDAP server."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.api.conftest import PASSWORD, World
from tests.unit.api.ldap_server import BASE, SEARCHER, SEARCHER_PASSWORD, LdapServer, ldap_server
from tests.unit.api.test_oidc import use_logins
from tradewind.api.auth.ldap_directory import LdapDirectory
from tradewind.api.config import LdapConfig
from tradewind.model.errors import Unreachable

ldap3 = pytest.importorskip("ldap3", reason="needs the package ldap3 (extra test)")

GROUPS = {"eng": ("op",), f"cn=finance,ou=groups,{BASE}": ("viewer", "team:finance:user")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LdapServer]:
    folder: Path = tmp_path_factory.mktemp("ldap")
    found = ldap_server(folder)
    try:
        found.add_groups()
        yield found
    finally:
        found.close()


def config(server: LdapServer, **more: Any) -> LdapConfig:
    values: dict[str, Any] = {
        "url": server.secure_url,
        "start_tls": True,
        "ca_file": server.ca_file,
        "bind_dn": SEARCHER,
        "bind_password": SEARCHER_PASSWORD,
        "search_base": f"ou=people,{BASE}",
        "user_filter": "(&(objectClass=person)(uid={name}))",
        "name_attribute": "uid",
        "groups_attribute": "memberOf",
        "group_search_base": f"ou=groups,{BASE}",
        "group_filter": "(member={dn})",
        "groups": GROUPS,
        "default_role": "",
        **more,
    }
    return LdapConfig(**values)


def log_in(world: World, name: str, password: str) -> httpx.Response:
    return world.bare("POST", "/auth/token", json={"username": name, "password": password})


def me(world: World, answer: httpx.Response) -> Any:
    assert answer.status_code == 201, answer.text
    token = answer.json()["access_token"]
    return world.bare("GET", "/api/tradewind/v1/me", headers={"Authorization": f"Bearer {token}"}).json()


@pytest.mark.parametrize("encryption", ["ldaps", "start_tls"])
def test_the_first_login_creates_the_account(world: World, server: LdapServer, encryption: str) -> None:
    world.accounts.create_team("finance", "", at=1, actor="test")
    use_logins(world, ldap=config(server, url=server.secure_url if encryption == "ldaps" else server.url))
    found = me(world, log_in(world, "ann", "ann's password"))
    assert (found["username"], found["source"], found["role"]) == ("ann", "ldap", "op")
    assert (found["email"], found["full_name"]) == ("ann@example.com", "Ann Lee")
    assert found["teams"] == [{"team": "finance", "role": "op"}]
    assert not found["can_change_password"]
    assert me(world, log_in(world, "ANN", "ann's password"))["username"] == "ann", "names of a directory have no case"
    assert [one.name for one in world.accounts.accounts()].count("ann") == 1


def test_wrong_passwords_and_unknown_names_are_refused_alike(world: World, server: LdapServer) -> None:
    use_logins(world, ldap=config(server))
    answers = [log_in(world, name, "wrong") for name in ("ann", "nobody", "*", "ann)(uid=*")]
    assert {(one.status_code, one.text) for one in answers} == {(401, answers[0].text)}
    assert world.accounts.account("ann") is None


def test_an_empty_password_is_no_anonymous_login(world: World, server: LdapServer) -> None:
    """A directory says yes to a bind without a password."""
    use_logins(world, ldap=config(server))
    header = base64.b64encode(b"ann:").decode()
    assert world.bare("GET", "/api/v1/dags", headers={"Authorization": f"Basic {header}"}).status_code == 401
    assert LdapDirectory(config(server)).person("ann", "") is None


@pytest.mark.parametrize("change", [{"group_search_base": None}, {"groups_attribute": "noSuchAttribute"}], ids=str)
def test_groups_come_from_an_attribute_or_from_a_search(server: LdapServer, change: dict[str, Any]) -> None:
    person = LdapDirectory(config(server, **change)).person("ann", "ann's password")
    assert person is not None
    assert set(person.groups) == {"eng", "finance", f"cn=eng,ou=groups,{BASE}", f"cn=finance,ou=groups,{BASE}"}


def test_names_with_signs_of_filters_are_found(world: World, server: LdapServer) -> None:
    world.accounts.create_team("finance", "", at=1, actor="test")
    use_logins(world, ldap=config(server))
    found = me(world, log_in(world, "bob*(x)", "bob's password"))
    assert (found["username"], found["role"], found["teams"]) == ("bob*(x)", "viewer", [{"team": "finance", "role": "user"}])


def test_local_accounts_keep_their_passwords(world: World, server: LdapServer) -> None:
    """The directory has an `admin`, too: somebody else."""
    use_logins(world, ldap=config(server, default_role="viewer"))
    assert me(world, log_in(world, "admin", PASSWORD))["source"] == "local"
    assert log_in(world, "admin", "mallory's password").status_code == 401
    refused = log_in(world, "ADMIN", "mallory's password")
    assert (refused.status_code, "belongs to another account" in refused.text) == (403, True)


def test_without_a_group_nobody_logs_in(world: World, server: LdapServer) -> None:
    use_logins(world, ldap=config(server, groups={"other": ("viewer",)}))
    refused = log_in(world, "ann", "ann's password")
    assert (refused.status_code, "has no group" in refused.text) == (403, True)
    use_logins(world, ldap=config(server, groups={}, default_role="user"))
    assert me(world, log_in(world, "ann", "ann's password"))["role"] == "user"


def test_an_account_of_the_directory_has_no_password_here(world: World, server: LdapServer) -> None:
    use_logins(world, ldap=config(server))
    log_in(world, "ann", "ann's password")
    use_logins(world)
    assert log_in(world, "ann", "ann's password").status_code == 401


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"url": "ldap://127.0.0.1:1"}, "cannot be used now"),
        ({"ca_file": None}, "certificate verify failed"),
        ({"bind_password": "wrong"}, "refuses ldap.bind_dn"),
        ({"search_base": "ou=nowhere,dc=example,dc=com"}, "noSuchObject"),
        ({"group_search_base": "ou=nowhere,dc=example,dc=com"}, "noSuchObject"),
        ({"name_attribute": "sAMAccountName"}, "ldap.name_attribute"),
        ({"user_filter": "(uid={name}"}, "filter"),
    ],
    ids=str,
)
def test_a_directory_that_cannot_be_used_is_named(world: World, server: LdapServer, change: dict[str, Any], why: str) -> None:
    wrong = dataclasses.replace(config(server), **change)
    with pytest.raises(Unreachable, match=r"(?s)" + why):
        LdapDirectory(wrong).person("ann", "ann's password")
    use_logins(world, ldap=wrong)
    assert log_in(world, "ann", "ann's password").status_code == 503
    assert log_in(world, "admin", PASSWORD).status_code == 201, "local accounts do not need the directory"
