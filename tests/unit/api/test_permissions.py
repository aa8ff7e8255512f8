"""What an account may do, from plain values: roles, teams, grants, `access_control`, and the limit of a token."""

from __future__ import annotations

import time

import pytest

from tests.unit.api.conftest import ROLES
from tradewind.api.auth.permissions import Access, DagAccess, covers, matches, team_of
from tradewind.api.auth.policy import DAG_RESOURCES, OTHER_RESOURCES, POLICIES, Policy, may
from tradewind.model.accounts import TeamDags

READ, EDIT, RUN = Policy("read", "dag"), Policy("edit", "dag"), Policy("create", "run")
FREE, TEAM = DagAccess("sales", "dags", ""), DagAccess("pay", "dags", "money")
VARIABLES = Policy("edit", "variable")


def test_every_resource_is_of_dags_or_not() -> None:
    assert {policy.resource for policy in POLICIES} == DAG_RESOURCES | OTHER_RESOURCES
    assert not DAG_RESOURCES & OTHER_RESOURCES


@pytest.mark.parametrize("role", ROLES)
def test_a_role_holds_for_dags_without_a_team(role: str) -> None:
    access = Access(role)
    assert [access.may_on(policy, FREE) for policy in sorted(POLICIES)] == [may(role, policy) for policy in sorted(POLICIES)]
    assert access.reads_all


@pytest.mark.parametrize(
    ("access", "read", "edit"),
    [
        (Access("op", has_team_dags=True), False, False),
        (Access("admin", has_team_dags=True), True, True),
        (Access("viewer", teams={"money": "viewer"}, has_team_dags=True), True, False),
        (Access("viewer", teams={"money": "user"}, has_team_dags=True), True, True),
        (Access("public", teams={"money": "op"}, has_team_dags=True), True, True),
        (Access("op", teams={"other": "op"}, has_team_dags=True), False, False),
        (Access("public", grants=(("pay", "read"),), has_team_dags=True), True, False),
        (Access("public", grants=(("p*", "edit"),), has_team_dags=True), True, True),
        (Access("public", grants=(("s*", "edit"),), has_team_dags=True), False, False),
    ],
)
def test_dags_of_a_team_are_for_its_members(access: Access, read: bool, edit: bool) -> None:
    assert (access.may_on(READ, TEAM), access.may_on(EDIT, TEAM)) == (read, edit)
    assert access.may(EDIT) or not edit, "what is possible with one DAG is not refused before the DAG is known"
    assert access.reads_all == (access.role == "admin")


def test_access_control_names_custom_and_built_in_roles() -> None:
    dag = DagAccess("pay", "dags", "money", {"finance": ("edit",), "Viewer": ("read",), "Op": ("run",)})
    assert Access("public", custom_roles=("finance",)).may_on(EDIT, dag)
    assert not Access("public", custom_roles=("other",)).may_on(READ, dag)
    assert Access("viewer").may_on(READ, dag)
    assert not Access("viewer").may_on(RUN, dag)
    assert Access("op").may_on(RUN, dag)
    assert not Access("op").may_on(EDIT, dag)


def test_a_team_gives_nothing_outside_of_its_dags() -> None:
    access = Access("viewer", teams={"money": "op"}, has_team_dags=True)
    assert not access.may_on(EDIT, FREE)
    assert not access.may(VARIABLES)
    assert not access.may_on_all(EDIT)


@pytest.mark.parametrize("limit", ROLES)
def test_a_limit_takes_away_and_never_gives(limit: str) -> None:
    for role in ROLES:
        for policy in POLICIES:
            limited = Access(role, limit=limit)
            assert limited.may(policy) == (may(role, policy) and may(limit, policy))
            assert limited.may_on(policy, FREE) == limited.may(policy)
    assert Access("public", grants=(("*", "edit"),), limit=limit).may_on(EDIT, FREE) == may(limit, EDIT)


def test_what_a_grant_covers() -> None:
    delete = Policy("delete", "dag")
    covered = {
        action: [covers(action, one) for one in (READ, RUN, EDIT, delete)] for action in ("read", "run", "edit", "delete")
    }
    assert covered == {
        "read": [True, False, False, False],
        "run": [True, True, False, False],
        "edit": [True, True, True, False],
        "delete": [True, False, False, True],
    }


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("sales", "sales", True),
        ("sales", "Sales", False),
        ("sales_*", "sales_", True),
        ("*", "", True),
        ("*_x", "a_x", True),
        ("a*c", "abd", False),
        ("a[b]", "ab", False),
        ("a?", "ab", False),
        ("a.c", "abc", False),
    ],
)
def test_patterns_of_dag_ids(pattern: str, name: str, fits: bool) -> None:
    assert matches(pattern, name) == fits


def test_a_pattern_with_many_stars_is_quick() -> None:
    start = time.perf_counter()
    assert not matches("*a" * 30 + "b", "a" * 200)
    assert time.perf_counter() - start < 1


def test_the_most_exact_pattern_decides_about_the_team() -> None:
    assigned = [
        TeamDags("bundles", "bundle", "pay-dags"),
        TeamDags("all", "dag", "*"),
        TeamDags("money", "dag", "pay_*"),
        TeamDags("one", "dag", "pay_roll"),
    ]
    assert [team_of(name, "x", assigned) for name in ("pay_roll", "pay_x", "other")] == ["one", "money", "all"]
    assert team_of("other", "pay-dags", assigned[:1]) == "bundles"
    assert team_of("other", "x", assigned[:1]) == ""
