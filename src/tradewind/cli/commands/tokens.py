"""`tradewind tokens …`: personal tokens, and tokens of service accounts."""

from __future__ import annotations

import click

from tradewind.cli.accounts import accounts_of, now
from tradewind.cli.command_client import current_user
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.output import output_option, show
from tradewind.model.accounts import ROLES, AccountToken
from tradewind.model.errors import NotFound
from tradewind.model.moments import DAY, iso
from tradewind.settings import load


@click.group(cls=CommandGroup)
def tokens() -> None:
    """Manage tokens, with which programs use the API: Authorization: Bearer <token>."""


@tokens.command("list")
@click.option("-u", "--username", help="Only the tokens of this user.")
@output_option
def list_tokens(username: str | None, output: str) -> None:
    """List the tokens. Their text is not stored and cannot be shown again."""
    with accounts_of(load()) as store:
        if username is not None:
            store.need_account(username)
        found = store.tokens(username)
    rows = [
        {
            "id": one.id,
            "username": one.account,
            "label": one.label,
            "at_most": one.role,
            "expires": iso(one.expires_at) or "never",
            "last_used": iso(one.last_used_at) or "never",
            "last_address": one.last_address,
            "created_by": one.created_by,
        }
        for one in found
    ]
    show(rows, output, ("id", "username", "label", "at_most", "expires", "last_used"), empty="There are no tokens.")


@tokens.command()
@click.option("-u", "--username", required=True, help="User or service account that the token belongs to.")
@click.option("--label", default="", help="What the token is for.")
@click.option(
    "-r",
    "--role",
    type=click.Choice(ROLES[1:]),
    default="admin",
    help="The role that limits what the token may do. Default: the role of its user.",
)
@click.option(
    "--days", type=click.FloatRange(0, 3650, min_open=True), help="Days until it expires. Default: it does not expire."
)
def create(username: str, label: str, role: str, days: float | None) -> None:
    """Create a token, and print it once on stdout."""
    from tradewind.api.auth.accounts import new_token

    at = now()
    text, hashed, id = new_token()
    expires_at = None if days is None else at + max(1, round(days * DAY))
    token = AccountToken(id, username, label or "command line", role, at, current_user(), expires_at, None, "")
    with accounts_of(load()) as store:
        store.create_token(token, hashed)
    click.echo(f"Token {id} of {username}: it is shown only once. To revoke it: tradewind tokens revoke {id}", err=True)
    click.echo(text)


@tokens.command()
@click.argument("token_id", metavar="ID")
def revoke(token_id: str) -> None:
    """Revoke a token; see: tradewind tokens list."""
    with accounts_of(load()) as store:
        if not store.revoke_token(token_id, at=now(), actor=current_user()):
            raise NotFound(f"there is no token {token_id!r}; see: tradewind tokens list")
    click.echo(f"Token {token_id} is revoked.")
