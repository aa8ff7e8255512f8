"""Transfers with DataX, Alibaba's tool for bulk transfers between data stores.

DataX is a Java program with a launcher in Python (`bin/datax.py`). It is not part of Tradewind: a connection names its folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from string import Template
from typing import Any
from urllib.parse import quote, urlsplit

from tradewind.hooks import hive_metastore
from tradewind.hooks.hive_metastore import HiveTable
from tradewind.model.errors import did_you_mean
from tradewind.operators.subprocesses import Command, describe_exit
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.variables import BaseHook, Connection

WRITE_MODES = ("insert", "replace", "update")
"""What DataX's mysqlwriter does with rows whose key exists: it fails, replaces the row, or updates the row."""

_TYPES = {
    **dict.fromkeys(("tinyint", "smallint", "int", "integer", "bigint"), "long"),
    **dict.fromkeys(("float", "double"), "double"),
    **dict.fromkeys(("date", "timestamp"), "date"),
    "boolean": "boolean",
}
"""Type of a Hive column → type of DataX. All other types, also decimals, are read as text, so no digit is lost."""

_FILE_TYPES = (("orc", "orc"), ("parquet", "parquet"), ("rcfile", "rc"), ("sequencefile", "seq"))
"""Part of the name of the class that reads a table's files → DataX's name of the format. All others are text."""


