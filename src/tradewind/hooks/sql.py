"""Databases, by a connection. Needs the extra `sql` (SQLAlchemy), and the driver of the database.

SQLAlchemy finds driver and address; statements go to the driver as they are, with its own way of writing parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from tradewind.hooks.extras import library
from tradewind.model.errors import NotYetSupported
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import BaseHook, Connection

DIALECTS = {"postgres": "postgresql", "mssql": "mssql+pymssql", "oracle": "oracle+oracledb", "redshift": "postgresql"}
"""Type of connection → SQLAlchemy's name, where it is another one. The extra's `sqlalchemy_scheme` comes first."""

_OWN_KEYS = ("sqlalchemy_scheme", "sqlalchemy_query", "engine_kwargs", "connect_args")

Handler = Callable[[Any], Any]
"""From the driver's cursor, after a statement, to its result."""


def fetch_all_handler(cursor: Any) -> list[tuple[Any, ...]] | None:
    """All rows; None for a statement without any."""
    return None if cursor.description is None else [tuple(row) for row in cursor.fetchall()]


def fetch_one_handler(cursor: Any) -> tuple[Any, ...] | None:
    """The first row; None when there is none."""
    row = None if cursor.description is None else cursor.fetchone()
    return None if row is None else tuple(row)


def return_single_query_results(sql: str | Iterable[str], return_last: bool, split_statements: bool | None) -> bool:
    """Is the result that of one statement, and not a list of results?"""
    if split_statements is not None:
        return isinstance(sql, str) and (return_last or not split_statements)
    return isinstance(sql, str) and return_last


