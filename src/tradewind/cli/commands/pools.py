"""`tradewind pools …`: list, set, delete, import and export pools."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from tradewind.cli.airflow_output import is_airflow, say
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import command_client, confirm, reading
from tradewind.cli.completers import complete_pools
from tradewind.cli.data_files import format_option, read_mapping, write_mapping
from tradewind.cli.lost_database import database_exists
from tradewind.cli.output import output_option, show
from tradewind.model.counts import counted
from tradewind.model.errors import did_you_mean
from tradewind.settings import load

_COLUMNS = ("pool", "slots", "description", "include_deferred", "running_slots", "queued_slots", "open_slots")


@click.group(cls=CommandGroup)
def pools() -> None:
    """Manage pools, which limit how many tasks run at once: each running task takes slots of its pool."""


@pools.command("list")
@output_option
def list_pools(output: str) -> None:
    """List all pools."""
    _show(None, output)


@pools.command()
@click.argument("pool", shell_complete=complete_pools)
@output_option
def get(pool: str, output: str) -> None:
    """Show one pool."""
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
@click.option("--include-deferred", is_flag=True, help="Deferred tasks also take slots.")
@output_option
def set_pool(pool: str, slots: int, description: str, include_deferred: bool, output: str) -> None:
    """Create or change a pool; -1 slots = unlimited."""
    from tradewind.wire import commands as c

    if description.startswith("--"):
        raise click.NoSuchOption(description, possibilities=["--include-deferred", "--output"])
    settings = load()
    if not description and database_exists(settings):
        with reading(settings) as store:
            description = next((row.description or "" for row in store.pools() if row.name == pool), "")
    client = command_client(settings)
    client.call(c.SetPool(pool, slots, description or None, include_deferred))
    if is_airflow():
        click.echo(f"Pool {pool} created")
    else:
        _show(pool, output)


@pools.command()
@click.argument("pool", shell_complete=complete_pools)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(pool: str, yes: bool) -> None:
    """Delete a pool."""
    from tradewind.wire import commands as c

    settings = load()
    if database_exists(settings):
        with reading(settings) as store:
            store.pool_details(pool)
    confirm(f"Really delete the pool {pool}?", yes)
    command_client().call(c.DeletePool(pool))
    say(f"The pool {pool} is deleted.", f"Pool {pool} deleted")


@pools.command("import")
@click.argument("file", type=click.File("rb"))
@output_option
def import_pools(file: BinaryIO, output: str) -> None:
    """Import pools from a file: {"name": {"slots": 5, "description": "…", "include_deferred": false}}."""
    from tradewind.wire import commands as c

    wanted = {name: _checked(file.name, name, value) for name, value in read_mapping(file, "pools").items()}
    client = command_client()
    for name, parts in wanted.items():
        client.call(c.SetPool(name, **parts))
    rows = [{"pool": name, **parts} for name, parts in wanted.items()]
    if is_airflow():
        click.echo(f"Uploaded {len(rows)} pool(s)")
    elif output == "table":
        click.echo(f"Imported {counted(len(rows), 'pool')}: {', '.join(wanted)}.")
    else:
        show(rows, output, ("pool", "slots", "description", "include_deferred"))


def _checked(file: str, name: str, value: Any) -> dict[str, Any]:
    """The fields of a pool from a file. Raises click.ClickException if they are wrong."""
    known = ("slots", "description", "include_deferred")
    if not isinstance(value, dict) or not isinstance(value.get("slots"), int) or isinstance(value["slots"], bool):
        raise click.ClickException(f"{file}: the pool {name!r} needs a field slots with an integer; nothing was imported")
    for field in value:
        if field not in known:
            hint = did_you_mean(field, known)
            raise click.ClickException(f"{file}: a pool has no field {field!r} (pool {name!r}).{hint} Nothing was imported")
    if value["slots"] < -1:
        raise click.ClickException(
            f"{file}: the pool {name!r} has {value['slots']} slots; the smallest value is -1 (unlimited). Nothing was imported"
        )
    return {
        "slots": value["slots"],
        "description": value.get("description"),
        "include_deferred": bool(value.get("include_deferred")),
    }


@pools.command("export")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@format_option
def export_pools(file: str, file_format: str | None) -> None:
    """Export all pools to a file; `-` is stdout."""
    with reading() as store:
        rows = store.pools()
    found = {
        row.name: {"slots": row.slots, "description": row.description or "", "include_deferred": row.include_deferred}
        for row in rows
    }
    write_mapping(file, found, "pools", file_format)
