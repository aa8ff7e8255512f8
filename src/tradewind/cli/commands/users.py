"""`tradewind users …`: the people and services that can log in to the web page and the API."""

from __future__ import annotations

import json
import secrets
from typing import IO, TYPE_CHECKING, Any

import click

from tradewind.cli.accounts import accounts_of, now
from tradewind.cli.command_client import current_user
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import confirm
from tradewind.cli.output import output_option, show
from tradewind.model.accounts import ROLES
from tradewind.model.errors import ConfigError, Conflict, NotFound, did_you_mean
from tradewind.settings import Settings, load
from tradewind.store.port.accounts import AccountStore

if TYPE_CHECKING:
    from tradewind.cli.import_airflow.takeover import NewUser

_PASSWORD_BYTES = 15

role_option = click.option(
    "-r", "--role", required=True, metavar="ROLE", help=f"{', '.join(ROLES)}, or a custom role; see: tradewind roles list."
)
username_option = click.option("-u", "--username", required=True, help="User name.")


@click.group(cls=CommandGroup)
def users() -> None:
    """Manage the users who can log in to the web page and the API."""


def known_users(settings: Settings) -> set[str]:
    """The names of all users."""
    with accounts_of(settings) as store:
        return {account.name for account in store.accounts()}


def add_imported_user(settings: Settings, user: NewUser) -> None:
    """Create a user that another system had."""
    with accounts_of(settings) as store:
        store.create_account(
            user.name,
            user.role,
            stamp=secrets.token_hex(8),
            at=now(),
            actor=current_user(),
            password=user.password,
            email=user.email,
            full_name=user.full_name,
        )
        if user.custom_roles:
            store.set_roles(user.name, user.custom_roles, at=now(), actor=current_user())


@users.command("list")
@output_option
def list_users(output: str) -> None:
    """List the users, their roles and their teams."""
    with accounts_of(load()) as store:
        rows = [_row(store, account.name) for account in store.accounts()]
    show(
        rows,
        output,
        ("username", "role", "roles", "teams", "kind", "source", "active"),
        empty="There are no users yet: the first start creates an admin.",
    )


def _row(store: AccountStore, name: str) -> dict[str, Any]:
    account, memberships = store.need_account(name), store.memberships(name)
    return {
        "username": account.name,
        "role": account.role,
        "roles": ",".join(memberships.roles),
        "teams": ",".join(f"{one.team}:{one.role}" for one in memberships.teams),
        "kind": account.kind,
        "source": account.source,
        "active": "yes" if account.is_active else "no",
        "email": account.email,
        "full_name": account.full_name,
    }


@users.command()
@username_option
@role_option
@click.option("-p", "--password", help="Password; it stays in the shell's history. Default: prompt for it.")
@click.option("--use-random-password", is_flag=True, help="Generate a password and show it once.")
@click.option("--service", is_flag=True, help="A service account: it has no password, only tokens (tradewind tokens create).")
@click.option("-e", "--email", default="", help="E-mail address.")
@click.option("-f", "--firstname", default="", help="First name.")
@click.option("-l", "--lastname", default="", help="Last name.")
def create(
    username: str,
    role: str,
    password: str | None,
    use_random_password: bool,
    service: bool,
    email: str,
    firstname: str,
    lastname: str,
) -> None:
    """Create a user."""
    settings = load()
    if service and (password is not None or use_random_password):
        raise click.UsageError("a service account has no password; leave out --password and --use-random-password")
    with accounts_of(settings) as store:
        if store.account(username) is not None:
            raise Conflict(
                f"user {username!r} exists already; to change the password: tradewind users reset-password -u {username}"
            )
        built_in, custom = _chosen_role(store, role)
        hashed = None if service else _hashed(settings, username, password, use_random_password)
        at, actor = now(), current_user()
        store.create_account(
            username,
            built_in or "public",
            stamp=secrets.token_hex(8),
            at=at,
            actor=actor,
            kind="service" if service else "user",
            password=hashed,
            email=email,
            full_name=f"{firstname} {lastname}".strip(),
        )
        if custom:
            store.set_roles(username, [custom], at=at, actor=actor)
    what = "Service account" if service else "User"
    click.echo(f"{what} {username} was created with the role {built_in or custom}.")
    if service:
        click.echo(f"Create a token for it with: tradewind tokens create -u {username}", err=True)


