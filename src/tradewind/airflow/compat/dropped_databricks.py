"""Operators that the provider package of Databricks dropped: the present ones take `deferrable=True`."""

from __future__ import annotations

from typing import Any

from airflow.providers.databricks.operators.databricks import (
    DatabricksRunNowOperator,
    DatabricksSubmitRunOperator,
)

__all__ = ["DatabricksRunNowDeferrableOperator", "DatabricksSubmitRunDeferrableOperator"]


class DatabricksSubmitRunDeferrableOperator(DatabricksSubmitRunOperator):  # type: ignore[misc]
    """Submits a run and waits for it in the triggerer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(deferrable=True, **kwargs)


class DatabricksRunNowDeferrableOperator(DatabricksRunNowOperator):  # type: ignore[misc]
    """Runs an existing job and waits for it in the triggerer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(deferrable=True, **kwargs)
