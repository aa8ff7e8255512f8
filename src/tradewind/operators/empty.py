"""An operator that does nothing and needs no process."""

from __future__ import annotations

from typing import Any, ClassVar

from tradewind.sdk.operator import BaseOperator


class EmptyOperator(BaseOperator):
    """Does nothing. The scheduler sets the task to success without a process, unless the task has hooks or callbacks."""

    ui_color = "#e8f7e4"
    inherits_from_empty_operator: ClassVar[bool] = True

    def execute(self, context: Any) -> None:
        pass


DummyOperator = EmptyOperator
"""The name in Airflow 1 and 2."""
