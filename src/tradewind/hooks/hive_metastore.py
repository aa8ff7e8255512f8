"""Reads the description of a table from Hive's metastore: the location and format of its files, and its columns.

The description comes over Thrift (a connection of type `hive_metastore`, with the provider package `apache-hive`), or from the
metastore's own database (a connection to MySQL, PostgreSQL or SQLite).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import BaseHook

DEFAULT_DELIMITER = "\x01"
"""Hive's default delimiter of fields."""


class HiveTable(NamedTuple):
    """A table of Hive."""

    location: str
    """`hdfs://namenode:8020/user/hive/warehouse/orders`"""
    input_format: str
    """The Java class that reads its files."""
    delimiter: str
    """Between the fields of a text file."""
    columns: tuple[tuple[str, str], ...]
    """(name, type) in the order of the files."""
    partition_keys: tuple[tuple[str, str], ...]
    """(name, type) of the columns that are part of the path."""


def split_name(table: str) -> tuple[str, str]:
    """`sales.orders` → (`sales`, `orders`); a name without a database is in `default`."""
    database, _, name = table.rpartition(".")
    return database or "default", name


def describe(conn_id: str, table: str) -> HiveTable:
    """The description of a table.

    Args:
        conn_id: a connection of type `hive_metastore`, or one to the metastore's database.
        table: `sales.orders`.

    Raises:
        AirflowException: the metastore has no such table.
    """
    connection = BaseHook.get_connection(conn_id)
    hook = BaseHook.get_hook(conn_id)
    if hasattr(hook, "get_metastore_client"):
        return _from_thrift(hook, table)
    return _from_database(hook, str(connection.conn_type), conn_id, table)


def _from_thrift(hook: Any, table: str) -> HiveTable:
    database, name = split_name(table)
    found = hook.get_table(name, database)
    return HiveTable(
        found.sd.location,
        found.sd.inputFormat or "",
        _delimiter(found.sd.serdeInfo.parameters or {}),
        tuple((column.name, column.type) for column in found.sd.cols),
        tuple((column.name, column.type) for column in found.partitionKeys or ()),
    )


def _delimiter(parameters: Mapping[str, str]) -> str:
    return parameters.get("field.delim") or parameters.get("serialization.format.delim") or DEFAULT_DELIMITER


_TABLE = """
SELECT t.{TBL_ID}, s.{CD_ID}, s.{SERDE_ID}, s.{LOCATION}, s.{INPUT_FORMAT}
FROM {TBLS} t JOIN {DBS} d ON d.{DB_ID} = t.{DB_ID} JOIN {SDS} s ON s.{SD_ID} = t.{SD_ID}
WHERE d.{NAME} = {value} AND t.{TBL_NAME} = {value}
"""
_COLUMNS = "SELECT {COLUMN_NAME}, {TYPE_NAME} FROM {COLUMNS_V2} WHERE {CD_ID} = {value} ORDER BY {INTEGER_IDX}"
_KEYS = "SELECT {PKEY_NAME}, {PKEY_TYPE} FROM {PARTITION_KEYS} WHERE {TBL_ID} = {value} ORDER BY {INTEGER_IDX}"
_PARAMETERS = "SELECT {PARAM_KEY}, {PARAM_VALUE} FROM {SERDE_PARAMS} WHERE {SERDE_ID} = {value}"


class _Names(dict[str, str]):
    """Names of the metastore's tables and columns, which are written in capitals: PostgreSQL needs quotes for that."""

    def __init__(self, kind: str) -> None:
        super().__init__(value="?" if kind == "sqlite" else "%s")
        self._quote = '"' if kind.startswith("postgres") else ""

    def __missing__(self, name: str) -> str:
        return f"{self._quote}{name}{self._quote}"


def _from_database(hook: Any, kind: str, conn_id: str, table: str) -> HiveTable:
    names = _Names(kind)

    def read(statement: str, *values: Any) -> Sequence[Any]:
        found: Sequence[Any] = hook.get_records(statement.format_map(names), parameters=values)
        return found

    database, name = split_name(table)
    rows = read(_TABLE, database, name)
    if not rows:
        raise AirflowException(f"the metastore of connection {conn_id!r} has no table {database}.{name}")
    number, columns, serde, location, input_format = rows[0]
    return HiveTable(
        location,
        input_format or "",
        _delimiter({key: value for key, value in read(_PARAMETERS, serde)}),  # noqa: C416 (a row may be any sequence)
        tuple((row[0], row[1]) for row in read(_COLUMNS, columns)),
        tuple((row[0], row[1]) for row in read(_KEYS, number)),
    )
