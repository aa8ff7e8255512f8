"""`tradewind users …` and `roles list`: who may log in to the web page and the API."""

from __future__ import annotations

import json
import os
import secrets
from typing import Any

import click

from tradewind.cli.common import sure
from tradewind.cli.lazy import HelpfulGroup
from tradewind.cli.output import output_option, show
from tradewind.model.errors import ConfigError, Conflict, NotFound, did_you_mean
from tradewind.platform.private_file import exposure
from tradewind.settings import Settings, load

_ROLES = {
    "viewer": "reads everything but secrets",
    "user": "also triggers, clears and pauses",
    "op": "also changes pools, variables and connections",
    "admin": "everything",
}
_PASSWORD_BYTES = 15

role_option = click.option(
    "-r",
    "--role",
    type=click.Choice(tuple(_ROLES), case_sensitive=False),
    required=True,
    help="What the user may; see: roles list.",
)


@click.group(cls=HelpfulGroup)
def users() -> None:
    """Who may log in to the web page and the API."""


@click.group(cls=HelpfulGroup)
def roles() -> None:
    """What users may."""


@roles.command("list")
@output_option
def list_roles(output: str) -> None:
    """The roles; each may what those before it may, and more. They are fixed."""
    show([{"name": name, "may": text} for name, text in _ROLES.items()], output, ("name", "may"))


def _read(settings: Settings) -> dict[str, dict[str, Any]]:
    """The file of users; empty where there is none.

    Raises:
        ConfigError: it is open to others, or damaged.
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
            f"the file of users {path} is damaged; put back a copy, or delete it: a new admin is made then"
        ) from None


def _write(settings: Settings, entries: dict[str, dict[str, Any]]) -> None:
    """Replace the file, whole or not at all. It counts from the next request on."""
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
    """The users and their roles."""
    rows = [{"username": name, "role": entry["role"]} for name, entry in sorted(_read(load()).items())]
    show(rows, output, ("username", "role"), empty="There are no users yet: the first start makes an admin.")


@users.command()
@click.option("-u", "--username", required=True, help="Name of the login.")
@role_option
@click.option("-p", "--password", help="Password; it stays in the shell's history. Without it one is asked for.")
@click.option("--use-random-password", is_flag=True, help="Make a password and show it once.")
@click.option("-e", "--email", "-f", "--firstname", "-l", "--lastname", "ignored", multiple=True, hidden=True)
def create(username: str, role: str, password: str | None, use_random_password: bool, ignored: tuple[str, ...]) -> None:
    """Let somebody log in."""
    settings = load()
    entries = _read(settings)
    if username in entries:
        raise Conflict(f"there is a user {username!r} already; another password: tradewind users reset-password -u {username}")
    if ignored:
        click.echo("Names and mail addresses of users are not kept here.", err=True)
    entries[username] = {"role": role.lower(), "password": _hashed(settings, username, password, use_random_password)}
    _write(settings, entries)
    click.echo(f"User {username} with the role {role.lower()} is stored.")


@users.command("reset-password")
@click.option("-u", "--username", required=True, help="Name of the login.")
@click.option("-p", "--password", help="Password; it stays in the shell's history. Without it one is asked for.")
@click.option("--use-random-password", is_flag=True, help="Make a password and show it once.")
def reset_password(username: str, password: str | None, use_random_password: bool) -> None:
    """Give a user another password; logins under the old one end."""
    settings = load()
    entries = _read(settings)
    _known(entries, username)
    entries[username]["password"] = _hashed(settings, username, password, use_random_password)
    _write(settings, entries)
    click.echo(f"User {username} has another password.")


@users.command()
@click.option("-u", "--username", required=True, help="Name of the login.")
def logout(username: str) -> None:
    """End all logins of a user; the password stays."""
    settings = load()
    entries = _read(settings)
    _known(entries, username)
    entries[username]["logins"] = secrets.token_hex(8)
    _write(settings, entries)
    click.echo(f"All logins of {username} have ended. Whoever knows the password can log in again.")


@users.command("add-role")
@click.option("-u", "--username", required=True, help="Name of the login.")
@role_option
def add_role(username: str, role: str) -> None:
    """Give a user this role in place of the one before."""
    settings = load()
    entries = _read(settings)
    before = _known(entries, username)["role"]
    entries[username]["role"] = role.lower()
    _write(settings, entries)
    click.echo(f"User {username} has the role {role.lower()} (it was {before}).")


@users.command()
@click.option("-u", "--username", required=True, help="Name of the login.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete(username: str, yes: bool) -> None:
    """Do not let somebody log in any more."""
    settings = load()
    entries = _read(settings)
    entry = _known(entries, username)
    if entry["role"] == "admin" and sum(one["role"] == "admin" for one in entries.values()) == 1:
        raise Conflict(f"{username} is the only admin; make another one first")
    sure(f"Really delete the user {username}?", yes)
    del entries[username]
    _write(settings, entries)
    click.echo(f"User {username} is deleted.")


def _known(entries: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    if name not in entries:
        raise NotFound(f"there is no user {name!r}.{did_you_mean(name, entries)}")
    return entries[name]


def _hashed(settings: Settings, name: str, password: str | None, random: bool) -> str:
    from tradewind.api.auth.users import hash_password  # lazy door: brings argon2

    if random:
        password = secrets.token_urlsafe(_PASSWORD_BYTES)
        click.echo(f"Password: {password}   (shown only now)")
    elif password is None:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    shortest = settings.api.password_min_length
    if len(password) < shortest:
        raise click.UsageError(
            f"a password has at least {shortest} characters, this one has {len(password)} (setting: api.password_min_length)"
        )
    if name.lower() in password.lower() and not random:
        raise click.UsageError("a password must not hold the name of its user; choose another, or give --use-random-password")
    return hash_password(password)
