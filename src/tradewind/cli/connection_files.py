"""`tradewind connections import|export|test|create-default-connections`."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from typing import Any, BinaryIO

import click

from tradewind.cli.common import door, reading
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
_PATIENCE_SECONDS = 5.0


def decrypted(settings: Settings, row: ConnectionRow) -> dict[str, Any]:
    """A connection's parts in plain text; those that are not set are None."""
    from tradewind.store.crypto import open_vault

    found: dict[str, Any] = dict(row._asdict())
    for name in ("password", "extra"):
        if found[name] is not None:
            vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key)
            found[name] = vault.decrypt(found[name].decode(), f"connection {row.conn_id!r}")
    return {name: found[name] for name in PARTS}


def parts_of(conn_id: str, written: Any) -> dict[str, Any]:
    """The parts of a connection that is written as a URI, as JSON, or as an object of its parts.

    Raises:
        AirflowException: it cannot be read.
    """
    from tradewind.sdk.variables import Connection  # lazy door: one reader of such texts in the house

    first = written[0] if isinstance(written, list) and written else written
    read = Connection.from_text(first, conn_id) if isinstance(first, str) else Connection.from_json(first, conn_id)
    return {name: getattr(read, name) for name in PARTS if getattr(read, name) is not None}


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--overwrite", is_flag=True, help="Replace connections that exist; else they are left alone.")
def import_connections(file: BinaryIO, overwrite: bool) -> int:
    """Read connections from a .json, .yaml or .env file: a URI, or an object of its parts, for each id."""
    wanted = {}
    for conn_id, written in read_mapping(file, "connections").items():
        try:
            wanted[conn_id] = parts_of(conn_id, written)
        except Exception as error:  # of many kinds: the file is somebody's own writing
            told = f"the connection {conn_id!r} cannot be read: {error}; nothing was imported"
            raise click.ClickException(f"{file.name}: {told}") from None
        if not wanted[conn_id].get("conn_type"):
            raise click.ClickException(f"{file.name}: the connection {conn_id!r} has no conn_type; nothing was imported")
    settings = load()
    way = door(settings)
    known: set[str] = set()
    try:
        with reading(settings) as store:
            known = {row.conn_id for row in store.connections()}
    except NotFound:  # no database yet: the first command makes it
        pass
    for conn_id, parts in wanted.items():
        if conn_id in known and not overwrite:
            click.echo(f"Connection {conn_id} exists and is left alone (--overwrite replaces it).")
            continue
        way.call("set_connection", conn_id=conn_id, replace=overwrite, **parts)
        click.echo(f"Connection {conn_id} is {'replaced' if conn_id in known else 'stored'}.")
    return 0


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@format_option
@click.option(
    "--serialization-format", type=click.Choice(["json", "uri"]), help="Each one as an object (the default), or as a URI."
)
def export_connections(file: str, file_format: str | None, serialization_format: str | None) -> None:
    """Write all connections, decrypted, to a file that only you may read; `-` is stdout."""
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
    from tradewind.sdk.variables import Connection  # lazy door: see `parts_of`

    return Connection.from_json({name: value for name, value in parts.items() if value is not None}, conn_id).get_uri()


@click.command("test")
@click.argument("conn_id", shell_complete=complete_connections)
def test_connection(conn_id: str) -> None:
    """Does what the connection names answer? The exit code is 1 when it does not.

    Databases, web servers and mail servers are asked as a task's hook would ask them, with the login; of others, only whether
    the host can be reached is tried.
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
    told = _by_hook(settings, row)
    if told is not None:
        answers, sentence = told
        if not answers:
            raise click.ClickException(f"connection {conn_id}: {sentence}")
        click.echo(f"Connection {conn_id}: {sentence}.")
        return
    host, port = row.host, row.port or _PORTS.get(row.conn_type)
    if not host or not port:
        lack = "host" if not host else f"port, and {row.conn_type!r} has none by nature"
        raise click.ClickException(f"connection {conn_id} cannot be tested: it has no {lack}")
    host = host.partition("://")[2] or host
    try:
        with socket.create_connection((host, port), _PATIENCE_SECONDS):
            pass
    except OSError as error:
        raise click.ClickException(f"connection {conn_id}: {host}:{port} cannot be reached: {error}") from None
    click.echo(f"Connection {conn_id}: {host}:{port} can be reached. A login was not tried.")


def _by_hook(settings: Settings, row: ConnectionRow) -> tuple[bool, str] | None:
    """What the hook of its type says; None where there is none, or its library is missing, which is said."""
    from tradewind.sdk.variables import Connection  # lazy door: see `parts_of`

    parts = {name: value for name, value in decrypted(settings, row).items() if value is not None}
    connection = Connection.from_json(parts, row.conn_id)
    # hooks look into the environment first
    name = f"TRADEWIND_CONN_{row.conn_id.upper()}"
    before = os.environ.get(name)
    os.environ[name] = connection.as_json()
    try:
        hook = connection.get_hook()
        if not hasattr(hook, "test_connection"):
            return None
        answers, sentence = hook.test_connection()
    except NotYetSupported:
        return None
    except ConfigError as error:
        click.echo(f"{error}; only the host is tried.", err=True)
        return None
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
    if not answers and "is not installed" in sentence:
        click.echo(f"{sentence}; only the host is tried.", err=True)
        return None
    return bool(answers), " ".join(str(sentence).split())


@click.command("create-default-connections")
def create_default_connections() -> None:
    """Does nothing: there are no default connections here, so that nothing points to hosts that you do not have."""
    click.echo("There are no default connections: add those that you need (tradewind connections add). Nothing was changed.")
