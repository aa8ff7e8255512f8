"""Copies a store from a SQLite file into an empty PostgreSQL database, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

from tradewind.model.database_urls import client_url
from tradewind.model.errors import StoreError
from tradewind.observe.failpoints import fp
from tradewind.store.sql.dialects.postgres import CONNECT_SECONDS, SCHEMA, not_connected
from tradewind.store.sql.dialects.sqlite import SqliteEngine
from tradewind.store.sql.engine import Engine, Row

NOT_COPIED = ("scheduler_lease",)
"""Tables that describe the database itself."""


def copy_store(source: Engine, url: str) -> dict[str, int]:
    """Copy all rows. Returns table → number of rows.

    Args:
        source: the SQLite database; no other process writes to it.
        url: a database with the same schema and only the rows of the migrations.

    Raises:
        StoreError: nothing was copied.
    """
    assert isinstance(source, SqliteEngine)
    tables = [
        name
        for (name,) in source.rows(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
        )
        if name not in NOT_COPIED
    ]
    try:
        target = psycopg.connect(client_url(url), connect_timeout=CONNECT_SECONDS, application_name="tradewind db move")
    except psycopg.Error as error:
        raise not_connected(error, "of the target") from None
    try:
        with target:  # commits at the end, rolls back after an error
            cursor = target.cursor()
            cursor.execute("SET client_encoding TO 'UTF8'")
            cursor.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(SCHEMA)))
            copied = {}
            for table in tables:
                copied[table] = _copy_table(source, cursor, table)
                fp("move.table_copied")
            _move_sequences(source, cursor)
            fp("move.before_commit")
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        raise StoreError(f"the rows cannot be copied ({text}); nothing was copied") from error
    finally:
        target.close()
    return copied


def _copy_table(source: SqliteEngine, cursor: Any, table: str) -> int:
    name = sql.Identifier(table)
    columns = [row[1] for row in source.rows(f"PRAGMA table_info({table})")]
    cursor.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND atttypid = 'bytea'::regtype",
        (f"{SCHEMA}.{table}",),
    )
    binary = {columns.index(row[0]) for row in cursor.fetchall()}
    cursor.execute(sql.SQL("DELETE FROM {}").format(name))
    number = 0
    fields = sql.SQL(", ").join(map(sql.Identifier, columns))
    with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(name, fields)) as copy:
        for row in _rows(source, table, columns):
            copy.write_row([_value(value, place in binary) for place, value in enumerate(row)])
            number += 1
    cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(name))
    ((found,),) = cursor.fetchall()
    if found != number:
        raise StoreError(f"the table {table} has {found} rows after {number} were copied; nothing was copied")
    return number


def _rows(source: SqliteEngine, table: str, columns: list[str]) -> Iterator[Row]:
    fields = ", ".join(f'"{column}"' for column in columns)
    yield from source.db.execute(f'SELECT {fields} FROM "{table}"')


def _value(value: Any, binary: bool) -> Any:
    if isinstance(value, str):
        # SQLite keeps the type of each value, and a NUL in a text; PostgreSQL has the type of the column, and no NUL
        return value.encode() if binary else value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return value


def _move_sequences(source: SqliteEngine, cursor: Any) -> None:
    """Set the next number of each table after all numbers that were ever used, including those of deleted rows."""
    given: dict[str, int] = dict(source.rows("SELECT name, seq FROM sqlite_sequence"))
    cursor.execute(
        """SELECT c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
           JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = %s AND a.attname = 'id' AND a.attidentity <> ''""",
        (SCHEMA,),
    )
    for (table,) in cursor.fetchall():
        cursor.execute(sql.SQL("SELECT coalesce(max(id), 0) FROM {}").format(sql.Identifier(table)))
        ((newest,),) = cursor.fetchall()
        last = max(newest, given.get(table, 0))
        if last:
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", (f"{SCHEMA}.{table}", last))
