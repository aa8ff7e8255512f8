"""`airflow.example_dags.example_skip_dag`: an operator that skips itself."""

from __future__ import annotations

from typing import Any

from tradewind.sdk.exceptions import AirflowSkipException
from tradewind.sdk.operator import BaseOperator


class EmptySkipOperator(BaseOperator):
    """Skips itself."""

    ui_color = "#e8b7e4"

    def execute(self, context: Any) -> None:
        """Raises AirflowSkipException."""
        raise AirflowSkipException


DummySkipOperator = EmptySkipOperator
