"""Read-only access to the database of an Airflow: SQLite, PostgreSQL or MySQL, through their plain drivers.

All statements read one snapshot. They name only columns that the database has, because each release of Airflow has others.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tradewind.model.errors import NotFound, Unreachable, WrongArgument

ROWS_AT_ONCE = 2000
CONNECT_SECONDS = 10
EXTRA = "pip install 'tradewind[import-airflow]'"

Row = dict[str, Any]


class AirflowDatabase:
    """One snapshot of a database. Statements have `?` as placeholders.

    Args:
        connection: a connection of a driver with the interface of PEP 249.
        mark: the placeholder of the driver.
        quote: the quotation mark of names.
        columns_of: statement that lists the columns of a table.
    """

    def __init__(self, connection: Any, mark: str, quote: str, columns_of: str) -> None:
        self._connection = connection
        self._mark = mark
        self._quote = quote
        self._columns_of = columns_of
        self._columns: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; empty: there is no such table."""
        if table not in self._columns:
            self._columns[table] = frozenset(row[0] for row in self._execute(self._columns_of, (table,)))
        return self._columns[table]

    def rows(
        self, table: str, columns: Sequence[str], where: str = "", parameters: Sequence[Any] = (), order: str = ""
    ) -> Iterator[Row]:
        """The rows of a table; a column that this release does not have is None. Empty if there is no such table.

        Args:
            where: a condition, whose names are quoted by `name`.
            order: names of columns, separated by commas.
        """
        known = self.columns(table)
        if not known:
            return
        present = [column for column in columns if column in known]
        sql = f"SELECT {', '.join(map(self.name, present))} FROM {self.name(table)}"
        sql += f" WHERE {where}" if where else ""
        sql += f" ORDER BY {order}" if order else ""
        absent = dict.fromkeys(columns)
        for row in self._execute(sql, parameters):
            yield {**absent, **dict(zip(present, row, strict=True))}

    def name(self, name: str) -> str:
        """A quoted name."""
        return f"{self._quote}{name}{self._quote}"

    def _execute(self, sql: str, parameters: Sequence[Any]) -> Iterator[Sequence[Any]]:
        cursor = self._connection.cursor()
        try:
            cursor.execute(sql.replace("?", self._mark), tuple(parameters))
            while part := cursor.fetchmany(ROWS_AT_ONCE):
                yield from part
        finally:
            cursor.close()

    def close(self) -> None:
        self._connection.close()


def open_database(url: str) -> AirflowDatabase:
    """Open the database that a SQLAlchemy URL names, as in `sql_alchemy_conn`. A path of a SQLite file is accepted, too.

    Raises:
        WrongArgument: the text is not such a URL. The message does not repeat it, because it may contain a password.
        NotFound: the SQLite file, or the driver, does not exist.
        Unreachable: the server does not answer, or refuses the login.
    """
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[0]
    if scheme == "sqlite" or "://" not in url:
        return _sqlite(url)
    query = dict(parse_qsl(parts.query))
    found: Mapping[str, Any] = {
        "host": parts.hostname or "localhost",
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": parts.path.lstrip("/"),
    }
    if scheme in ("postgresql", "postgres"):
        return _postgres(found, parts.port, query)
    if scheme in ("mysql", "mariadb"):
        return _mysql(found, parts.port, query)
    raise WrongArgument(
        f"the database URL begins with {scheme!r}; give sqlite:////path/airflow.db, postgresql://user:password@host/airflow "
        "or mysql://user:password@host/airflow"
    )


def _sqlite(url: str) -> AirflowDatabase:
    path = url.partition("://")[2].partition("?")[0]
    path = path[1:] if "://" in url else url  # sqlite:////absolute, sqlite:///relative
    if not os.path.isfile(path):
        raise NotFound(f"there is no SQLite file {path!r}; give sqlite:////path/airflow.db")
    connection = sqlite3.connect(
        f"file:{os.path.abspath(path)}?mode=ro", uri=True, timeout=CONNECT_SECONDS, isolation_level=None
    )
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    except sqlite3.DatabaseError as error:
        connection.close()
        raise WrongArgument(f"{path!r} is not a SQLite database: {error}") from None
    return AirflowDatabase(connection, "?", '"', "SELECT name FROM pragma_table_info(?)")


def _postgres(found: Mapping[str, Any], port: int | None, query: dict[str, str]) -> AirflowDatabase:
    try:
        import psycopg  # lazy import: an optional driver
    except ImportError:
        raise NotFound(f"reading PostgreSQL needs the package psycopg: {EXTRA}") from None
    options = {name: value for name, value in query.items() if name in ("sslmode", "sslrootcert", "host", "options")}
    arguments = {
        "host": found["host"],
        "port": port or 5432,
        "user": found["user"] or None,
        "password": found["password"] or None,
        "dbname": found["database"],
        "connect_timeout": CONNECT_SECONDS,
        **options,
    }
    try:
        connection = psycopg.connect(**arguments)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        for kind in ("json", "jsonb"):  # as text, as the other drivers give it: a decoded text could not be told from JSON
            connection.adapters.register_loader(kind, psycopg.types.string.TextLoader)
    except psycopg.Error as error:
        raise Unreachable(f"PostgreSQL at {found['host']} cannot be read: {' '.join(str(error).split())}") from None
    columns = """SELECT column_name FROM information_schema.columns
        WHERE table_name = ? AND table_schema = ANY (current_schemas(false))"""
    return AirflowDatabase(connection, "%s", '"', columns)


def _mysql(found: Mapping[str, Any], port: int | None, query: dict[str, str]) -> AirflowDatabase:
    try:
        import pymysql  # lazy import: an optional driver
    except ImportError:
        raise NotFound(f"reading MySQL needs the package PyMySQL: {EXTRA}") from None
    socket = {"unix_socket": query["unix_socket"]} if "unix_socket" in query else {}
    try:
        connection = pymysql.connect(
            host=found["host"],
            port=port or 3306,
            user=found["user"] or None,
            password=found["password"],
            database=found["database"],
            charset="utf8mb4",
            connect_timeout=CONNECT_SECONDS,
            init_command="SET time_zone = '+00:00'",
            **socket,
        )
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    except pymysql.Error as error:
        raise Unreachable(f"MySQL at {found['host']} cannot be read: {error}") from None
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = ? AND table_schema = database()"
    return AirflowDatabase(connection, "%s", "`", columns)
