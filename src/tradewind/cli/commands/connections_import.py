"""`tradewind connections import` and `export`."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import click

from tradewind.cli.airflow_output import say
from tradewind.cli.common import command_client, reading
from tradewind.cli.connection_fields import decrypted_fields, parse_fields, to_connection
from tradewind.cli.data_files import format_option, read_mapping, write_mapping
from tradewind.model.errors import NotFound
from tradewind.settings import load


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--overwrite", is_flag=True, help="Replace existing connections. Without this option they stay as they are.")
def import_connections(file: BinaryIO, overwrite: bool) -> int:
    """Import connections from a .json, .yaml or .env file, which has a URI or an object for each connection id."""
    from tradewind.wire import commands as c

    wanted = {}
    for conn_id, written in read_mapping(file, "connections").items():
        try:
            wanted[conn_id] = parse_fields(conn_id, written)
        except Exception as error:  # errors of any type: the user wrote the file
            problem = f"the connection {conn_id!r} cannot be read: {error}; nothing was imported"
            raise click.ClickException(f"{file.name}: {problem}") from None
        if not wanted[conn_id].get("conn_type"):
            raise click.ClickException(f"{file.name}: the connection {conn_id!r} has no conn_type; nothing was imported")
    settings = load()
    client = command_client(settings)
    known: set[str] = set()
    try:
        with reading(settings) as store:
            known = {row.conn_id for row in store.connections()}
    except NotFound:  # no database yet: the first command creates it
        pass
    for conn_id, fields in wanted.items():
        if conn_id in known and not overwrite:
            say(
                f"Connection {conn_id} exists and was not changed (--overwrite replaces it).",
                f"Could not import connection {conn_id}: connection already exists.",
            )
            continue
        client.call(c.SetConnection(conn_id, replace=overwrite, **fields))
        say(f"Connection {conn_id} is {'replaced' if conn_id in known else 'stored'}.", f"Imported connection {conn_id}")
    return 0


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@format_option
@click.option(
    "--serialization-format",
    type=click.Choice(["json", "uri"]),
    help="Write each connection as an object (the default) or as a URI.",
)
def export_connections(file: str, file_format: str | None, serialization_format: str | None) -> None:
    """Export all connections, decrypted, to a file that only you can read; `-` is stdout."""
    settings = load()
    with reading(settings) as store:
        rows = store.connections()
    as_text = file_format == "env" or file.endswith(".env")
    found: dict[str, Any] = {}
    for row in rows:
        fields = decrypted_fields(settings, row)
        if serialization_format == "uri" or (as_text and serialization_format is None):
            found[row.conn_id] = to_connection(row.conn_id, fields).get_uri()
        else:
            found[row.conn_id] = json.dumps(fields, ensure_ascii=False) if as_text else fields
    write_mapping(file, found, "connections", file_format)
