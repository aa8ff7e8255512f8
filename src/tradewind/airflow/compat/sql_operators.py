"""Operators for a single database, with the argument names of Airflow 1 and 2.

Provider packages have replaced them by `SQLExecuteQueryOperator`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tradewind.operators.sql import SQLExecuteQueryOperator

__all__ = [
    "JdbcOperator",
    "MsSqlOperator",
    "MySqlOperator",
    "OracleOperator",
    "PostgresOperator",
    "RedshiftSQLOperator",
    "SnowflakeOperator",
    "SqliteOperator",
    "TrinoOperator",
    "VerticaOperator",
]


class PostgresOperator(SQLExecuteQueryOperator):
    """Runs SQL in PostgreSQL.

    Args:
        sql: see `SQLExecuteQueryOperator`.
        postgres_conn_id: the connection.
        runtime_parameters: settings of the session (`SET name TO value`).
    """

    template_fields: Collection[str] = ("sql", "parameters", "conn_id", "database", "hook_params")
    ui_color = "#ededed"

    def __init__(
        self,
        *,
        sql: Any,
        postgres_conn_id: str = "postgres_default",
        runtime_parameters: Mapping[str, Any] | None = None,
        hook_params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in (runtime_parameters or {}).items())
        given = {**(hook_params or {}), **({"options": options} if options else {})}
        super().__init__(sql=sql, hook_params=given, **{"conn_id": postgres_conn_id, **kwargs})
        self.postgres_conn_id = postgres_conn_id


class MySqlOperator(SQLExecuteQueryOperator):
    """Runs SQL in MySQL."""

    template_ext: Sequence[str] = (".sql", ".json")
    ui_color = "#ededed"

    def __init__(self, *, sql: Any, mysql_conn_id: str = "mysql_default", **kwargs: Any) -> None:
        super().__init__(sql=sql, **{"conn_id": mysql_conn_id, **kwargs})
        self.mysql_conn_id = mysql_conn_id


class MsSqlOperator(SQLExecuteQueryOperator):
    """Runs SQL in Microsoft SQL Server."""

    ui_color = "#ededed"

    def __init__(self, *, sql: Any, mssql_conn_id: str = "mssql_default", **kwargs: Any) -> None:
        super().__init__(sql=sql, **{"conn_id": mssql_conn_id, **kwargs})
        self.mssql_conn_id = mssql_conn_id


class SqliteOperator(SQLExecuteQueryOperator):
    """Runs SQL in SQLite."""

    ui_color = "#cdaaed"

    def __init__(self, *, sql: Any, sqlite_conn_id: str = "sqlite_default", **kwargs: Any) -> None:
        super().__init__(sql=sql, **{"conn_id": sqlite_conn_id, **kwargs})
        self.sqlite_conn_id = sqlite_conn_id


class OracleOperator(SQLExecuteQueryOperator):
    """Runs SQL in Oracle."""

    ui_color = "#ededed"

    def __init__(self, *, sql: Any, oracle_conn_id: str = "oracle_default", **kwargs: Any) -> None:
        super().__init__(sql=sql, **{"conn_id": oracle_conn_id, **kwargs})
        self.oracle_conn_id = oracle_conn_id


class JdbcOperator(SQLExecuteQueryOperator):
    """Runs SQL through JDBC."""

    ui_color = "#ededed"

    def __init__(self, *, sql: Any, jdbc_conn_id: str = "jdbc_default", **kwargs: Any) -> None:
        super().__init__(sql=sql, **{"conn_id": jdbc_conn_id, **kwargs})
        self.jdbc_conn_id = jdbc_conn_id


class TrinoOperator(SQLExecuteQueryOperator):
    """Runs SQL in Trino."""

    ui_color = "#ededed"

    def __init__(self, *, sql: Any, trino_conn_id: str = "trino_default", **kwargs: Any) -> None:
        super().__init__(sql=sql, **{"conn_id": trino_conn_id, **kwargs})
        self.trino_conn_id = trino_conn_id


class VerticaOperator(SQLExecuteQueryOperator):
    """Runs SQL in Vertica."""

    ui_color = "#b4e0ff"

    def __init__(self, *, sql: Any, vertica_conn_id: str = "vertica_default", **kwargs: Any) -> None:
        super().__init__(sql=sql, **{"conn_id": vertica_conn_id, **kwargs})
        self.vertica_conn_id = vertica_conn_id


class SnowflakeOperator(SQLExecuteQueryOperator):
    """Runs SQL in Snowflake.

    Args:
        sql: see `SQLExecuteQueryOperator`.
        snowflake_conn_id: the connection.
        warehouse, database, role, schema, authenticator, session_parameters: override the values of the connection.
    """

    ui_color = "#ededed"

    def __init__(
        self,
        *,
        sql: Any,
        snowflake_conn_id: str = "snowflake_default",
        warehouse: str | None = None,
        database: str | None = None,
        role: str | None = None,
        schema: str | None = None,
        authenticator: str | None = None,
        session_parameters: Mapping[str, Any] | None = None,
        hook_params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        named = {
            "warehouse": warehouse,
            "database": database,
            "role": role,
            "schema": schema,
            "authenticator": authenticator,
            "session_parameters": session_parameters,
        }
        given = {**(hook_params or {}), **{name: value for name, value in named.items() if value is not None}}
        super().__init__(sql=sql, hook_params=given, **{"conn_id": snowflake_conn_id, **kwargs})
        self.snowflake_conn_id = snowflake_conn_id


class RedshiftSQLOperator(SQLExecuteQueryOperator):
    """Runs SQL in Amazon Redshift."""

    ui_color = "#ededed"

    def __init__(self, *, sql: Any, redshift_conn_id: str = "redshift_default", **kwargs: Any) -> None:
        super().__init__(sql=sql, **{"conn_id": redshift_conn_id, **kwargs})
        self.redshift_conn_id = redshift_conn_id
