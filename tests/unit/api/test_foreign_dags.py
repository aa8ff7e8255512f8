"""Route × role × own or foreign DAG: what belongs to a DAG that an account may not read does not exist for it, on any route.

There are two teams with one DAG each: `ours` and `theirs`. The accounts of all roles but admin are members of the team `us`.
"""

from __future__ import annotations

import base64
import inspect
import re
from typing import Any

import pytest
from pydantic import BaseModel

from tests.unit.api.conftest import ROLES, World
from tests.unit.api.test_auth import NAMES, ROUTES, filled, valid_body
from tradewind.api.auth.objects import BODY_FIELD, PATH_PARAMETERS
from tradewind.api.auth.policy import DAG_RESOURCES, OPEN, allow, checks_objects, policy_of
from tradewind.model.accounts import TeamDags
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import ParsedDag, ParsedFile

RESTRICTED = tuple(role for role in ROLES if role != "admin")


@pytest.fixture
def teams(world: World) -> World:
    for team, dag_id in (("us", "ours"), ("them", "theirs")):
        world.dag(dag_id)
        world.run(dag_id, "r1", conf={"canary": dag_id})
        world.accounts.create_team(team, "", at=1, actor="test")
        world.accounts.assign_dags(TeamDags(team, "dag", dag_id), at=1, actor="test")
    for role in RESTRICTED:
        world.accounts.set_member("us", role, role, at=1, actor="test")
    return world


def with_dag(path: str, dag_id: str) -> str:
    return filled(
        path.replace("{dag_id}", dag_id)
        .replace("{dag_run_id}", "r1")
        .replace("{run_id}", "r1")
        .replace("{task_id}", "t0")
        .replace("{task_instance_id}", "t0")
    )


def body_of(path: str, method: str) -> Any:
    """A body that the route accepts; `{}` where none is known: the DAG is decided before the body is read."""
    try:
        return valid_body(path, method)
    except KeyError:
        return {}


def changes_dags(route: Any) -> bool:
    policy = policy_of(route.endpoint)
    return policy is not None and policy != OPEN and policy.resource in DAG_RESOURCES and policy.action != "read"


def names_its_dag(route: Any) -> bool:
    if PATH_PARAMETERS & set(re.findall(r"\{(\w+)", route.path)):
        return True
    bodies = [one.annotation for one in inspect.signature(route.endpoint, eval_str=True).parameters.values()]
    return any(inspect.isclass(one) and issubclass(one, BaseModel) and BODY_FIELD in one.model_fields for one in bodies)


@pytest.mark.parametrize("route", [route for _, route in ROUTES if changes_dags(route)], ids=lambda route: route.path)
def test_a_route_that_changes_dags_names_its_dag_or_asks_for_each(route: Any) -> None:
    """If this fails for a new route: see `checks_objects` of `allow`."""
    assert names_its_dag(route) or checks_objects(route.endpoint)


@pytest.mark.parametrize("role", RESTRICTED)
@pytest.mark.parametrize(
    ("method", "route"),
    [one for one in ROUTES if "{dag_id}" in one[1].path],
    ids=[name for name, one in zip(NAMES, ROUTES, strict=True) if "{dag_id}" in one[1].path],
)
def test_a_foreign_dag_does_not_exist(teams: World, method: str, route: Any, role: str) -> None:
    policy = policy_of(route.endpoint)
    assert policy is not None
    answers = [
        teams.request(method, with_dag(route.path, dag_id), role, json=body_of(route.path, method))
        for dag_id in ("theirs", "nobody")
    ]
    theirs, nobody = answers
    assert theirs.status_code in (403, 404), theirs.text
    assert theirs.status_code == nobody.status_code
    assert theirs.text.replace("theirs", "nobody") == nobody.text, "the answer does not say whether the DAG exists"
    assert teams.control.calls == []
    ours = teams.request(method, with_dag(route.path, "ours"), role, json=body_of(route.path, method))
    assert (ours.status_code == 403) == (theirs.status_code == 403), ours.text


@pytest.mark.parametrize("role", ["viewer", "op"])
@pytest.mark.parametrize(
    ("method", "route"),
    [one for one in ROUTES if one[0] == "GET" and policy_of(one[1].endpoint) != OPEN],
    ids=[name for name, one in zip(NAMES, ROUTES, strict=True) if one[0] == "GET" and policy_of(one[1].endpoint) != OPEN],
)
def test_no_list_shows_a_foreign_dag(teams: World, method: str, route: Any, role: str) -> None:
    path = filled(route.path.replace("{dag_id}", "~").replace("{dag_run_id}", "~"))
    if path == "/api/tradewind/v1/events":
        pytest.skip("a stream without end; tests of its own show what it sends")
    answer = teams.request(method, path, role)
    assert "theirs" not in answer.text


def test_lists_count_only_what_is_shown(teams: World) -> None:
    for path in ("/api/v2/dags", "/api/v2/dags/~/dagRuns"):
        assert teams.json(path, role="viewer")["total_entries"] == 1
        assert teams.json(path)["total_entries"] == 2


