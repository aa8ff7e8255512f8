"""Connections as dicts of their fields, for the `connections` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tradewind.cli.common import reading
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.settings import Settings

if TYPE_CHECKING:
    from tradewind.model.rows import ConnectionRow
    from tradewind.sdk.variables import Connection
    from tradewind.store.port import Reader

FIELDS = ("conn_type", "description", "host", "login", "password", "schema", "port", "extra")
_ENCRYPTED = ("password", "extra")
_HIDDEN = "***"


def need_connection(store: Reader, conn_id: str) -> ConnectionRow:
    """The row of a connection.

    Raises:
        NotFound: there is no such connection; the message names a similar id.
    """
    row = store.connection(conn_id)
    if row is None:
        names = [one.conn_id for one in store.connections()]
        raise NotFound(f"there is no connection {conn_id!r}.{did_you_mean(conn_id, names)}")
    return row


def fields_as_tasks_read(settings: Settings, conn_id: str) -> tuple[dict[str, Any], str | None]:
    """The fields of the connection that tasks get, decrypted, and the place that has it, None for the database.

    Raises:
        NotFound: there is no such connection; the message names a similar id.
        AirflowException: the environment variable is not a connection.
    """
    from tradewind.sdk.variables import connection_outside_database  # lazy import: it parses all written forms of connections

    outside = connection_outside_database(conn_id)
    if outside is not None:
        connection, place = outside
        return {name: getattr(connection, name) for name in FIELDS}, place
    with reading(settings) as store:
        row = need_connection(store, conn_id)
    return decrypted_fields(settings, row), None


def decrypted_fields(settings: Settings, row: ConnectionRow) -> dict[str, Any]:
    """The fields of a connection, with password and extra decrypted; a field that is not set is None."""
    from tradewind.store.crypto import open_vault

    fields: dict[str, Any] = {name: getattr(row, name) for name in FIELDS}
    for name in _ENCRYPTED:
        if fields[name] is not None:
            vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key)
            fields[name] = vault.decrypt(fields[name].decode(), f"connection {row.conn_id!r}")
    return fields


def masked_fields(row: ConnectionRow) -> dict[str, Any]:
    """The fields of a connection, with `***` for password and extra if they are set."""
    return masked({name: getattr(row, name) for name in FIELDS})


def masked(fields: dict[str, Any]) -> dict[str, Any]:
    """The same fields, with `***` for password and extra if they are set."""
    return {**fields, **{name: _HIDDEN for name in _ENCRYPTED if fields[name] is not None}}


def given_fields(connection: Connection) -> dict[str, Any]:
    """The fields of a connection that are set."""
    return {name: getattr(connection, name) for name in FIELDS if getattr(connection, name) is not None}


def parse_fields(conn_id: str, written: Any) -> dict[str, Any]:
    """The fields of a connection that is written as a URI, as JSON, or as an object; fields that are not set are left out.

    Raises:
        AirflowException: `written` is not a connection.
    """
    from tradewind.sdk.variables import Connection  # lazy import: it parses all written forms of connections

    first = written[0] if isinstance(written, list) and written else written
    read = Connection.from_text(first, conn_id) if isinstance(first, str) else Connection.from_json(first, conn_id)
    return given_fields(read)


def to_connection(conn_id: str, fields: dict[str, Any]) -> Connection:
    """The connection with these fields; fields that are None are left out."""
    from tradewind.sdk.variables import Connection  # lazy import: only needed to write URIs and to test connections

    return Connection.from_json({name: value for name, value in fields.items() if value is not None}, conn_id)
