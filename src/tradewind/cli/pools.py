"""`tradewind pools …`"""

from __future__ import annotations

import os

import click

from tradewind.cli.common import door, reading, sure
from tradewind.cli.lazy import HelpfulGroup
from tradewind.cli.output import output_option, show
from tradewind.settings import load

_COLUMNS = ("pool", "slots", "description", "include_deferred", "running_slots", "queued_slots", "open_slots")


@click.group(cls=HelpfulGroup)
def pools() -> None:
    """Limits shared by tasks: each running task takes slots of its pool."""


@pools.command("list")
@output_option
def list_pools(output: str) -> None:
    """All pools."""
    _show(None, output)


@pools.command()
@click.argument("pool")
@output_option
def get(pool: str, output: str) -> None:
    """One pool."""
    _show(pool, output)


def _show(name: str | None, output: str) -> None:
    import msgspec

    with reading() as store:
        found = store.list_pools(limit=None).rows if name is None else [store.pool_details(name)]
    show([{"pool": view.name, **msgspec.to_builtins(view)} for view in found], output, _COLUMNS)


@pools.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("pool")
@click.argument("slots", type=click.IntRange(-1))
@click.argument("description", default="")
@click.option("--include-deferred", is_flag=True, help="Deferred tasks take slots too.")
@output_option
def set_pool(pool: str, slots: int, description: str, include_deferred: bool, output: str) -> None:
    """Create or change a pool; -1 slots are unlimited."""
    if description.startswith("--"):
        raise click.NoSuchOption(description, possibilities=["--include-deferred", "--output"])
    settings = load()
    if not description and os.path.exists(settings.paths.database):
        with reading(settings) as store:
            description = next((row.description or "" for row in store.pools() if row.name == pool), "")
    way = door(settings)
    way.call("set_pool", name=pool, slots=slots, description=description or None, include_deferred=include_deferred)
    _show(pool, output)


@pools.command()
@click.argument("pool")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete(pool: str, yes: bool) -> None:
    """Remove a pool."""
    sure(f"Really delete the pool {pool}?", yes)
    door().call("delete_pool", name=pool)
    click.echo(f"The pool {pool} is deleted.")