@pytest.mark.parametrize("path", ["/api/v2/backfills", "/api/v2/backfills/dry_run"])
def test_the_dag_in_a_body_counts(teams: World, path: str) -> None:
    body = {"from_date": "2024-01-01T00:00:00Z", "to_date": "2024-01-02T00:00:00Z"}
    assert teams.request("POST", path, "op", json={**body, "dag_id": "theirs"}).status_code == 404
    assert teams.request("POST", path, "viewer", json={**body, "dag_id": "ours"}).status_code == 403
    assert teams.request("POST", path, "op", json={**body, "dag_id": "ours"}).status_code != 404


def test_a_change_needs_the_dag_unless_it_is_allowed_for_all(teams: World) -> None:
    @teams.app.post("/for-test")
    @allow("edit", "run")
    def for_test() -> str:
        return "done"

    assert teams.request("POST", "/for-test", "op").status_code == 403
    assert teams.request("POST", "/for-test", "admin").status_code == 200


def test_a_grant_opens_one_foreign_dag(teams: World) -> None:
    teams.accounts.create_role("guests", "", at=1, actor="test")
    teams.accounts.set_grants("guests", [("the*", "read")], at=1, actor="test")
    teams.accounts.set_roles("viewer", ["guests"], at=1, actor="test")
    assert teams.get("/api/v2/dags/theirs", "viewer").status_code == 200
    assert teams.request("PATCH", "/api/v2/dags/theirs", "viewer", json={"is_paused": True}).status_code == 403
    teams.accounts.set_grants("guests", [("the*", "edit")], at=1, actor="test")
    assert teams.request("PATCH", "/api/v2/dags/theirs", "viewer", json={"is_paused": True}).status_code == 200
    assert teams.get("/api/v2/dags/theirs", "op").status_code == 404
    teams.accounts.set_roles("viewer", [], at=1, actor="test")
    assert teams.get("/api/v2/dags/theirs", "viewer").status_code == 404, "at once"


def test_access_control_of_a_file_opens_its_dag(teams: World) -> None:
    teams.accounts.create_role("finance", "", at=1, actor="test")
    teams.accounts.create_account("ann", "public", stamp="s", at=1, actor="test")
    teams.accounts.set_roles("ann", ["finance"], at=1, actor="test")
    assert teams.get("/api/v2/dags/theirs", "ann").status_code == 404
    assert teams.json("/api/v2/dags", role="ann")["total_entries"] == 0
    definition = DagDefinition("theirs", tasks=(TaskDefinition("t0"),), access_control={"finance": ("run",)})
    data = encode_definition(definition)
    parsed = ParsedFile("dags", "theirs.py", "h2", (ParsedDag("theirs", data, version_hash(data)),), None, 9, False, 2)
    teams.store.register_file(parsed, paused_at_creation=True)
    teams.clock.advance(2_000_000)
    assert teams.get("/api/v2/dags/theirs", "ann").status_code == 200
    assert [dag["dag_id"] for dag in teams.json("/api/v2/dags", role="ann")["dags"]] == ["theirs"]
    assert teams.request("POST", "/api/v2/dags/theirs/dagRuns", "ann", json={"logical_date": None}).status_code == 200
    assert teams.request("PATCH", "/api/v2/dags/theirs", "ann", json={"is_paused": True}).status_code == 403


def test_a_change_of_all_dags_changes_those_that_the_account_may_edit(teams: World) -> None:
    path, body = "/api/v2/dags?dag_id_pattern=~", {"is_paused": False}
    answer = teams.request("PATCH", path, "user", json=body)
    assert [dag["dag_id"] for dag in answer.json()["dags"]] == ["ours"]
    assert answer.json()["total_entries"] == 1
    assert [args["dag_id"] for _, _, args in teams.control.calls] == ["ours"]
    assert teams.request("PATCH", path, "viewer", json=body).status_code == 403
    assert teams.request("PATCH", path, "admin", json=body).json()["total_entries"] == 2
    assert [args["dag_id"] for _, _, args in teams.control.calls] == ["ours", "theirs"]


def test_a_file_is_read_again_only_for_those_who_may_edit_all_of_its_dags(teams: World) -> None:
    token = {dag_id: teams.json(f"/api/v2/dags/{dag_id}")["file_token"] for dag_id in ("ours", "theirs")}
    nothing = base64.urlsafe_b64encode(b'["dags", "nothing.py"]').decode()
    status = {
        (role, name): teams.request("PUT", f"/api/v2/parseDagFile/{text}", role).status_code
        for role in ("viewer", "user", "admin")
        for name, text in (*token.items(), ("nothing", nothing))
    }
    assert {key for key, one in status.items() if one == 201} == {
        ("user", "ours"),
        *(("admin", name) for name in ("ours", "theirs")),
    }
    assert status["user", "theirs"] == status["user", "nothing"] == 404
    assert status["viewer", "ours"] == 403
