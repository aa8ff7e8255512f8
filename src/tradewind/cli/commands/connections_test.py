"""`tradewind connections test`."""

from __future__ import annotations

import os
import socket
import sqlite3
from typing import TYPE_CHECKING

import click

from tradewind.cli.completers import complete_connections
from tradewind.cli.connection_fields import fields_as_tasks_read, to_connection
from tradewind.model.errors import ConfigError, NotYetSupported
from tradewind.settings import load

if TYPE_CHECKING:
    from tradewind.sdk.variables import Connection

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


@click.command("test")
@click.argument("conn_id", shell_complete=complete_connections)
def test_connection(conn_id: str) -> None:
    """Test whether a connection works. The exit code is 1 if it does not work.

    For databases, web servers and mail servers the hook of the connection type connects and logs in. For other types the command
    tests only whether the host can be reached.
    """
    fields, _ = fields_as_tasks_read(load(), conn_id)
    conn_type = fields["conn_type"] or ""
    if conn_type == "sqlite":
        path = fields["host"] or fields["schema"] or ":memory:"
        try:
            sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute("SELECT 1 FROM sqlite_master")
        except sqlite3.Error as error:
            raise click.ClickException(f"the database {path} of connection {conn_id} cannot be read: {error}") from None
        click.echo(f"Connection {conn_id}: the database {path} can be read.")
        return
    result = _test_with_hook(to_connection(conn_id, fields))
    if result is not None:
        works, sentence = result
        if not works:
            raise click.ClickException(f"connection {conn_id}: {sentence}")
        click.echo(f"Connection {conn_id}: {sentence}.")
        return
    host, port = fields["host"], fields["port"] or _PORTS.get(conn_type)
    if not host or not port:
        missing = "host" if not host else f"port, and the type {conn_type!r} has no default port"
        raise click.ClickException(f"connection {conn_id} cannot be tested: it has no {missing}")
    host = host.partition("://")[2] or host
    try:
        with socket.create_connection((host, port), _CONNECT_TIMEOUT_SECONDS):
            pass
    except OSError as error:
        raise click.ClickException(f"connection {conn_id}: {host}:{port} cannot be reached: {error}") from None
    click.echo(f"Connection {conn_id}: {host}:{port} can be reached. The login was not tested.")


def _test_with_hook(connection: Connection) -> tuple[bool, str] | None:
    """Test with the hook of the connection type: (works, sentence). None: there is no hook, or its library is missing (printed)."""
    # hooks read connections from the environment first
    name = f"TRADEWIND_CONN_{str(connection.conn_id).upper()}"
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
