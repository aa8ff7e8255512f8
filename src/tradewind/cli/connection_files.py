"""`tradewind connections import|export|test|create-default-connections`."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from typing import Any, BinaryIO

import click

from tradewind.cli.common import command_client, reading
from tradewind.cli.completion import complete_connections
from tradewind.cli.data_files import format_option, read_mapping, write_mapping
from tradewind.model.errors import ConfigError, NotFound, NotYetSupported, did_you_mean
from tradewind.model.rows import ConnectionRow
from tradewind.settings import Settings, load

PARTS = ("conn_type", "description", "host", "login", "password", "schema", "port", "extra")
_PORTS = {
    "ftp": 21,
    "ssh": 22,
    "sftp": 22,
    "smtp": 25,
    "http": 80,
    "https": 443,
    "mssql": 1433,
    "oracle": 1521,
    "mysql": 3306,
    "postgres": 5432,
    "postgresql": 5432,
    "redis": 6379,
    "elasticsearch": 9200,
    "mongo": 27017,
}
_CONNECT_TIMEOUT_SECONDS = 5.0


def decrypted(settings: Settings, row: ConnectionRow) -> dict[str, Any]:
    """The fields of a connection, with password and extra decrypted; a field that is not set is None."""
    from tradewind.store.crypto import open_vault

    found: dict[str, Any] = dict(row._asdict())
    for name in ("password", "extra"):
        if found[name] is not None:
            vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key)
            found[name] = vault.decrypt(found[name].decode(), f"connection {row.conn_id!r}")
    return {name: found[name] for name in PARTS}


def parts_of(conn_id: str, written: Any) -> dict[str, Any]:
    """The fields of a connection that is written as a URI, as JSON, or as an object; fields that are not set are left out.

    Raises:
        AirflowException: `written` is not a connection.
    """
    from tradewind.sdk.variables import Connection  # lazy import: it parses all written forms of connections

    first = written[0] if isinstance(written, list) and written else written
    read = Connection.from_text(first, conn_id) if isinstance(first, str) else Connection.from_json(first, conn_id)
    return {name: getattr(read, name) for name in PARTS if getattr(read, name) is not None}


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--overwrite", is_flag=True, help="Replace existing connections. Without this option they stay as they are.")
def import_connections(file: BinaryIO, overwrite: bool) -> int:
    """Import connections from a .json, .yaml or .env file, which has a URI or an object for each connection id."""
    from tradewind.wire import commands as c

    wanted = {}
    for conn_id, written in read_mapping(file, "connections").items():
        try:
            wanted[conn_id] = parts_of(conn_id, written)
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
    for conn_id, parts in wanted.items():
        if conn_id in known and not overwrite:
            click.echo(f"Connection {conn_id} exists and was not changed (--overwrite replaces it).")
            continue
        client.call(c.SetConnection(conn_id, replace=overwrite, **parts))
        click.echo(f"Connection {conn_id} is {'replaced' if conn_id in known else 'stored'}.")
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
        parts = decrypted(settings, row)
        if serialization_format == "uri" or (as_text and serialization_format is None):
            found[row.conn_id] = _uri(row.conn_id, parts)
        else:
            found[row.conn_id] = json.dumps(parts, ensure_ascii=False) if as_text else parts
    write_mapping(file, found, "connections", file_format)


def _uri(conn_id: str, parts: dict[str, Any]) -> str:
    from tradewind.sdk.variables import Connection  # lazy import: see `parts_of`

    return Connection.from_json({name: value for name, value in parts.items() if value is not None}, conn_id).get_uri()


@click.command("test")
@click.argument("conn_id", shell_complete=complete_connections)
def test_connection(conn_id: str) -> None:
    """Test whether a connection works. The exit code is 1 if it does not.

    For databases, web servers and mail servers the hook of the connection type connects and logs in. For other types the command
    tests only whether the host can be reached.
    """
    settings = load()
    with reading(settings) as store:
        row = store.connection(conn_id)
        if row is None:
            names = [one.conn_id for one in store.connections()]
            raise NotFound(f"there is no connection {conn_id!r}.{did_you_mean(conn_id, names)}")
    if row.conn_type == "sqlite":
        path = row.host or row.schema or ":memory:"
        try:
            sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute("SELECT 1 FROM sqlite_master")
        except sqlite3.Error as error:
            raise click.ClickException(f"the database {path} of connection {conn_id} cannot be read: {error}") from None
        click.echo(f"Connection {conn_id}: the database {path} can be read.")
        return
    result = _test_with_hook(settings, row)
    if result is not None:
        works, sentence = result
        if not works:
            raise click.ClickException(f"connection {conn_id}: {sentence}")
        click.echo(f"Connection {conn_id}: {sentence}.")
        return
    host, port = row.host, row.port or _PORTS.get(row.conn_type)
    if not host or not port:
        missing = "host" if not host else f"port, and the type {row.conn_type!r} has no default port"
        raise click.ClickException(f"connection {conn_id} cannot be tested: it has no {missing}")
    host = host.partition("://")[2] or host
    try:
        with socket.create_connection((host, port), _CONNECT_TIMEOUT_SECONDS):
            pass
    except OSError as error:
        raise click.ClickException(f"connection {conn_id}: {host}:{port} cannot be reached: {error}") from None
    click.echo(f"Connection {conn_id}: {host}:{port} can be reached. The login was not tested.")


def _test_with_hook(settings: Settings, row: ConnectionRow) -> tuple[bool, str] | None:
    """Test with the hook of the connection type: (works, sentence). None: there is no hook, or its library is missing (printed)."""
    from tradewind.sdk.variables import Connection  # lazy import: see `parts_of`

    parts = {name: value for name, value in decrypted(settings, row).items() if value is not None}
    connection = Connection.from_json(parts, row.conn_id)
    # hooks read connections from the environment first
    name = f"TRADEWIND_CONN_{row.conn_id.upper()}"
    before = os.environ.get(name)
    os.environ[name] = connection.as_json()
    try:
        hook = connection.get_hook()
        if not hasattr(hook, "test_connection"):
            return None
        works, sentence = hook.test_connection()
    except NotYetSupported:
        return None
    except ConfigError as error:
        click.echo(f"{error}; testing only whether the host can be reached.", err=True)
        return None
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
    if not works and "is not installed" in sentence:
        click.echo(f"{sentence}; testing only whether the host can be reached.", err=True)
        return None
    return bool(works), " ".join(str(sentence).split())


@click.command("create-default-connections")
def create_default_connections() -> None:
    """Do nothing: Tradewind has no default connections, which would point to hosts that you do not have."""
    click.echo("Tradewind has no default connections. Add the ones you need: tradewind connections add. Nothing was changed.")
