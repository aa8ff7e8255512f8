"""Decides what an account may do. Pure.

    the role of the account        holds for every DAG that belongs to no team, and for everything that does not belong to a DAG
    the role in a team             holds for the DAGs of the team
    grants of custom roles         hold for DAGs by id, whatever team they belong to
    `access_control` of a DAG      holds for that DAG, and names roles

The permissions add up. An admin may do everything. A token may have a limit: a role whose permissions it cannot exceed.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from tradewind.api.auth.policy import DAG_RESOURCES, Policy, may
from tradewind.model.accounts import Account, Memberships, TeamDags, highest, rank_of_role


class DagAccess(NamedTuple):
    """The properties of one DAG that decide who may use it."""

    dag_id: str
    bundle: str
    team: str
    """Team of the DAG. Empty: the DAG belongs to no team."""
    access_control: Mapping[str, tuple[str, ...]] = {}
    """`access_control` of the DAG file: role → actions."""


class Access(NamedTuple):
    """What an account may do with the credential of its request."""

    role: str
    custom_roles: tuple[str, ...] = ()
    teams: Mapping[str, str] = {}
    """Team → the role in it."""
    grants: tuple[tuple[str, str], ...] = ()
    """(pattern of DAG ids, action)."""
    limit: str = "admin"
    """The role that limits a token."""
    has_team_dags: bool = False
    """Whether any DAGs belong to teams."""

    @property
    def effective_role(self) -> str:
        return min(self.role, self.limit, key=rank_of_role)

    def may(self, policy: Policy) -> bool:
        """Whether the account may do this with an object that belongs to no DAG, or with at least one DAG."""
        if may(self.role, policy):
            return may(self.limit, policy)
        if policy.resource not in DAG_RESOURCES or not may(self.limit, policy):
            return False
        return any(may(role, policy) for role in self.teams.values()) or self._has_grants(policy)

    def may_on(self, policy: Policy, dag: DagAccess) -> bool:
        """Whether the account may do this with this DAG and with its runs, task instances, logs and XComs."""
        if not may(self.limit, policy):
            return False
        role = self._role_for(dag)
        return may(role, policy) or any(covers(action, policy) for action in self._granted(dag))

    def may_on_all(self, policy: Policy) -> bool:
        """Whether the account may do this with every DAG."""
        return may(self.limit, policy) and may(self.role, policy) and (self.role == "admin" or not self.has_team_dags)

    @property
    def reads_all(self) -> bool:
        """Whether no DAG is hidden from the account, so that lists need no filter."""
        return self.may_on_all(Policy("read", "dag"))

    def _role_for(self, dag: DagAccess) -> str:
        if not dag.team or self.role == "admin":
            return self.role
        return self.teams.get(dag.team, "public")

    def _granted(self, dag: DagAccess) -> Iterable[str]:
        for pattern, action in self.grants:
            if matches(pattern, dag.dag_id):
                yield action
        for name, actions in dag.access_control.items():
            if name in self.custom_roles or self._has_built_in(name):
                yield from actions

    def _has_built_in(self, name: str) -> bool:
        """DAG files write Airflow's roles with a capital letter: Viewer, User, Op."""
        return name.lower() == self.role

    def _has_grants(self, policy: Policy) -> bool:
        return bool(self.custom_roles) or any(covers(action, policy) for _, action in self.grants)


def access_of(account: Account, memberships: Memberships, *, limit: str = "admin", has_team_dags: bool = False) -> Access:
    """What an account may do. `limit`: the role of its token."""
    return Access(
        role=account.role,
        custom_roles=memberships.roles,
        teams={member.team: highest(member.role, account.role) for member in memberships.teams},
        grants=tuple((grant.pattern, grant.action) for grant in memberships.grants),
        limit=limit,
        has_team_dags=has_team_dags,
    )


def team_of(dag_id: str, bundle: str, assigned: Iterable[TeamDags]) -> str:
    """The team of a DAG: the one with the longest pattern for its id, else the team of its bundle. Empty: none."""
    best: TeamDags | None = None
    for one in assigned:
        fits = matches(one.pattern, dag_id) if one.kind == "dag" else one.pattern == bundle
        if fits and (best is None or _precision(one) > _precision(best)):
            best = one
    return "" if best is None else best.team


def _precision(one: TeamDags) -> tuple[bool, int]:
    return one.kind == "dag", len(one.pattern.replace("*", ""))


def covers(action: str, policy: Policy) -> bool:
    """Whether a grant of `action` permits this. Every action includes reading."""
    if policy.action == "read":
        return True
    if action == "run":
        return policy == Policy("create", "run")
    if action == "edit":
        return policy.action in ("edit", "create")
    return action == "delete" and policy.action == "delete"


def matches(pattern: str, name: str) -> bool:
    """Whether the name matches a pattern in which `*` stands for any characters."""
    return pattern == name or ("*" in pattern and _compiled(pattern).fullmatch(name) is not None)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    literal = pattern.replace("[", "[[]").replace("?", "[?]")
    return re.compile(fnmatch.translate(literal))  # unlike `.*`, this expression takes linear time
