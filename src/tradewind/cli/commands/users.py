"""`tradewind users …` and `roles list`: the users who can log in to the web page and the API."""

from __future__ import annotations

import json
import os
import secrets
from typing import Any

import click

from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import confirm
from tradewind.cli.output import output_option, show
from tradewind.model.errors import ConfigError, Conflict, NotFound, did_you_mean
from tradewind.platform.private_file import exposure
from tradewind.settings import Settings, load

_ROLES = {
    "viewer": "read everything except secrets",
    "user": "also trigger, clear and pause",
    "op": "also change pools, variables and connections",
    "admin": "do everything",
}
_PASSWORD_BYTES = 15

role_option = click.option(
    "-r",
    "--role",
    type=click.Choice(tuple(_ROLES), case_sensitive=False),
    required=True,
    help="Role of the user; see: tradewind roles list.",
)


@click.group(cls=CommandGroup)
def users() -> None:
    """Manage the users who can log in to the web page and the API."""


@click.group(cls=CommandGroup)
def roles() -> None:
    """List the roles that users can have."""


@roles.command("list")
@output_option
def list_roles(output: str) -> None:
    """List the roles, which are fixed. Each role includes the permissions of the roles above it."""
    show([{"name": name, "may": text} for name, text in _ROLES.items()], output, ("name", "may"))


def _read(settings: Settings) -> dict[str, dict[str, Any]]:
    """Read the file of users: name → its entry; empty if there is no file.

    Raises:
        ConfigError: the file can be read by others, or is damaged.
    """
    path = settings.paths.passwords
    if not os.path.lexists(path):
        return {}
    reason = exposure(path)
    if reason is not None:
        raise ConfigError(f"the file of users {path} is not private ({reason}); run: chmod 600 {path}")
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return {
            str(name): {
                "role": str(entry["role"]),
                "password": str(entry["password"]),
                **({"logins": str(entry["logins"])} if "logins" in entry else {}),
            }
            for name, entry in found.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(
            f"the file of users {path} is damaged; restore a copy, or delete the file: then the next start creates a new admin"
        ) from None


def _write(settings: Settings, entries: dict[str, dict[str, Any]]) -> None:
    """Replace the file atomically. The web server uses it from the next request on."""
    settings.paths.prepare()
    path = settings.paths.passwords
    draft = f"{path}.{os.getpid()}.new"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(json.dumps(entries, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


@users.command("list")
@output_option
def list_users(output: str) -> None:
    """List the users and their roles."""
    rows = [{"username": name, "role": entry["role"]} for name, entry in sorted(_read(load()).items())]
    show(rows, output, ("username", "role"), empty="There are no users yet: the first start creates an admin.")


@users.command()
@click.option("-u", "--username", required=True, help="User name.")
@role_option
@click.option("-p", "--password", help="Password; it stays in the shell's history. Default: prompt for it.")
@click.option("--use-random-password", is_flag=True, help="Generate a password and show it once.")
@click.option("-e", "--email", "-f", "--firstname", "-l", "--lastname", "ignored", multiple=True, hidden=True)
def create(username: str, role: str, password: str | None, use_random_password: bool, ignored: tuple[str, ...]) -> None:
    """Create a user."""
    settings = load()
    entries = _read(settings)
    if username in entries:
        raise Conflict(
            f"user {username!r} exists already; to change the password: tradewind users reset-password -u {username}"
        )
    if ignored:
        click.echo("Names and e-mail addresses of users are not stored.", err=True)
    entries[username] = {"role": role.lower(), "password": _hashed(settings, username, password, use_random_password)}
    _write(settings, entries)
    click.echo(f"User {username} was created with the role {role.lower()}.")


@users.command("reset-password")
@click.option("-u", "--username", required=True, help="User name.")
@click.option("-p", "--password", help="Password; it stays in the shell's history. Default: prompt for it.")
@click.option("--use-random-password", is_flag=True, help="Generate a password and show it once.")
def reset_password(username: str, password: str | None, use_random_password: bool) -> None:
    """Change the password of a user. Logins with the old password end."""
    settings = load()
    entries = _read(settings)
    _known(entries, username)
    entries[username]["password"] = _hashed(settings, username, password, use_random_password)
    _write(settings, entries)
    click.echo(f"The password of user {username} was changed.")


@users.command()
@click.option("-u", "--username", required=True, help="User name.")
def logout(username: str) -> None:
    """End all logins of a user. The password is not changed."""
    settings = load()
    entries = _read(settings)
    _known(entries, username)
    entries[username]["logins"] = secrets.token_hex(8)
    _write(settings, entries)
    click.echo(f"All logins of user {username} have ended. The user can log in again with the same password.")


@users.command("add-role")
@click.option("-u", "--username", required=True, help="User name.")
@role_option
def add_role(username: str, role: str) -> None:
    """Change the role of a user."""
    settings = load()
    entries = _read(settings)
    before = _known(entries, username)["role"]
    entries[username]["role"] = role.lower()
    _write(settings, entries)
    click.echo(f"User {username} now has the role {role.lower()} (before: {before}).")


@users.command()
@click.option("-u", "--username", required=True, help="User name.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(username: str, yes: bool) -> None:
    """Delete a user."""
    settings = load()
    entries = _read(settings)
    entry = _known(entries, username)
    if entry["role"] == "admin" and sum(one["role"] == "admin" for one in entries.values()) == 1:
        raise Conflict(f"{username} is the only admin; create another admin first")
    confirm(f"Really delete the user {username}?", yes)
    del entries[username]
    _write(settings, entries)
    click.echo(f"User {username} is deleted.")


def _known(entries: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    if name not in entries:
        raise NotFound(f"there is no user {name!r}.{did_you_mean(name, entries)}")
    return entries[name]


def _hashed(settings: Settings, name: str, password: str | None, random: bool) -> str:
    from tradewind.api.auth.users import hash_password  # lazy import: imports argon2

    if random:
        password = secrets.token_urlsafe(_PASSWORD_BYTES)
        click.echo(f"Password: {password}   (shown only once)")
    elif password is None:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    shortest = settings.api.password_min_length
    if len(password) < shortest:
        raise click.UsageError(
            f"the password has {len(password)} characters; the minimum is {shortest} (setting: api.password_min_length)"
        )
    if name.lower() in password.lower() and not random:
        raise click.UsageError("the password must not contain the user name; choose another one, or give --use-random-password")
    return hash_password(password)