class HiveToMysqlByDataxOperator(BaseOperator):
    """Copies a table of Hive, or one partition of it, into a table of MySQL with DataX.

    DataX reads the files of the table from HDFS. Hive's metastore says where the files are, and names their format and columns.
    The output of DataX, with its progress, is written to the task's log while it runs. The task fails if DataX fails. When the task
    is stopped, DataX and all processes that it started are ended.

    Args:
        hive_table: the source, `database.table`; a template.
        partition_path: the part of the table's path that names the partition, `ds=2024-01-31/hour=05`; empty for a table without
            partitions; a template.
        mysql_table: the target, `table` or `database.table`; a template.
        mysql_conn: id of the connection to MySQL.
        columns_map: Hive column → MySQL column: a dictionary, a list of pairs, or one of them as JSON; a template. Columns of the
            partition are allowed.
        clear_where_condition: delete the rows of the target that meet this condition of SQL first, so that a second execution does
            not write rows twice; a template.
        write_mode: `insert`, `replace` or `update`; a template.
        channel: number of parallel transfers.
        datax_conn_id: id of the connection that describes the installation of DataX. Keys of its extra: `home` (the folder of
            DataX), `python` (the interpreter for its launcher, default `python3`), `default_fs` (for tables whose location names no
            file system: `hdfs://namenode:8020`) and `hadoop_config` (settings for the HDFS client, a dictionary).
        hive_metastore_conn_id: id of the connection to the metastore: of type `hive_metastore`, or to its database.
        hdfs_file_encoding: encoding of text files.
        null_format: the text that means NULL in text files. Default: `\\N`, as Hive writes it.
        compress: compression of text files: `gzip`, `bzip2`, `zip`, `lzo`, `lzo_deflate`, `hadoop-snappy`, `framing-snappy`.
        jdbc_url_suffix: parameters of the JDBC URL.
        datax_jvm_para: options of the Java virtual machine, `-Xms2g -Xmx2g`.
        datax_run_mode: mode of DataX: `standalone`, `local` or `distribute`.
        datax_loglevel: log level of DataX.
        datax_debug: wait for a debugger.
        error_limit_record: number of bad records after which the transfer fails.
        error_limit_percentage: share of bad records, 0 … 1, above which the transfer fails.
    """

    template_fields: Collection[str] = (
        "hive_table",
        "partition_path",
        "mysql_table",
        "columns_map",
        "clear_where_condition",
        "write_mode",
    )
    template_fields_renderers: Mapping[str, str] = {"columns_map": "json", "clear_where_condition": "sql"}
    ui_color = "#eddede"

    job_text = """\
{
  "job": {
    "setting": {
      "speed": {"channel": $channel},
      "errorLimit": {"record": $error_limit_record, "percentage": $error_limit_percentage}
    },
    "content": [{
      "reader": {"name": "hdfsreader", "parameter": $reader},
      "writer": {"name": "mysqlwriter", "parameter": $writer}
    }]
  }
}
"""
    """The job of DataX: a `string.Template` whose values are JSON. A subclass may have another one."""

    def __init__(
        self,
        hive_table: str,
        partition_path: str,
        mysql_table: str,
        mysql_conn: str,
        columns_map: Mapping[str, str] | Sequence[Sequence[str]] | str,
        clear_where_condition: str | None = None,
        write_mode: str = "insert",
        channel: int = 1,
        datax_conn_id: str = "datax_default",
        hive_metastore_conn_id: str = "metastore_default",
        hdfs_file_encoding: str = "utf-8",
        null_format: str | None = None,
        compress: str | None = None,
        jdbc_url_suffix: str | None = "characterEncoding=utf-8",
        datax_jvm_para: str | None = None,
        datax_run_mode: str | None = None,
        datax_loglevel: str | None = None,
        datax_debug: bool | None = None,
        error_limit_record: int = 0,
        error_limit_percentage: float = 0.0,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.hive_table = hive_table
        self.partition_path = partition_path
        self.mysql_table = mysql_table
        self.mysql_conn = mysql_conn
        self.columns_map = columns_map
        self.clear_where_condition = clear_where_condition
        self.write_mode = write_mode
        self.channel = channel
        self.datax_conn_id = datax_conn_id
        self.hive_metastore_conn_id = hive_metastore_conn_id
        self.hdfs_file_encoding = hdfs_file_encoding
        self.null_format = null_format
        self.compress = compress
        self.jdbc_url_suffix = jdbc_url_suffix
        self.datax_jvm_para = datax_jvm_para
        self.datax_run_mode = datax_run_mode
        self.datax_loglevel = datax_loglevel
        self.datax_debug = datax_debug
        self.error_limit_record = error_limit_record
        self.error_limit_percentage = error_limit_percentage
        self._command: Command | None = None

    def execute(self, context: Any) -> None:
        if self.write_mode not in WRITE_MODES:
            raise AirflowException(
                f"write_mode of task {self.task_id!r} is {self.write_mode!r}; DataX knows {', '.join(WRITE_MODES)}."
                f"{did_you_mean(self.write_mode, WRITE_MODES)}"
            )
        datax = BaseHook.get_connection(self.datax_conn_id)
        table = hive_metastore.describe(self.hive_metastore_conn_id, self.hive_table)
        job = self.job(table, BaseHook.get_connection(self.mysql_conn), datax)
        self._command = Command(self.log, keep_last_line=False)
        with _private_file(job) as path:
            arguments = self.command(datax, path)
            self.log.info(
                "Copying %s %s to %s: %s", self.hive_table, self.partition_path, self.mysql_table, shlex.join(arguments)
            )
            code, _ = self._command.run(arguments, env={**os.environ, **context["ti"].environment()})
        if code:
            raise AirflowException(f"DataX {describe_exit(code)}; its messages are above")

    def job(self, table: HiveTable, mysql: Connection, datax: Connection) -> str:
        """The job of DataX as JSON. It contains the password of MySQL.

        Args:
            table: the source.
            mysql: the connection to the target.
            datax: the connection that describes the installation.
        """
        pairs = column_pairs(self.columns_map)
        values = {
            "channel": self.channel,
            "error_limit_record": self.error_limit_record,
            "error_limit_percentage": self.error_limit_percentage,
            "reader": self._reader([source for source, _ in pairs], table, datax.extra_dejson),
            "writer": self._writer([target for _, target in pairs], mysql),
        }
        return Template(self.job_text).substitute({name: json.dumps(value, indent=2) for name, value in values.items()})

    def _reader(self, columns: Sequence[str], table: HiveTable, installation: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters of DataX's hdfsreader."""
        place = urlsplit(table.location)
        default_fs = f"{place.scheme}://{place.netloc}" if place.netloc else installation.get("default_fs")
        if not default_fs:
            raise AirflowException(
                f"the location {table.location!r} of {self.hive_table} names no file system; set default_fs in the extra of "
                f'connection {self.datax_conn_id!r}: {{"default_fs": "hdfs://namenode:8020"}}'
            )
        partition = (self.partition_path or "").strip("/")
        folder = "/".join(part for part in (place.path.rstrip("/"), partition) if part)
        file_type = _file_type(table.input_format)
        found: dict[str, Any] = {
            "defaultFS": default_fs,
            "path": f"{folder}/*",
            "fileType": file_type,
            "column": reader_columns(columns, table, partition),
        }
        if file_type == "text":
            null = "\\N" if self.null_format is None else self.null_format
            found |= {"fieldDelimiter": table.delimiter, "encoding": self.hdfs_file_encoding, "nullFormat": null}
        if self.compress:
            found["compress"] = self.compress
        if installation.get("hadoop_config"):
            found["hadoopConfig"] = installation["hadoop_config"]
        return found

    def _writer(self, columns: Sequence[str], mysql: Connection) -> dict[str, Any]:
        """Parameters of DataX's mysqlwriter."""
        suffix = f"?{self.jdbc_url_suffix}" if self.jdbc_url_suffix else ""
        url = f"jdbc:mysql://{mysql.host}:{mysql.port or 3306}/{quote(mysql.schema or '')}{suffix}"
        found: dict[str, Any] = {
            "writeMode": self.write_mode,
            "username": mysql.login or "",
            "password": mysql.password or "",
            "column": [f"`{column}`" for column in columns],
            "connection": [{"jdbcUrl": url, "table": [self.mysql_table]}],
        }
        if self.clear_where_condition:
            found["preSql"] = [f"DELETE FROM {self.mysql_table} WHERE {self.clear_where_condition}"]
        return found

    def command(self, datax: Connection, job_file: str) -> list[str]:
        """The command line that starts DataX.

        Args:
            datax: the connection that describes the installation.
            job_file: path of the job.
        """
        extra = datax.extra_dejson
        home = extra.get("home") or os.environ.get("DATAX_HOME")
        if not home:
            raise AirflowException(
                f"the folder of DataX is not set; set home in the extra of connection {self.datax_conn_id!r}, "
                '{"home": "/opt/datax"}, or the environment variable DATAX_HOME of the worker'
            )
        found = [str(extra.get("python") or "python3"), os.path.join(home, "bin", "datax.py")]
        options = (("--jvm", self.datax_jvm_para), ("--mode", self.datax_run_mode), ("--loglevel", self.datax_loglevel))
        found += [f"{name}={value}" for name, value in options if value]
        return [*found, *(["--debug"] if self.datax_debug else []), job_file]

    def on_kill(self) -> None:
        if self._command is not None:
            self._command.stop()


def column_pairs(columns_map: Any) -> list[tuple[str, str]]:
    """(Hive column, MySQL column) of the argument `columns_map`.

    Raises:
        AirflowException: the argument has another shape, or is empty.
    """
    given = columns_map
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            raise AirflowException(f"columns_map is a text that is no JSON: {columns_map!r}") from None
    if isinstance(given, Mapping):
        given = list(given.items())
    pairs = [tuple(pair) if isinstance(pair, list | tuple) else () for pair in given] if isinstance(given, list | tuple) else []
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise AirflowException(
            f'columns_map must be Hive column → MySQL column, such as {{"id": "order_id"}}, not {columns_map!r}'
        )
    return [(str(source), str(target)) for source, target in pairs]


def reader_columns(columns: Sequence[str], table: HiveTable, partition: str) -> list[dict[str, Any]]:
    """DataX's description of the columns to read: by position in the files, or as a constant for a column of the partition.

    Raises:
        AirflowException: the table has no such column, or `partition` does not contain the value of a partition's column.
    """
    positions = {name.lower(): (number, kind) for number, (name, kind) in enumerate(table.columns)}
    keys = {name.lower() for name, _ in table.partition_keys}
    values = dict(part.split("=", 1) for part in partition.split("/") if "=" in part)
    found: list[dict[str, Any]] = []
    for column in columns:
        name = column.lower()
        if name in positions:
            number, kind = positions[name]
            found.append({"index": number, "type": _TYPES.get(kind.lower().partition("(")[0], "string")})
        elif name in keys and name in values:
            found.append({"type": "string", "value": values[name]})
        elif name in keys:
            raise AirflowException(f"partition_path {partition!r} does not contain the value of the column {column!r}")
        else:
            raise AirflowException(f"the Hive table has no column {column!r}.{did_you_mean(name, [*positions, *keys])}")
    return found


def _file_type(input_format: str) -> str:
    plain = input_format.lower()
    return next((name for part, name in _FILE_TYPES if part in plain), "text")


@contextlib.contextmanager
def _private_file(text: str) -> Iterator[str]:
    """A file that only this user can read, for as long as it is needed: a job contains a password."""
    with tempfile.TemporaryDirectory(prefix="tradewind-datax-", ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "job.json")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        yield path
