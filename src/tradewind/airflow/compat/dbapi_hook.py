"""`airflow.hooks.dbapi`: the base of database hooks in Airflow 1 and 2, which provider packages of 2021 and users' hooks subclass.

With the package `common-sql` installed the class is the one of this package, as in Airflow 2.4 and later.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from tradewind.hooks import sql
from tradewind.hooks.extras import import_library
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import BaseHook

__all__ = ["ConnectorProtocol", "OlderDbApiHook"]

_PACKAGE = "airflow.providers.common.sql.hooks.sql"


class ConnectorProtocol(Protocol):
    """A driver that opens connections."""

    def connect(self, host: str, port: int, username: str, schema: str) -> Any:
        """Open a connection."""


class OlderDbApiHook(sql.DbApiHook):
    """Runs statements on the connection that `get_conn` of a subclass opens.

    Subclasses set the attributes of the class:

    Attributes:
        conn_name_attr: the name of the argument with the id of the connection, such as `postgres_conn_id`.
        default_conn_name: the id if none is given.
        supports_autocommit: whether connections have the attribute `autocommit`.
        connector: a driver, instead of a method `get_conn`.
    """

    conn_name_attr: Any = None
    default_conn_name = "default_conn_id"
    supports_autocommit = False
    connector: ConnectorProtocol | None = None
    connection: Any = None  # subclasses set it
    placeholder: Any = "%s"

    def __init__(self, *args: Any, schema: str | None = None, log_sql: bool = True, **kwargs: Any) -> None:
        BaseHook.__init__(self)
        if not self.conn_name_attr:
            raise AirflowException(f"conn_name_attr of {type(self).__name__} is not defined")
        given = args[0] if len(args) == 1 else kwargs.get(self.conn_name_attr, self.default_conn_name)
        setattr(self, self.conn_name_attr, given)
        self.database = schema
        self.log_sql = log_sql
        self.descriptions: list[Any] = []

    def _described(self) -> Any:
        return self.get_connection(getattr(self, self.conn_name_attr))

    def get_conn(self) -> Any:
        """Open a connection.

        Raises:
            AirflowException: the class has neither a method `get_conn` nor a `connector`.
        """
        if self.connector is None:
            raise AirflowException(f"{type(self).__name__} has neither get_conn() nor a connector")
        found = self._described()
        return self.connector.connect(host=found.host, port=found.port, username=found.login, schema=found.schema)

    def get_uri(self) -> str:
        """The address of the database with the password, as SQLAlchemy reads it."""
        found = self._described()
        user = f"{quote(found.login)}:{quote(found.password or '')}@" if found.login else ""
        port = f":{found.port}" if found.port is not None else ""
        schema = f"/{self.database or found.schema or ''}" if self.database or found.schema else ""
        extra = found.extra_dejson
        query = f"?{urlencode(extra)}" if extra else ""
        kind = sql.DIALECTS.get(found.conn_type, found.conn_type) if found.conn_type == "postgres" else found.conn_type
        return f"{kind}://{user}{found.host or ''}{port}{schema}{query}"

    def get_sqlalchemy_engine(self, engine_kwargs: Mapping[str, Any] | None = None) -> Any:
        """An engine of SQLAlchemy for `get_uri()`. For PostgreSQL it uses psycopg2, as these hooks do, if it is installed."""
        scheme, colon, rest = self.get_uri().partition(":")
        if scheme in ("postgres", "postgresql"):
            scheme = "postgresql+psycopg2" if importlib.util.find_spec("psycopg2") else "postgresql"
        return import_library("sqlalchemy", "sql").create_engine(f"{scheme}{colon}{rest}", **(engine_kwargs or {}))

    # --- statements -----------------------------------------------------------------------------------------------------

    def run(
        self,
        sql: str | Iterable[str],
        autocommit: bool = False,
        parameters: Iterable[Any] | Mapping[str, Any] | None = None,
        handler: Callable[[Any], Any] | None = None,
        *_ignored: Any,
        **_more: Any,
    ) -> Any:
        """Run statements in order on one connection.

        Returns:
            What `handler` makes of the cursor: one value for a text, a list for a list of statements. None without `handler`.
        """
        statements = [sql] if isinstance(sql, str) else list(sql)
        results = []
        with closing(self.get_conn()) as connection:
            if self.supports_autocommit:
                self.set_autocommit(connection, autocommit)
            with closing(connection.cursor()) as cursor:
                for statement in statements:
                    self._run_command(cursor, statement, parameters)
                    if handler is not None:
                        results.append(handler(cursor))
            if not self.get_autocommit(connection):
                connection.commit()
        if handler is None:
            return None
        return results[0] if isinstance(sql, str) else results

    def _run_command(self, cur: Any, sql_statement: str, parameters: Any) -> None:
        self._execute(cur, sql_statement, parameters)

    def get_records(self, sql: str | list[str], parameters: Any = None, **_more: Any) -> Any:
        """All rows, as the driver returns them."""
        return self._fetched("fetchall", sql, parameters)

    def get_first(self, sql: str | list[str], parameters: Any = None) -> Any:
        """The first row as the driver returns it, or None."""
        return self._fetched("fetchone", sql, parameters)

    def _fetched(self, method: str, statement: str | list[str], parameters: Any) -> Any:
        with self._cursor() as cursor:
            for one in [statement] if isinstance(statement, str) else statement:
                cursor.execute(*((one,) if parameters is None else (one, parameters)))
            return getattr(cursor, method)()

    @contextmanager
    def _cursor(self) -> Any:
        with closing(self.get_conn()) as connection, closing(connection.cursor()) as cursor:
            yield cursor

    def get_pandas_df(self, sql: str, parameters: Any = None, **kwargs: Any) -> Any:
        """The rows as a data frame of pandas."""
        with closing(self.get_conn()) as connection:
            return importlib.import_module("pandas.io.sql").read_sql(sql, con=connection, params=parameters, **kwargs)

    def set_autocommit(self, conn: Any, autocommit: bool) -> None:
        """Set the mode of a connection."""
        if not self.supports_autocommit and autocommit:
            self.log.warning("connection %s does not support autocommit", getattr(self, self.conn_name_attr))
        conn.autocommit = autocommit

    def get_autocommit(self, conn: Any) -> bool:
        """Whether a connection commits each statement by itself."""
        return bool(getattr(conn, "autocommit", False)) and self.supports_autocommit

    def get_cursor(self) -> Any:
        """A cursor of a new connection."""
        return self.get_conn().cursor()

    # --- rows -----------------------------------------------------------------------------------------------------------

    def insert_rows(  # type: ignore[override]
        self,
        table: str,
        rows: Iterable[Sequence[Any]],
        target_fields: Sequence[str] | None = None,
        commit_every: int = 1000,
        replace: bool = False,
        **kwargs: Any,
    ) -> None:
        """Insert rows, and commit after every `commit_every` rows and at the end.

        Args:
            replace: replace rows with the same key; how depends on the database.
        """
        count = 0
        with closing(self.get_conn()) as connection:
            if self.supports_autocommit:
                self.set_autocommit(connection, False)
            connection.commit()
            with closing(connection.cursor()) as cursor:
                for count, row in enumerate(rows, 1):
                    values = tuple(self._serialize_cell(cell, connection) for cell in row)
                    cursor.execute(self._generate_insert_sql(table, values, target_fields, replace, **kwargs), values)
                    if commit_every and count % commit_every == 0:
                        connection.commit()
            connection.commit()
        self.log.info("Inserted %d rows into %s", count, table)

    @classmethod
    def _generate_insert_sql(
        cls, table: str, values: Sequence[Any], target_fields: Sequence[str] | None, replace: bool, **_more: Any
    ) -> str:
        fields = f"({', '.join(target_fields)})" if target_fields else ""
        marks = ",".join([cls.placeholder] * len(values))
        return f"{'REPLACE' if replace else 'INSERT'} INTO {table} {fields} VALUES ({marks})"

    @staticmethod
    def _serialize_cell(cell: Any, conn: Any = None) -> Any:
        """A value of a row as the statement gets it."""
        if cell is None:
            return None
        return cell.isoformat() if isinstance(cell, datetime) else str(cell)

    def bulk_dump(self, table: str, tmp_file: str) -> None:
        """Write a table into a file with tabs; subclasses have it."""
        raise NotImplementedError

    def bulk_load(self, table: str, tmp_file: str) -> None:
        """Read a table from a file with tabs; subclasses have it."""
        raise NotImplementedError

    def test_connection(self) -> tuple[bool, str]:
        """Test the connection: (success, message)."""
        try:
            self.get_first("select 1 from dual" if "oracle" in str(self.conn_type) else "select 1")
        except Exception as error:
            return False, str(error)
        return True, "Connection successfully tested"


def __getattr__(name: str) -> Any:
    """`DbApiHook`: the class of the package `common-sql`, or ours."""
    if name != "DbApiHook":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = importlib.import_module(_PACKAGE)
    found = getattr(package, "DbApiHook", sql.DbApiHook)  # an early release of the package imports its base from here
    return OlderDbApiHook if found is sql.DbApiHook else found