def _chosen_role(store: AccountStore, role: str) -> tuple[str, str]:
    """(built-in role, custom role); one of them is empty. Raises NotFound."""
    if role.lower() in ROLES:
        return role.lower(), ""
    known = store.roles()
    if role in known:
        return "", role
    raise NotFound(f"there is no role {role!r}.{did_you_mean(role, [*ROLES, *known])} See: tradewind roles list")


@users.command("reset-password")
@username_option
@click.option("-p", "--password", help="Password; it stays in the shell's history. Default: prompt for it.")
@click.option("--use-random-password", is_flag=True, help="Generate a password and show it once.")
def reset_password(username: str, password: str | None, use_random_password: bool) -> None:
    """Change the password of a user. Logins with the old password end; personal tokens stay."""
    settings = load()
    with accounts_of(settings) as store:
        account = store.need_account(username)
        if account.kind == "service":
            raise Conflict(f"{username} is a service account, which has no password; see: tradewind tokens create --help")
        if account.source != "local":
            raise Conflict(f"the password of {username} is not kept here: the user logs in by {account.source.upper()}")
        hashed = _hashed(settings, username, password, use_random_password)
        store.set_password(username, hashed, secrets.token_hex(8), at=now(), actor=current_user())
    click.echo(f"The password of user {username} was changed.")


@users.command()
@username_option
def logout(username: str) -> None:
    """End all logins of a user. The password and personal tokens are not changed."""
    with accounts_of(load()) as store:
        store.end_logins(username, secrets.token_hex(8), at=now(), actor=current_user())
    click.echo(f"All logins of user {username} have ended. The user can log in again with the same password.")


@users.command("add-role")
@username_option
@role_option
def add_role(username: str, role: str) -> None:
    """Change the built-in role of a user, or add a custom role."""
    with accounts_of(load()) as store:
        account = store.need_account(username)
        built_in, custom = _chosen_role(store, role)
        if built_in:
            store.change_account(username, role=built_in, at=now(), actor=current_user())
            click.echo(f"User {username} now has the role {built_in} (before: {account.role}).")
        else:
            store.set_roles(username, [*store.memberships(username).roles, custom], at=now(), actor=current_user())
            click.echo(f"User {username} now also has the role {custom}.")


@users.command("remove-role")
@username_option
@role_option
def remove_role(username: str, role: str) -> None:
    """Remove a custom role from a user. Without its built-in role, a user has the role public."""
    with accounts_of(load()) as store:
        account, custom = store.need_account(username), list(store.memberships(username).roles)
        if role in custom:
            store.set_roles(username, [one for one in custom if one != role], at=now(), actor=current_user())
        elif role.lower() == account.role:
            store.change_account(username, role="public", at=now(), actor=current_user())
        else:
            raise NotFound(f"user {username} does not have the role {role!r}, but: {', '.join([account.role, *custom])}")
    click.echo(f"User {username} no longer has the role {role}.")


@users.command()
@username_option
def disable(username: str) -> None:
    """Disable a user: logins and tokens are refused from now on. Nothing is deleted."""
    with accounts_of(load()) as store:
        store.change_account(username, is_active=False, stamp=secrets.token_hex(8), at=now(), actor=current_user())
    click.echo(f"User {username} is disabled. To undo this: tradewind users enable -u {username}")


@users.command()
@username_option
def enable(username: str) -> None:
    """Enable a disabled user."""
    with accounts_of(load()) as store:
        store.change_account(username, is_active=True, at=now(), actor=current_user())
    click.echo(f"User {username} is enabled.")


