"""`tradewind teams …`: teams own DAGs, which only their members and admins see."""

from __future__ import annotations

import click

from tradewind.cli.accounts import accounts_of, now
from tradewind.cli.command_client import current_user
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import confirm
from tradewind.cli.output import output_option, show
from tradewind.model.accounts import ROLES, TeamDags
from tradewind.model.errors import NotFound
from tradewind.settings import load

_team = click.argument("team")
_username = click.option("-u", "--username", required=True, help="User name.")
_bundle = click.option("-b", "--bundle", help="All DAGs of this bundle.")
_dag = click.option("-d", "--dag-id", help="DAG id, or a pattern: sales_*")


@click.group(cls=CommandGroup)
def teams() -> None:
    """Manage teams. Only members and admins see the DAGs of a team."""


@teams.command("list")
@output_option
def list_teams(output: str) -> None:
    """List the teams, their members and their DAGs."""
    with accounts_of(load()) as store:
        names, members, dags = store.teams(), store.members(), store.team_dags()
    rows = [
        {
            "team": name,
            "members": ",".join(f"{one.account}:{one.role}" for one in members if one.team == name),
            "bundles": ",".join(one.pattern for one in dags if one.team == name and one.kind == "bundle"),
            "dags": ",".join(one.pattern for one in dags if one.team == name and one.kind == "dag"),
        }
        for name in names
    ]
    show(rows, output, ("team", "members", "bundles", "dags"), empty="There are no teams: every role applies to all DAGs.")


@teams.command()
@_team
@click.option("--description", default="", help="For people.")
def create(team: str, description: str) -> None:
    """Create a team."""
    with accounts_of(load()) as store:
        store.create_team(team, description, at=now(), actor=current_user())
    click.echo(f"Team {team} was created.")


@teams.command()
@_team
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(team: str, yes: bool) -> None:
    """Delete a team. Its DAGs belong to no team then, so every viewer sees them."""
    with accounts_of(load()) as store:
        if team not in store.teams():
            raise NotFound(f"there is no team {team!r}; see: tradewind teams list")
        confirm(f"Really delete the team {team}? Its DAGs become visible to every viewer.", yes)
        store.delete_team(team, at=now(), actor=current_user())
    click.echo(f"Team {team} is deleted.")


@teams.command("add-member")
@_team
@_username
@click.option("-r", "--role", type=click.Choice(ROLES[1:]), default="user", show_default=True, help="For the team's DAGs.")
def add_member(team: str, username: str, role: str) -> None:
    """Add a user to a team, or change the role that the user has there."""
    with accounts_of(load()) as store:
        store.set_member(team, username, role, at=now(), actor=current_user())
    click.echo(f"{username} is a member of the team {team} with the role {role}.")


@teams.command("remove-member")
@_team
@_username
def remove_member(team: str, username: str) -> None:
    """Remove a user from a team."""
    with accounts_of(load()) as store:
        if not store.set_member(team, username, None, at=now(), actor=current_user()):
            raise NotFound(f"{username} is not a member of the team {team}; see: tradewind teams list")
    click.echo(f"{username} is no longer a member of the team {team}.")


@teams.command("add-dags")
@_team
@_bundle
@_dag
def add_dags(team: str, bundle: str | None, dag_id: str | None) -> None:
    """Give DAGs to a team: those of a bundle, or those whose id matches. The longest matching pattern decides, then the bundle."""
    dags = _dags(team, bundle, dag_id)
    with accounts_of(load()) as store:
        store.assign_dags(dags, at=now(), actor=current_user())
    click.echo(f"{dags.kind} {dags.pattern} belongs to the team {team}.")


@teams.command("remove-dags")
@_team
@_bundle
@_dag
def remove_dags(team: str, bundle: str | None, dag_id: str | None) -> None:
    """Take DAGs from a team."""
    dags = _dags(team, bundle, dag_id)
    with accounts_of(load()) as store:
        if not store.unassign_dags(dags, at=now(), actor=current_user()):
            raise NotFound(f"{dags.kind} {dags.pattern!r} does not belong to the team {team}; see: tradewind teams list")
    click.echo(f"{dags.kind} {dags.pattern} no longer belongs to the team {team}.")


def _dags(team: str, bundle: str | None, dag_id: str | None) -> TeamDags:
    if (bundle is None) == (dag_id is None):
        raise click.UsageError("give either --bundle or --dag-id")
    return TeamDags(team, "bundle", bundle) if bundle is not None else TeamDags(team, "dag", str(dag_id))
