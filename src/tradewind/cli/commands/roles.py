"""`tradewind roles …`: the built-in roles, and custom roles with grants for DAGs."""

from __future__ import annotations

from collections.abc import Iterable

import click

from tradewind.cli.accounts import accounts_of, now
from tradewind.cli.command_client import current_user
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import confirm
from tradewind.cli.output import output_option, show
from tradewind.model.accounts import GRANT_ACTIONS, ROLES, GrantAction
from tradewind.model.errors import Conflict, NotFound
from tradewind.settings import Settings, load

_BUILT_IN = {
    "public": "log in; read and do only what grants and teams permit",
    "viewer": "read everything except secrets",
    "user": "also trigger, clear and pause",
    "op": "also change pools, variables and connections",
    "admin": "do everything",
}
assert tuple(_BUILT_IN) == ROLES


@click.group(cls=CommandGroup)
def roles() -> None:
    """Manage the roles that users can have."""


def known_roles(settings: Settings) -> dict[str, frozenset[tuple[str, GrantAction]]]:
    """The custom roles with their grants: (DAG id or pattern, action)."""
    with accounts_of(settings) as store:
        grants = store.grants()
        return {role: frozenset((one.pattern, one.action) for one in grants if one.role == role) for role in store.roles()}


def set_imported_role(settings: Settings, role: str, grants: Iterable[tuple[str, GrantAction]]) -> None:
    """Create a custom role of another system, or replace its grants."""
    with accounts_of(settings) as store:
        if role not in store.roles():
            store.create_role(role, "imported from Airflow", at=now(), actor=current_user())
        store.set_grants(role, sorted(grants), at=now(), actor=current_user())


@roles.command("list")
@output_option
def list_roles(output: str) -> None:
    """List the built-in roles, then the custom roles. Each built-in role includes the permissions of the roles above it."""
    with accounts_of(load()) as store:
        custom, grants = store.roles(), store.grants()
    rows = [{"name": name, "may": text, "kind": "built-in"} for name, text in _BUILT_IN.items()]
    for name in custom:
        found = ", ".join(f"{one.action} {one.pattern}" for one in grants if one.role == name)
        rows.append({"name": name, "may": found or "what access_control of DAG files permits", "kind": "custom"})
    show(rows, output, ("name", "may", "kind"))


@roles.command()
@click.argument("role")
@click.option("--description", default="", help="For people.")
def create(role: str, description: str) -> None:
    """Create a custom role. It permits what its grants and the `access_control` of DAG files say."""
    if role.lower() in ROLES:
        raise Conflict(f"the role {role.lower()} is built in")
    with accounts_of(load()) as store:
        store.create_role(role, description, at=now(), actor=current_user())
    click.echo(f"Role {role} was created. Give it DAGs with: tradewind roles grant {role} --dag-id 'sales_*' --action read")


@roles.command()
@click.argument("role")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(role: str, yes: bool) -> None:
    """Delete a custom role. Users lose it."""
    with accounts_of(load()) as store:
        if role not in store.roles():
            raise NotFound(f"there is no custom role {role!r}; see: tradewind roles list")
        confirm(f"Really delete the role {role}?", yes)
        store.delete_role(role, at=now(), actor=current_user())
    click.echo(f"Role {role} is deleted.")


_dag_option = click.option("-d", "--dag-id", required=True, help="DAG id, or a pattern: sales_*")
_action_option = click.option(
    "-a",
    "--action",
    type=click.Choice(GRANT_ACTIONS),
    required=True,
    help="run, edit and delete include read; edit includes run.",
)


@roles.command()
@click.argument("role")
@_dag_option
@_action_option
def grant(role: str, dag_id: str, action: GrantAction) -> None:
    """Permit a custom role to do something with a DAG, or with all DAGs whose id matches a pattern."""
    with accounts_of(load()) as store:
        before = [(one.pattern, one.action) for one in store.grants(role)]
        store.set_grants(role, [*before, (dag_id, action)], at=now(), actor=current_user())
    click.echo(f"Role {role} may {action} {dag_id}.")


@roles.command()
@click.argument("role")
@_dag_option
@_action_option
def revoke(role: str, dag_id: str, action: GrantAction) -> None:
    """Take back a grant."""
    with accounts_of(load()) as store:
        before = [(one.pattern, one.action) for one in store.grants(role)]
        if (dag_id, action) not in before:
            raise NotFound(f"the role {role!r} has no grant to {action} {dag_id}; see: tradewind roles list")
        kept = [one for one in before if one != (dag_id, action)]
        store.set_grants(role, kept, at=now(), actor=current_user())
    click.echo(f"The grant of role {role} to {action} {dag_id} is revoked.")