@users.command()
@username_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(username: str, yes: bool) -> None:
    """Delete a user with all tokens and sessions."""
    with accounts_of(load()) as store:
        store.need_account(username)
        confirm(f"Really delete the user {username}?", yes)
        store.delete_account(username, at=now(), actor=current_user())
    click.echo(f"User {username} is deleted.")


@users.command("check-login")
@click.option("-u", "--username", help="Also check this name in the directory; asks for the password.")
def check_login(username: str | None) -> None:
    """Try the settings of the identity provider (oidc) and of the directory (ldap). Nothing is changed."""
    from tradewind.api.auth.group_rights import GroupRules, rights_of  # lazy import: only for this command
    from tradewind.api.auth.ldap_directory import LdapDirectory
    from tradewind.api.auth.oidc import CALLBACK, OidcProvider
    from tradewind.cli.login_settings import ldap_of, oidc_of
    from tradewind.platform.clock import SystemClock

    settings = load()
    oidc, ldap = oidc_of(settings), ldap_of(settings)
    if oidc is None and ldap is None:
        raise ConfigError("neither oidc.issuer nor ldap.url is set: people log in with the passwords of their accounts here")
    if username is not None and ldap is None:
        raise ConfigError("only a directory can check a name, and ldap.url is not set; try the button on the login page")
    if oidc is not None:
        provider = OidcProvider(oidc, SystemClock())
        try:
            click.echo(f"Identity provider: {provider.check()}")
        finally:
            provider.close()
        base = (settings.api.base_url or f"http://{settings.api.host}:{settings.api.port}").rstrip("/")
        click.echo(f"Redirect address to enter there: {base}{CALLBACK}")
    if ldap is None:
        return
    directory = LdapDirectory(ldap)
    click.echo(f"Directory: {directory.check()}")
    if username is None:
        return
    person = directory.person(username, click.prompt("Password", hide_input=True, err=True))
    if person is None:
        raise NotFound("the name or the password is wrong, or ldap.user_filter does not find this name")
    click.echo(f"Name: {person.name}\nGroups: {', '.join(person.groups) or 'none'}")
    rights = rights_of(person.groups, GroupRules(ldap.groups, ldap.default_role))
    if rights is None:
        raise Conflict("none of these groups may log in: add one to the setting ldap.groups, or set ldap.default_role")
    teams = "".join(f", {role} in the team {team}" for team, role in sorted(rights.teams.items()))
    click.echo(f"Rights: role {rights.role}{''.join(f', role {one}' for one in sorted(rights.custom_roles))}{teams}")


@users.command("export")
@click.argument("file", type=click.File("w"))
def export_users(file: IO[str]) -> None:
    """Write the users with their roles to a JSON file, without passwords and tokens. `-` is stdout."""
    with accounts_of(load()) as store:
        rows = [_exported(store, account.name) for account in store.accounts()]
    file.write(json.dumps(rows, indent=2) + "\n")
    click.echo(f"Exported {len(rows)} user{'' if len(rows) == 1 else 's'}.", err=True)


def _exported(store: AccountStore, name: str) -> dict[str, Any]:
    account, memberships = store.need_account(name), store.memberships(name)
    first, _, last = account.full_name.partition(" ")
    return {
        "username": account.name,
        "email": account.email,
        "firstname": first,
        "lastname": last,
        "roles": [account.role, *memberships.roles],
    }


def _hashed(settings: Settings, name: str, password: str | None, random: bool) -> str:
    from tradewind.api.auth.passwords import hash_password, new_password, weakness  # lazy import: imports argon2

    if random:
        password = new_password()
        click.echo(f"Password: {password}   (shown only once)")
    elif password is None:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    reason = None if random else weakness(password, name, settings.api.password_min_length)
    if reason is not None:
        raise click.UsageError(f"{reason}" if "minimum" in reason else f"{reason}, or give --use-random-password")
    return hash_password(password)
