"""Operators that the provider package of Snowflake dropped, built on its present operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.providers.snowflake.transfers.copy_into_snowflake import (
    CopyFromExternalStageToSnowflakeOperator,
)

__all__ = ["S3ToSnowflakeOperator"]


class S3ToSnowflakeOperator(CopyFromExternalStageToSnowflakeOperator):  # type: ignore[misc]
    """Copies files from a stage in S3 to a table.

    Args:
        s3_keys: the files; the present operator calls them `files`.
        columns_array: the columns.
    """

    def __init__(
        self, *, s3_keys: Sequence[str] | None = None, columns_array: Sequence[str] | None = None, **kwargs: Any
    ) -> None:
        if s3_keys is not None:
            kwargs["files"] = s3_keys
        super().__init__(columns_array=columns_array, **kwargs)
        self.s3_keys = s3_keys
