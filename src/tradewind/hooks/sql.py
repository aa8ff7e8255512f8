"""Queries on the database of a connection. Needs the extra `sql` (SQLAlchemy) and the driver of the database.

SQLAlchemy chooses the driver and builds the address. Statements are passed to the driver unchanged, with parameters in its style.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from tradewind.hooks.extras import import_library
from tradewind.model.errors import NotYetSupported
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import BaseHook, Connection

DIALECTS = {"postgres": "postgresql", "mssql": "mssql+pymssql", "oracle": "oracle+oracledb", "redshift": "postgresql"}
"""Connection type → SQLAlchemy's name, if it differs. `sqlalchemy_scheme` in the connection's extra takes precedence."""

_OWN_KEYS = ("sqlalchemy_scheme", "sqlalchemy_query", "engine_kwargs", "connect_args")

Handler = Callable[[Any], Any]
"""Function from the driver's cursor, after a statement, to the result of the statement."""


def fetch_all_handler(cursor: Any) -> list[tuple[Any, ...]] | None:
    """All rows; None for a statement that returns no rows."""
    return None if cursor.description is None else [tuple(row) for row in cursor.fetchall()]


def fetch_one_handler(cursor: Any) -> tuple[Any, ...] | None:
    """The first row; None if there is none."""
    row = None if cursor.description is None else cursor.fetchone()
    return None if row is None else tuple(row)


def return_single_query_results(sql: str | Iterable[str], return_last: bool, split_statements: bool | None) -> bool:
    """True if the result is that of one statement, False if it is a list of results."""
    if split_statements is not None:
        return isinstance(sql, str) and (return_last or not split_statements)
    return isinstance(sql, str) and return_last


class DbApiHook(BaseHook):
    """Runs statements on the database of a connection.

    Args:
        conn_id: a connection with type, host, port, login and password. Its schema is the database. Keys of its extra:
            `sqlalchemy_scheme` (SQLAlchemy's dialect and driver), `sqlalchemy_query` (query parameters of the URL), `connect_args`
            (arguments of the driver), `engine_kwargs` (arguments of `create_engine`). For SQLite, host or schema is the file.
        database: the database, instead of the connection's schema. `schema` is another name for it.
        log_sql: write statements to the log.
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
        """The cursor's description after each statement of the last `run`."""

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self.get_connection(self.conn_id)
        return self._connection

    @property
    def sqlalchemy_url(self) -> Any:
        """SQLAlchemy's URL of the database."""
        alchemy = import_library("sqlalchemy", "sql")
        connection = self.connection
        extra = connection.extra_dejson
        kind = str(connection.conn_type or "").replace("-", "_")
        scheme = extra.get("sqlalchemy_scheme") or DIALECTS.get(kind, kind)
        if not scheme or scheme == "generic":
            raise AirflowException(
                f"connection {self.conn_id!r} has the type {kind!r}, so its extra must contain sqlalchemy_scheme, such as "
                '{"sqlalchemy_scheme": "dialect+driver"}'
            )
        if scheme.partition("+")[0] == "sqlite":
            file = self.database or connection.host or connection.schema
            if not file:
                raise AirflowException(f"connection {self.conn_id!r} has no file; set the path of the SQLite file as its host")
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
        """The URL as a string, including the password."""
        return str(self.sqlalchemy_url.render_as_string(hide_password=False))

    def get_sqlalchemy_engine(self, engine_kwargs: Mapping[str, Any] | None = None) -> Any:
        """An engine without a pool, because a task process needs only one connection."""
        alchemy = import_library("sqlalchemy", "sql")
        extra = self.connection.extra_dejson
        given = {"connect_args": extra.get("connect_args", {}), **extra.get("engine_kwargs", {}), **(engine_kwargs or {})}
        try:
            return alchemy.create_engine(self.sqlalchemy_url, **{"poolclass": alchemy.pool.NullPool, **given})
        except ModuleNotFoundError as error:
            raise AirflowException(
                f"the driver {error.name!r} for connection {self.conn_id!r} is not installed; install it with pip"
            ) from None

    def get_conn(self) -> Any:
        """The driver's connection. The caller has to close it."""
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
        """Run statements in order, in one transaction. With `autocommit`, commit after each statement.

        Args:
            sql: one statement, or a list.
            parameters: parameters of each statement, in the driver's style.
            handler: function from the cursor to the result of a statement. None: there are no results.
            split_statements: `sql` is one string with several statements.
            return_last: return only the result of the last statement, otherwise a list. A list of one statement gives a list.
        """
        statements = split_sql_string(sql) if isinstance(sql, str) and split_statements else sql
        texts = [text.strip() for text in ([statements] if isinstance(statements, str) else statements)]
        texts = [text for text in texts if text]
        if not texts:
            raise ValueError("sql contains no statement")
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
        """(connection, cursor). Commits at the end; rolls back after an error."""
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
        """Insert rows and commit after every `commit_every` rows (0: once, at the end). Returns the number of rows."""
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
        """The driver's placeholder for a parameter; a format string for the parameter's number."""
        style = self.get_sqlalchemy_engine().dialect.paramstyle
        return {"qmark": "?", "numeric": ":{}", "named": ":{}"}.get(style, "%s")

    def test_connection(self) -> tuple[bool, str]:
        """Test the connection: (success, message)."""
        try:
            self.get_first("select 1 from dual" if "oracle" in str(self.connection.conn_type) else "select 1")
        except Exception as error:
            return False, str(error)
        return True, "the database responds"


def database_hook(conn_id: str, hook_params: Mapping[str, Any] | None = None) -> Any:
    """The hook for a database connection.

    Raises:
        AirflowException: the type of the connection is not a database.
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
            f"connection {conn_id!r} has the type {connection.conn_type!r}, which is not a supported database; if SQLAlchemy "
            'supports it, set its name in the extra: {"sqlalchemy_scheme": "dialect+driver"}'
        )
    return hook


def split_sql_string(sql: str) -> list[str]:
    """The statements of a string, without comments."""
    parse = import_library("sqlparse", "sql")
    return [text.strip() for text in parse.split(parse.format(sql, strip_comments=True)) if text.strip("; \n\t")]