class DbApiHook(BaseHook):
    """Runs statements on the database of a connection.

    Args:
        conn_id: type, host, port, login, password; the schema is the database. In its extra, `sqlalchemy_scheme` is SQLAlchemy's
            name of dialect and driver, `sqlalchemy_query` the query of its URL, `connect_args` and `engine_kwargs` are
            arguments of the driver and of `create_engine`. For SQLite, host or schema is the file.
        database: instead of the connection's schema; `schema` is another name of it.
        log_sql: write statements into the log.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "sql_default"
    conn_type = "generic"
    hook_name = "SQL"

    def __init__(
        self, conn_id: str = default_conn_name, database: str | None = None, schema: str | None = None, log_sql: bool = True
    ) -> None:
        super().__init__()
        self.conn_id = conn_id
        self.database = database or schema
        self.log_sql = log_sql
        self._connection: Connection | None = None
        self.descriptions: list[Any] = []
        """Of the last run: the cursor's description after each statement."""

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self.get_connection(self.conn_id)
        return self._connection

    @property
    def sqlalchemy_url(self) -> Any:
        """SQLAlchemy's URL of the database."""
        alchemy = library("sqlalchemy", "sql")
        connection = self.connection
        extra = connection.extra_dejson
        kind = str(connection.conn_type or "").replace("-", "_")
        scheme = extra.get("sqlalchemy_scheme") or DIALECTS.get(kind, kind)
        if not scheme or scheme == "generic":
            raise AirflowException(f"connection {self.conn_id!r} has the type {kind!r}: give sqlalchemy_scheme in its extra")
        if scheme.partition("+")[0] == "sqlite":
            file = self.database or connection.host or connection.schema
            if not file:
                raise AirflowException(f"connection {self.conn_id!r} names no file: give its path as host")
            return alchemy.URL.create(scheme, database=file)
        texts = {name: value for name, value in extra.items() if name not in _OWN_KEYS and isinstance(value, str)}
        return alchemy.URL.create(
            scheme,
            username=connection.login,
            password=connection.password,
            host=connection.host,
            port=connection.port,
            database=self.database or connection.schema,
            query={**texts, **extra.get("sqlalchemy_query", {})},
        )

    def get_uri(self) -> str:
        """The same as a text, with its password."""
        return str(self.sqlalchemy_url.render_as_string(hide_password=False))

    def get_sqlalchemy_engine(self, engine_kwargs: Mapping[str, Any] | None = None) -> Any:
        """An engine without a pool: a task's process needs one connection."""
        alchemy = library("sqlalchemy", "sql")
        extra = self.connection.extra_dejson
        given = {"connect_args": extra.get("connect_args", {}), **extra.get("engine_kwargs", {}), **(engine_kwargs or {})}
        try:
            return alchemy.create_engine(self.sqlalchemy_url, **{"poolclass": alchemy.pool.NullPool, **given})
        except ModuleNotFoundError as error:
            raise AirflowException(
                f"the driver {error.name!r} for connection {self.conn_id!r} is not installed; install it with pip"
            ) from None

    def get_conn(self) -> Any:
        """The driver's own connection; close it."""
        return self.get_sqlalchemy_engine().raw_connection()

    def run(
        self,
        sql: str | Iterable[str],
        autocommit: bool = False,
        parameters: Iterable[Any] | Mapping[str, Any] | None = None,
        handler: Handler | None = None,
        split_statements: bool = False,
        return_last: bool = True,
    ) -> Any:
        """Run statements one after the other, in one transaction; with `autocommit`, each is committed by itself.

        Args:
            sql: one statement, or several.
            parameters: of each statement, as the driver writes them.
            handler: makes the result of a statement from the cursor; None: there is no result.
            split_statements: `sql` is one text with several statements.
            return_last: the result of the last one only; else a list of all. A list of one statement gives a list.
        """
        statements = split_sql_string(sql) if isinstance(sql, str) and split_statements else sql
        texts = [text.strip() for text in ([statements] if isinstance(statements, str) else statements)]
        texts = [text for text in texts if text]
        if not texts:
            raise ValueError("there is no statement to run")
        single = return_single_query_results(sql, return_last, split_statements)
        self.descriptions = []
        results = []
        with self._transaction(autocommit) as (connection, cursor):
            for text in texts:
                self._execute(cursor, text, parameters)
                if handler is not None:
                    results.append(handler(cursor))
                self.descriptions.append(cursor.description)
                if autocommit:
                    connection.commit()
        if handler is None:
            return None
        if single:
            self.descriptions = self.descriptions[-1:]
            return results[-1]
        return results

    @contextmanager
    def _transaction(self, autocommit: bool = False) -> Iterator[tuple[Any, Any]]:
        """(connection, cursor); committed at the end, rolled back after an error."""
        with closing(self.get_conn()) as connection:
            with closing(connection.cursor()) as cursor:
                try:
                    yield connection, cursor
                except BaseException:
                    connection.rollback()
                    raise
            connection.commit()

    def _execute(self, cursor: Any, text: str, parameters: Any) -> None:
        if self.log_sql:
            self.log.info("Running statement: %s", text)
        if parameters:
            cursor.execute(text, parameters)
        else:
            cursor.execute(text)
        if self.log_sql and cursor.rowcount >= 0:
            self.log.info("Rows affected: %s", cursor.rowcount)

    def get_records(self, sql: str | list[str], parameters: Any = None) -> Any:
        """All rows."""
        return self.run(sql, parameters=parameters, handler=fetch_all_handler)

    def get_first(self, sql: str | list[str], parameters: Any = None) -> Any:
        """The first row, or None."""
        return self.run(sql, parameters=parameters, handler=fetch_one_handler)

    def insert_rows(
        self,
        table: str,
        rows: Iterable[Sequence[Any]],
        target_fields: Sequence[str] | None = None,
        commit_every: int = 1000,
    ) -> int:
        """Insert rows, committing every so many (0: once, at the end); returns how many."""
        fields = f" ({', '.join(target_fields)})" if target_fields else ""
        count = 0
        marks = self.placeholder
        with self._transaction() as (connection, cursor):
            for count, row in enumerate(rows, 1):
                places = ", ".join(marks.format(number) for number in range(1, len(row) + 1))
                cursor.execute(f"INSERT INTO {table}{fields} VALUES ({places})", tuple(row))
                if commit_every and count % commit_every == 0:
                    connection.commit()
        self.log.info("Inserted %d rows into %s", count, table)
        return count

    @property
    def placeholder(self) -> str:
        """How the driver marks a parameter, for `str.format` with its number."""
        style = self.get_sqlalchemy_engine().dialect.paramstyle
        return {"qmark": "?", "numeric": ":{}", "named": ":{}"}.get(style, "%s")

    def test_connection(self) -> tuple[bool, str]:
        """Does the database answer?"""
        try:
            self.get_first("select 1 from dual" if "oracle" in str(self.connection.conn_type) else "select 1")
        except Exception as error:
            return False, str(error)
        return True, "the database answers"


def hook_of(conn_id: str, hook_params: Mapping[str, Any] | None = None) -> Any:
    """The hook of a connection's type.

    Raises:
        AirflowException: it is none of a database.
    """
    connection = BaseHook.get_connection(conn_id)
    if "sqlalchemy_scheme" in connection.extra_dejson:
        return DbApiHook(conn_id, **(hook_params or {}))
    try:
        hook = connection.get_hook(hook_params=dict(hook_params or {}))
    except NotYetSupported:
        hook = None
    if not hasattr(hook, "get_first"):
        raise AirflowException(
            f"connection {conn_id!r} has the type {connection.conn_type!r}, which is no known database's; for one that "
            'SQLAlchemy knows, give its name in the extra: {"sqlalchemy_scheme": "dialect+driver"}'
        )
    return hook


def split_sql_string(sql: str) -> list[str]:
    """The statements in a text, without comments."""
    parse = library("sqlparse", "sql")
    return [text.strip() for text in parse.split(parse.format(sql, strip_comments=True)) if text.strip("; \n\t")]
