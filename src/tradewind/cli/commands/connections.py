"""`tradewind connections …`. Passwords and extras are encrypted in the database and hidden unless requested."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.airflow_output import is_airflow, say
from tradewind.cli.arguments import json_object
from tradewind.cli.command_groups import LazyCommand, LazyGroup
from tradewind.cli.common import command_client, reading
from tradewind.cli.completers import complete_connections
from tradewind.cli.connection_fields import (
    FIELDS,
    decrypted_fields,
    fields_as_tasks_read,
    given_fields,
    masked,
    masked_fields,
)
from tradewind.cli.output import output_option, show
from tradewind.model.errors import did_you_mean
from tradewind.settings import Settings, load

if TYPE_CHECKING:
    from tradewind.model.rows import ConnectionRow

_COLUMNS = ("conn_id", "conn_type", "description", "host", "port", "schema", "login", "password", "extra")


class Connections(LazyGroup):
    lazy = {
        "import": LazyCommand("connections_import:import_connections", "Import connections from a file."),
        "export": LazyCommand("connections_import:export_connections", "Export all connections, decrypted, to a file."),
        "test": LazyCommand("connections_test:test_connection", "Test whether a connection works."),
    }


@click.group(cls=Connections)
def connections() -> None:
    """Manage connections: addresses and credentials that tasks use."""


def _shown(settings: Settings, row: ConnectionRow, show_secrets: bool) -> dict[str, Any]:
    fields = decrypted_fields(settings, row) if show_secrets else masked_fields(row)
    return {"conn_id": row.conn_id, **fields}


@connections.command("list")
@click.option("--show-values", is_flag=True, help="Decrypt and show passwords and extras.")
@click.option("--hide-sensitive", is_flag=True, help="Hide passwords and extras, even with --show-values.")
@click.option("--conn-id", help="Only the connection with this id.")
@output_option
def list_connections(show_values: bool, hide_sensitive: bool, conn_id: str | None, output: str) -> None:
    """List all stored connections.

    Connections of the environment (AIRFLOW_CONN_ID) are named below the list. Those of a secrets backend are not listed.
    """
    from tradewind.sdk.variables import CONNECTION_PREFIXES, in_environment  # lazy import: it parses all written forms

    settings = load()
    with reading(settings) as store:
        rows = [row for row in store.connections() if conn_id in (None, row.conn_id)]
    shown = show_values and not hide_sensitive
    if is_airflow() and not show_values and conn_id is None:
        found: list[dict[str, Any]] = [{"conn_id": row.conn_id, "conn_type": row.conn_type} for row in rows]
    else:
        found = [_shown(settings, row, shown) for row in rows]
    show(found, output, _COLUMNS, empty="There are no connections in the database.")
    if output == "table" and (names := in_environment(CONNECTION_PREFIXES)):
        click.echo(f"Connections of the environment: {', '.join(names)}", err=True)


@connections.command()
@click.argument("conn_id", shell_complete=complete_connections)
@click.option("--show-values", is_flag=True, help="Decrypt and show password and extra.")
@output_option
def get(conn_id: str, show_values: bool, output: str) -> None:
    """Show one connection, as tasks read it: from the secrets backend, the environment or the database."""
    fields, place = fields_as_tasks_read(load(), conn_id)
    if place is not None:
        click.echo(f"The connection is from {place}.", err=True)
    show([{"conn_id": conn_id, **(fields if show_values else masked(fields))}], output, _COLUMNS)


@connections.command()
@click.argument("conn_id")
@click.option("--conn-uri", help="The whole connection as type://login:password@host:port/schema?extra=…")
@click.option("--conn-json", help="The whole connection as a JSON object.")
@click.option("--conn-type", help="Type: postgres, http, …")
@click.option("--conn-description", help="Description.")
@click.option("--conn-host", help="Host name or address.")
@click.option("--conn-login", help="User name.")
@click.option("--conn-password", help="Password; `-` prompts for it, so that it is not in the shell's history.")
@click.option("--conn-schema", help="Schema or database.")
@click.option("--conn-port", type=click.IntRange(0, 65535), help="Port.")
@click.option("--conn-extra", help="Extra fields, as JSON.")
@click.option("--overwrite", is_flag=True, help="Replace the connection if it exists.")
def add(
    conn_id: str,
    conn_uri: str | None,
    conn_json: str | None,
    conn_type: str | None,
    conn_description: str | None,
    conn_host: str | None,
    conn_login: str | None,
    conn_password: str | None,
    conn_schema: str | None,
    conn_port: int | None,
    conn_extra: str | None,
    overwrite: bool,
) -> None:
    """Add a connection."""
    from tradewind.wire import commands as c

    single: dict[str, Any] = {
        "conn_type": conn_type,
        "host": conn_host,
        "login": conn_login,
        "password": conn_password,
        "schema": conn_schema,
        "port": conn_port,
        "extra": conn_extra,
    }
    given = {name: value for name, value in single.items() if value is not None}
    if sum([conn_uri is not None, conn_json is not None, bool(given)]) != 1:
        raise click.UsageError("give one of --conn-uri, --conn-json, or the single fields (--conn-type, --conn-host, …)")
    if conn_uri is not None:
        given = _from_uri(conn_id, conn_uri)
    elif conn_json is not None:
        given = _from_json(conn_json)
    if not given.get("conn_type"):
        raise click.UsageError("a connection needs a type (--conn-type)")
    if given.get("password") == "-":
        given["password"] = click.prompt("Password", hide_input=True, err=True)
    if given.get("extra") is not None:
        _check_extra(given["extra"])
    given.setdefault("description", conn_description)
    command_client().call(c.SetConnection(conn_id, replace=overwrite, **given))
    say(f"Connection {conn_id} is stored.", f"Successfully added `conn_id`={conn_id}")


def _from_uri(conn_id: str, uri: str) -> dict[str, Any]:
    from tradewind.sdk.variables import Connection  # lazy import: it parses all written forms of connections

    return given_fields(Connection.from_uri(uri, conn_id))


def _from_json(text: str) -> dict[str, Any]:
    found = json_object(text, "--conn-json") or {}
    for name in found:
        if name not in FIELDS:
            raise click.BadParameter(
                f"a connection has no field {name!r}.{did_you_mean(name, FIELDS)}", param_hint="--conn-json"
            )
    if isinstance(found.get("extra"), dict):
        found["extra"] = json.dumps(found["extra"], ensure_ascii=False)
    return found


def _check_extra(extra: str) -> None:
    try:
        json.loads(extra)
    except ValueError as error:
        raise click.BadParameter(f"the extra is not JSON: {error}", param_hint="--conn-extra") from None


@connections.command()
@click.argument("conn_id", shell_complete=complete_connections)
def delete(conn_id: str) -> None:
    """Delete a connection."""
    from tradewind.wire import commands as c

    command_client().call(c.DeleteConnection(conn_id))
    say(f"Connection {conn_id} is deleted.", f"Successfully deleted connection with `conn_id`={conn_id}")


@connections.command("create-default-connections")
def create_default_connections() -> None:
    """Add the connections that a new database of Airflow has (http_default, postgres_default …).

    They are examples, and most of them point to hosts that do not exist. Connections that exist are not changed.
    """
    from tradewind.sdk.default_connections import DEFAULT_CONNECTIONS
    from tradewind.sdk.variables import Connection  # lazy import: it parses all written forms of connections
    from tradewind.wire import commands as c

    with reading(load()) as store:
        known = {row.conn_id for row in store.connections()}
    missing = {name: parts for name, parts in DEFAULT_CONNECTIONS.items() if name not in known}
    client = command_client()
    for name, parts in missing.items():
        client.call(c.SetConnection(name, **given_fields(Connection(name, **parts))))
    say(
        f"{len(missing)} default connections are stored; {len(DEFAULT_CONNECTIONS) - len(missing)} existed and are unchanged.",
        f"Successfully added {len(missing)} default connections",
    )
