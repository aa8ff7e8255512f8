"""`MySQLToS3Operator`, which the provider package of Amazon replaced by `SqlToS3Operator`."""

from __future__ import annotations

from typing import Any

from airflow.providers.amazon.aws.transfers.sql_to_s3 import SqlToS3Operator

__all__ = ["MySQLToS3Operator"]


class MySQLToS3Operator(SqlToS3Operator):  # type: ignore[misc]
    """Writes the result of a query in MySQL to a file in S3.

    Args:
        mysql_conn_id: the connection of the query.
        pd_csv_kwargs, index, header: arguments of pandas' `to_csv`; `SqlToS3Operator` has them in `df_kwargs`.
    """

    def __init__(
        self,
        *,
        mysql_conn_id: str = "mysql_default",
        pd_csv_kwargs: dict[str, Any] | None = None,
        index: bool = False,
        header: bool = False,
        **kwargs: Any,
    ) -> None:
        if pd_csv_kwargs is not None or kwargs.get("file_format", "csv") == "csv":
            kwargs["df_kwargs"] = {"index": index, "header": header, **(pd_csv_kwargs or {}), **(kwargs.get("df_kwargs") or {})}
        kwargs.setdefault("sql_conn_id", mysql_conn_id)
        super().__init__(**kwargs)
        self.mysql_conn_id = mysql_conn_id
